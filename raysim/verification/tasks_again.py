"""Client tasks of one round computed once more, without the round."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raysim.engine.rounds import Rounds


def tasks_again(rounds: Rounds, clients: Collection[int]) -> list[dict[str, Any]]:
    """The rows of the clients table that tasks of the round behind the state of ``rounds`` give.

    All of its tasks are computed where updates of several rounds meet in a step or single steps may be merged, as a
    client's task is not one by itself there.

    Args:
        rounds: a run that has gone back to a checkpoint.
        clients: whose tasks are asked for.
    """
    number, server, method = rounds.state.round + 1, rounds.state.server, rounds.method
    rounds.begin_again()
    plan = rounds.next_plan()
    if not (rounds.config.timing.stale or rounds.collector.merges):
        chosen = [client for client in plan.clients if client in clients]
        plan = replace(
            plan,
            samples={client: plan.samples[client] for client in chosen},
            begins={client: plan.begins[client] for client in chosen if plan.begins},
            steps={client: plan.steps[client] for client in chosen},
        )
    messages = {client: method.message(server, client) for client in plan.clients}
    rounds.collector.begin(plan, messages, rounds.state.clients)
    message = partial(method.message, server)
    collected = rounds.collector.take(number, message, rounds.shared_parameter_count)
    return [row for row in collected.rows if row["client"] in clients]
