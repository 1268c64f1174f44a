"""FedSSP as its authors have it: network, clients, server and rounds of github.com/OakleyTan/FedSSP at e551b05.

What its network takes of dgl is in ``dgl_parts``, as dgl has no release for recent versions of torch. Both programs get
the same spectra, and take steps of SGD in the place of AdamW's, whose length is the same for any gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn

from benchmarks.agreement import dgl_parts, problem
from benchmarks.agreement.case import Case, Change
from benchmarks.agreement.graph_authors import (
    CLIENTS,
    HIDDEN,
    LAYERS,
    PARTS,
    RATE,
    Start,
    case,
    ended,
    filled,
    layers,
    loaded,
)
from benchmarks.agreement.problem import Values

PREFERENCE_RATE = 0.05
BATCH = 8
"""Graphs of a mini-batch, a third of a client's: what a step leaves behind would be seen in the next."""


def cases(folder: Path) -> Iterator[Case]:
    """FedSSP with its defaults, and with the preference that stays zero, as on a GPU."""
    pairs = {
        "atom_encoder.linear": "node_encoder.0", "eig_encoder_s.eig_w": "eigenvalue_encoder.linear",
        "mha_norm": "attention.attention_norm", "mha.out_proj": "attention.output", "ffn_norm": "attention.ffn_norm",
        "ffn.layer1": "attention.ffn.0", "ffn.layer2": "attention.ffn.2", "decoder": "decoder.0",
        **{f"filter_encoder_s.{k}": f"filter_encoder.{k}" for k in (0, 1, 3, 4)},
        **{f"convs.{layer}.pre_ffn.0": f"convolutions.{layer}.before.0" for layer in range(LAYERS)},
        **{f"convs.{layer}.ffn.{k}": f"convolutions.{layer}.ffn.{k}" for layer in range(LAYERS) for k in (0, 1, 3, 4)},
    }  # fmt: skip
    names = {f"base.{theirs}": own for theirs, own in layers(pairs).items()} | layers({"head": "head"}, body="")
    attention = "body.attention.queries_keys_values"
    names |= {"base.mha.in_proj_weight": f"{attention}.weight", "base.mha.in_proj_bias": f"{attention}.bias"}
    client, models, server, training = loaded(folder, "client", "models", "server", "training")

    def theirs(start: Start) -> Values:
        given = SimpleNamespace(
            device="cpu", tau_weight=100.0, momentum=0.5, hidden=HIDDEN, lr=PREFERENCE_RATE, alg="fedSSP"
        )
        clients = []
        for number in range(CLIENTS):
            inputs = start.federation.input_spec(number)
            width = inputs.input_shape[0]
            network = models.SSP(inputs.classes, LAYERS, [width], 0, width, 4, HIDDEN, 0.0, 0.0, 0.0)
            head, network.fc = network.fc, nn.Identity()
            model = filled(models.Split_model(network, head), start.module(number), names)
            batches = [dgl_parts.batch(graphs) for graphs in start.training(number, BATCH)]
            loaders = dict.fromkeys(PARTS, batches)
            clients.append(client.Client_GC(model, number, str(number), 1, loaders, None, given))
        its = server.Server(clients[0].model, "cpu")
        its.uploaded_ids, its.uploaded_weights = [*range(CLIENTS)], [1] * CLIENTS
        sgd = mock.patch("torch.optim.AdamW", lambda parameters, **given: torch.optim.SGD(parameters, lr=RATE))
        with mock.patch.object(training, "proscess_loader", lambda loader, device: loader), sgd:
            writer = SimpleNamespace(add_scalar=lambda *given: None)
            training.run_fedSSP(given, clients, its, problem.ROUNDS, 1, summary_writer=writer)
        return ended(clients, names)

    at_once, with_q, cleared, copied = _changes(client, training)
    options = {"model.name": "spectral", "workload.laplacian": "combinatorial", "training.batch_size": BATCH}
    learned = {**options, "method.preference_rate": PREFERENCE_RATE}
    yield case("fedssp", names, theirs, learned, [at_once, with_q, cleared])
    yield case("fedssp", names, theirs, {**options, "method.preference_rate": 0.0}, [at_once, copied])


def _changes(client: Any, training: Any) -> tuple[Change, Change, Change, Change]:
    """Changes of the authors' modules, in the order of the comparisons."""

    def averaged_at_once() -> AbstractContextManager[Any]:
        return mock.patch.object(training, "range", later, create=True)

    def later(first: int, *stop: int) -> range:
        return range(first + 1, stop[0] + 1) if stop else range(first)

    def preference_at_once() -> AbstractContextManager[Any]:
        train = client.Client_GC.local_train

        def train_with_q(self: Any, epochs: int) -> None:
            self.tau = 100.0 if self.global_consensus is not None else 0.0
            if self.global_consensus is None:
                self.global_consensus = torch.zeros(HIDDEN)
            train(self, epochs)

        return mock.patch.object(client.Client_GC, "local_train", train_with_q)

    def gradient_of_one() -> AbstractContextManager[Any]:
        train = client.train_gc_SSP

        def from_zero(self: Any, *given: Any) -> Any:
            optimizer = self.opt_local_consensus
            step = optimizer.step

            def step_and_clear() -> None:
                step()
                optimizer.zero_grad()

            with mock.patch.object(optimizer, "step", step_and_clear):
                return train(self, *given)

        return mock.patch.object(client, "train_gc_SSP", from_zero)

    def copied_as_on_a_gpu() -> AbstractContextManager[Any]:
        train = client.Client_GC.local_train

        def train_a_copy(self: Any, epochs: int) -> None:
            if self.local_consensus.is_leaf:
                self.local_consensus = self.local_consensus.clone()  # what .to("cuda") makes of a parameter
            train(self, epochs)

        return mock.patch.object(client.Client_GC, "local_train", train_a_copy)

    return (
        Change("decision: the encoders are averaged from the first round on", averaged_at_once),
        Change("decision: the preference q is learned from the first round on", preference_at_once),
        Change("defect: the gradient of q is never set to zero", gradient_of_one),
        Change("start: q is copied once, as to a GPU, and the copy is what the features get", copied_as_on_a_gpu),
    )
