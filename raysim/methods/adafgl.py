"""AdaFGL: clients average a model first, then each trains networks of its own on a graph that the model has mended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from raysim.method import (
    NOTHING,
    ClientTask,
    Context,
    FlatModel,
    Message,
    Module,
    Tensor,
    Traits,
    Update,
    Updates,
    Vector,
)
from raysim.methods._halves import Averaged
from raysim.methods._node_graphs import training_nodes
from raysim.workloads.federated_data import ClientData
from raysim.workloads.option_types import Help, NonNegativeInt, PositiveInt, Share, ShareBelowOne

if TYPE_CHECKING:
    from raysim.methods._personal_propagation import Personalized

OWN = "personal."
"""How names of the entries of a client's own networks begin."""


@dataclass(frozen=True)
class Kept:
    """Client state: what a client has found out of its labels, and its networks."""

    score: float
    """Homophily confidence score; −1 before its first task."""
    networks: Vector
    """The networks' values, and the score among them; empty before it personalizes."""


@dataclass(frozen=True)
class AdaFGL(Averaged[Kept]):
    """AdaFGL: FedAvg for some rounds gives an extractor, by whose predictions each client then personalizes alone.

    Source: Li et al. 2024, AdaFGL: a new paradigm for federated node classification with topology heterogeneity (ICDE;
    arXiv 2401.11750), and the authors' code (AdaFGL at 1ea2b20, OpenFGL at dbe2118). Of the paper the abstract and
    summaries were at hand, not its equations: the formulas are the code's. After ``federated_rounds`` rounds the
    averaged model predicts P̂ (softmax) of a client's nodes, and its graph becomes, with B = 1[cos(P̂_u, P̂_v) > alike],

        P̃ = D^{-1/2} (α A + (1 − α) B + I) D^{-1/2},   X̃ = [X ‖ P̃X ‖ … ‖ P̃ᴷX].

    Perceptrons of its own give logits H, S and M⁰ from X̃, and F from X alone. S and M⁰ have no other topology than P̃;
    M is M⁰ after messages with signs σ, which R = β B + (1 − β) cos(softmax M⁰_u, softmax M⁰_v), μ its mean, decides:

        σ = (R − μ)/(max R − μ) where R > μ, else −R/μ, and 1 of a node to itself,
        M = (softmax(PReLU(σ) M⁰) − softmax(PReLU(−σ) M⁰) + M⁰) / 2.

    They minimize CE(H) + mean (H − P̂)² + CE(F) + CE(S) + CE(M) on the training nodes. The score HCS is the share right
    of half of these, drawn once, to which labels of the other half have spread: Yᵏ = ½ Y⁰ + ½ Â Yᵏ⁻¹. A client predicts

        HCS (P̂ + softmax H)/2 + (1 − HCS) (softmax F + softmax S + softmax M)/3.

    Decided here: each round after ``federated_rounds`` is ``personal_epochs`` epochs of that training, by the run's
    optimizer, and clients are judged by what it has made so far; the averaged model stays as it is, and tables count it
    as sent all the same. Both parts count by HCS, as in OpenFGL; AdaFGL's code has one part alone, that of H where HCS
    ≥ 0.9 (``switch 0.9``). A part that weighs 0 is not trained. Departures from the code: it takes the softmax of P̂
    once more in B and in the mean with H; it adds known labels again in every Yᵏ, and gives nodes outside all parts of
    the split theirs; F and S share a slope of PReLU. A node that no label reaches counts as wrong. The code's signs are
    kept as they are, weakest where R is 0 and −1 just below μ.
    """

    federated_rounds: Annotated[
        NonNegativeInt, Help("rounds of FedAvg; clients personalize in all later ones", "Li et al. 2024 (OpenFGL)")
    ] = 50
    personal_epochs: Annotated[
        PositiveInt,
        Help("epochs of personal training in each later round", "Li et al. 2024 (OpenFGL); code: 200 in all"),
    ] = 1
    hops: Annotated[PositiveInt, Help("K, multiplications by P̃", "Li et al. 2024 (code)")] = 3
    width: Annotated[PositiveInt, Help("of the hidden layers of a client's networks", "Li et al. 2024 (code)")] = 64
    dropout: Annotated[ShareBelowOne, Help("dropout of these layers", "Li et al. 2024 (code)")] = 0.5
    alpha: Annotated[Share, Help("α, share of the graph's edges in P̃", "Li et al. 2024 (OpenFGL)")] = 0.5
    beta: Annotated[Share, Help("β, share of B in the signs of messages", "Li et al. 2024 (code)")] = 0.2
    alike: Annotated[Share, Help("cosine of predictions above which B joins", "Li et al. 2024 (code)")] = 0.999
    steps: Annotated[PositiveInt, Help("steps of label propagation for HCS", "Li et al. 2024 (code)")] = 10
    switch: Annotated[
        Share, Help("HCS from which the homophilous part counts alone, and below not at all; 0: both, by HCS")
    ] = 0.0

    defaults: ClassVar[Mapping[str, object]] = {
        "workload.name": "nodes",
        "model.name": "gcn",
        "schedule.rounds": 100,
    }

    @property
    def traits(self) -> Traits:
        return Traits(
            weighted_mean=True,
            personal=True,
            judged_apart=True,
            first_rounds=self.federated_rounds,
            same_task=True,
            classification=True,
            node_graphs=True,
            head_of_body=True,
        )

    def extend(self, module: Module) -> Module:
        from raysim.methods._personal_propagation import Personalized, Settings

        chosen = Settings(self.hops, self.width, self.dropout, self.alpha, self.beta, self.alike)
        return Personalized(module, chosen)

    def shared_names(self, module: Module) -> Collection[str]:
        from raysim.flat_model import all_names

        return {name for name in all_names(module) if not name.startswith(OWN)}

    def init_client(self, model: FlatModel) -> Kept:
        return Kept(-1.0, NOTHING)

    def deploy(self, model: FlatModel, message: Message, state: Kept) -> None:
        model.load_shared(message.parameters)
        if state.networks.size:
            model.load_private(state.networks)

    def train(
        self, model: FlatModel, data: ClientData, message: Message, state: Kept, task: ClientTask
    ) -> tuple[Update, Kept]:
        from raysim.training.local_sgd import Phase, train_epochs

        self.deploy(model, message, state)
        if state.score < 0:
            state = replace(state, score=self.score(data, task))
        if task.round <= self.federated_rounds:
            trained = train_epochs(model, data.train, task, trains=lambda name: not name.startswith(OWN))
        else:
            module = cast("Personalized", model.module)
            networks, guide = module.personal, module.guide(training_nodes(data)[0].graph)
            cast("Tensor", networks.score).fill_(state.score)

            def loss(module: Any, batch: Any) -> Tensor:
                return networks.loss(batch.x, guide, batch.y, task.objective)

            trained = train_epochs(
                model,
                data.train,
                task,
                loss,
                trains=lambda name: name.startswith(networks.parts),
                phase=Phase("shuffle personal", self.personal_epochs),
            )
            state = replace(state, networks=model.take_private())
        metrics = {**trained.metrics(), "homophily": state.score}
        return Update(model.change_from(message.parameters), metrics), state

    def aggregate(self, server: Vector, updates: Updates, context: Context) -> Vector:
        return server + updates.mean() if context.round <= self.federated_rounds else server

    def score(self, data: ClientData, task: ClientTask) -> float:
        """HCS, or what ``switch`` makes of it: 1 or 0."""
        import torch

        from raysim.methods._personal_propagation import first_labels, homophily

        batch, labels = training_nodes(data)
        order = torch.randperm(len(labels), generator=task.generator("adafgl labels")).to(labels.device)
        known, hidden = order[: len(order) // 2], order[len(order) // 2 :]
        start = first_labels(batch.num_nodes, task.classes, batch.nodes[known], labels[known])
        found = homophily(batch.graph.spread, start, self.steps, batch.nodes[hidden], labels[hidden])
        return float(found >= self.switch) if self.switch else found


METHOD = AdaFGL
