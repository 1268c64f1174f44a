"""The section ``attack``: which clients are malicious, and whether the attack fits the run.

What malicious clients do is in the attack's file in ``attacks/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from raysim import seeds
from raysim.config.kind_files import kind_object
from raysim.config.wrappers import Attack
from raysim.errors import ConfigError
from raysim.workloads.federated_data import Federation
from raysim.wrappers.attacks._attacker import Attacker, Planned

HARMLESS = Attacker()


def attacker_of(attack: Attack) -> Attacker:
    """The attacker of malicious clients; one that does nothing where the section is off."""
    found: Attacker = kind_object("wrappers.attacks", attack.kind, attack) if attack.on else HARMLESS
    return found


def malicious(attack: Attack, seed: int, clients: int) -> frozenset[int]:
    """The malicious ones of this many clients: those that the config names, or ⌊share · N⌋, at least one."""
    return _malicious(attack, seeds.root(seed, "attack"), clients)


@lru_cache(maxsize=16)
def _malicious(attack: Attack, seed: int, clients: int) -> frozenset[int]:
    if attack.malicious or not attack.on:
        return frozenset(attack.malicious)
    count = max(1, int(attack.malicious_share * clients + 1e-9))
    draws = seeds.numpy_generator(seed, "attack clients")
    return frozenset(draws.permutation(clients)[:count].tolist())


def check_attack(attack: Attack, federation: Federation, seed: int, clients: int, steps: Sequence[int]) -> None:
    """ConfigError for an attack that these data, or the planned server steps, do not allow.

    Args:
        attack: the run's.
        federation: the data, or a sketch of it.
        seed: the run's.
        clients: number of clients that take part.
        steps: numbers of updates that server steps are planned to take, ascending.
    """
    unknown = [client for client in attack.malicious if client >= clients]
    if unknown:
        raise ConfigError(
            f"attack.malicious: {unknown[0]} is no client that takes part. Allowed: numbers from 0 to {clients - 1}."
        )
    attacker = attacker_of(attack)
    attacker.check(federation)
    attacker.check_steps(attack, planned(attack, seed, clients, steps))


def note(attack: Attack, seed: int, clients: int, steps: Sequence[int]) -> str:
    """A sentence for the run's log on the attack; mostly empty. Arguments as for :func:`check_attack`."""
    return attacker_of(attack).note(planned(attack, seed, clients, steps)[-1]) if attack.on else ""


def planned(attack: Attack, seed: int, clients: int, steps: Sequence[int]) -> list[Planned]:
    """The planned server steps with how many of their updates are malicious on average, at least one."""
    attackers = len(malicious(attack, seed, clients))
    return [Planned(updates, max(1, round(updates * attackers / clients))) for updates in steps]
