"""A sentence for each method that says what it is for, to readers who know PyTorch and no paper of the field."""

from __future__ import annotations

from collections.abc import Mapping

PURPOSES: Mapping[str, tuple[str, ...]] = {
    "The baseline: clients train the same model on their own data, and the server takes the mean.": ("fedavg",),
    "For one model of all clients whose data differ: local training is kept from drifting apart.": (
        *("fedprox", "scaffold", "feddyn", "moon"),
    ),
    "For one model that converges slowly: the mean change is a gradient to an optimizer on the server.": (
        *("fedavgm", "fedadagrad", "fedadam", "fedyogi"),
    ),
    "For clients that do different amounts of local work, which would pull the mean toward the busiest.": ("fednova",),
    "For fairness: clients whose loss is large count more, so that none is left behind.": ("qfedavg",),
    "For fewer exchanges: communication at chosen times, and weights for clients by how good their models are.": (
        *("fedrad",),
    ),
    "For clients whose updates contradict each other, hospitals with different patients say.": ("fedld", "fedgh"),
    "For clients whose inputs look different (scanners, cameras): each keeps its own normalization.": ("fedbn",),
    "For a model of each client: a body is trained together, a head by each client alone.": (
        *("fedper", "fedrep", "fedbabu", "fedpac", "fedcp"),
    ),
    "For a model of each client that stays near, or begins at, what all have learned.": (
        *("ditto", "pfedme", "perfedavg", "fedala", "apple"),
    ),
    "For clients that share what classes look like, as mean features, in the place of models.": ("fedproto",),
    "For clients that fall into groups: each group finds itself and trains a model of its own.": (
        *("ifca", "clustered", "gcfl"),
    ),
    "For clients with whole graphs of different kinds (molecules, proteins, social networks).": (
        *("fedssp", "fedstar", "fedsage", "fgssl"),
    ),
    "For clients that each hold a part of one graph, whose edges to the other parts are missing.": (
        *("fedgta", "fedgcn", "fedpub", "fedtad", "fedsageplus", "adafgl"),
    ),
    "A bound to compare with: clients that never exchange anything.": ("local",),
    "A bound to compare with: all data in one place, which is no federated learning.": ("centralized",),
}
"""Sentence → the methods that it is true of."""


def purpose(method: str) -> str:
    """The sentence of a method; empty for one that has none yet."""
    return next((text for text, methods in PURPOSES.items() if method in methods), "")
