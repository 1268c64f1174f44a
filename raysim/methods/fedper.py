"""FedPer: one body for all, a head that stays with its client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raysim.method import Traits, Vector
from raysim.methods._halves import HEAD, AveragedPart, SharedBody


@dataclass(frozen=True)
class FedPer(SharedBody[Vector, Vector], AveragedPart):
    """FedPer: FedAvg on the body alone; every client trains body and head together and keeps its own head.

    Source: Arivazhagan et al. 2019, Federated learning with personalization layers (arXiv 1912.00818), Algorithm 1.
    From the received body B and its own head H_i, client i takes steps of SGD on both; the server takes the mean

        B ← Σ_{i∈S} p_i B_i,    p_i = m_i / Σ_{j∈S} m_j.

    Decided here:
    - The head is what is named ``head.*``, the body all else: one personalization layer (K_P = 1) with most models.
    - p_i is the share of the cohort's samples; the paper, in which all clients take part, divides by all samples.
    - All heads begin with the same values. A client is judged by the received body with its own head, on its own test
      set; a client before its first task has the initial head.
    - BatchNorm's statistics in the body are averaged like its parameters.
    """

    traits: ClassVar[Traits] = Traits(
        weighted_mean=True, personal=True, plain_training=True, model_parts=("body.", HEAD)
    )


METHOD = FedPer
