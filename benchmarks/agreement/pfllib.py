"""Methods of PFLlib, github.com/TsingZ0/PFLlib at d832e76, which needs h5py, cvxpy and ujson.

Its servers and clients run as they are; what is replaced for all of them is the data, evaluation, and files.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from benchmarks.agreement import problem
from benchmarks.agreement.case import Case, Change
from benchmarks.agreement.problem import Values
from raysim.client_side.model_parts import extended
from raysim.methods.fedcp import FedCP

ARGUMENTS: Mapping[str, object] = {
    "device": "cpu", "dataset": "", "num_classes": problem.CLASSES, "algorithm": "", "goal": "", "save_folder_name": "",
    "global_rounds": problem.ROUNDS - 1,  # it makes one more
    "local_epochs": problem.EPOCHS, "local_learning_rate": problem.RATE,
    "num_clients": len(problem.SIZES), "join_ratio": 1.0, "random_join_ratio": False, "few_shot": 0, "top_cnt": 1,
    "time_select": False, "time_threthold": 1e9, "auto_break": False, "eval_gap": 1, "client_drop_rate": 0.0,
    "train_slow_rate": 0.0, "send_slow_rate": 0.0, "dlg_eval": False, "dlg_gap": 1, "batch_num_per_client": 1,
    "num_new_clients": 0, "fine_tuning_epoch_new": 0, "learning_rate_decay": False, "learning_rate_decay_gamma": 1.0,
    "plocal_epochs": problem.EPOCHS, "fine_tuning_epochs": 2, "server_learning_rate": 1.0, "beta": 1.0,
}  # fmt: skip


IN_ORDER = SimpleNamespace(sample=lambda items, count: list(items)[:count])
"""In the place of the module random: all clients take part, in the order of their numbers."""


class Split(nn.Module):
    """The network by the names that PFLlib has for its parts."""

    def __init__(self, network: problem.Network) -> None:
        super().__init__()
        self.base, self.head = network.body, network.head

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.base(x))
        return logits


class Checkout:
    """PFLlib's modules, with the clients of the problem for data."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder / "system"))
        read = self._read
        importlib.import_module("utils.data_utils").read_client_data = read  # type: ignore[attr-defined]
        self.client_base = importlib.import_module("flcore.clients.clientbase")
        base: Any = importlib.import_module("flcore.servers.serverbase")
        self.client_base.Client.load_train_data = lambda client, batch_size=None: problem.batches(client.id)
        for name in ("evaluate", "save_results", "save_global_model"):
            setattr(base.Server, name, _nothing)
        base.Server.select_clients = lambda server: list(server.clients)
        base.random = IN_ORDER

    @staticmethod
    def _read(dataset: str, client: int, is_train: bool = True, few_shot: int = 0) -> list[tuple[Tensor, Tensor]]:
        return list(zip(*problem.clients()[client], strict=True))

    def client(self, name: str) -> Any:
        return importlib.import_module(f"flcore.clients.client{name}")

    def server(self, name: str) -> Any:
        module: Any = importlib.import_module(f"flcore.servers.server{name}")
        if hasattr(module, "random"):
            module.random = IN_ORDER
        return module

    def trained(self, module: str, name: str, batch_norm: bool = False, **arguments: object) -> Any:
        """A server after all rounds."""
        network = problem.network(batch_norm)
        given = SimpleNamespace(
            **{**ARGUMENTS, "batch_size": problem.BATCH, **arguments}, model=Split(network), head=network.head
        )
        server = getattr(self.server(module), name)(given, 0)
        for attribute in ("evaluate", "evaluate_one_step", "evaluate_personalized"):
            setattr(server, attribute, _nothing)
        server.rs_test_acc = server.rs_test_acc_per = server.rs_train_loss_per = [0.0]
        server.train()
        return server


def _nothing(*arguments: object, **options: object) -> None:
    return None


def of_server(server: Any) -> Values:
    return {"server": problem.vector(server.global_model.parameters())}


def of_clients(server: Any, parameters: Callable[[Any], Any] = lambda client: client.model.parameters()) -> Values:
    return {f"client {client.id}": problem.vector(parameters(client)) for client in server.clients}


def predictions(server: Any) -> Values:
    """How many of the points each client takes for a class, as its ``test_metrics`` tells it."""
    points = problem.points()

    def taken_for(client: Any, label: int) -> int:
        client.load_test_data = lambda: [(points, torch.full((len(points),), label))]
        return int(client.test_metrics()[0])

    counts = {client.id: [taken_for(client, label) for label in range(problem.CLASSES)] for client in server.clients}
    return {f"predictions {client}": torch.tensor(found, dtype=torch.float32) for client, found in counts.items()}


def sent(server: Any) -> Any:
    """The server once its clients have received what it has."""
    server.send_models()
    return server


def cases(folder: Path) -> Iterator[Case]:
    """All methods that both programs have."""
    its = Checkout(folder)

    def case(
        method: str,
        run: Callable[[], Values],
        options: Mapping[str, object] | None = None,
        changes: Sequence[tuple[str, Callable[[], AbstractContextManager[Any]]]] = (),
        **further: Any,
    ) -> Case:
        return Case(method, run, options or {}, tuple(Change(*change) for change in changes), **further)

    yield case("fedavg", lambda: of_server(its.trained("avg", "FedAvg")))
    yield case("fedprox", lambda: of_server(its.trained("prox", "FedProx", mu=0.5)), {"method.mu": 0.5})
    yield case("scaffold", lambda: of_server(its.trained("scaffold", "SCAFFOLD")))
    yield case(
        "scaffold",
        lambda: of_server(its.trained("scaffold", "SCAFFOLD", server_learning_rate=0.5)),
        {"method.server_rate": 0.5},
    )
    yield case(
        "moon",
        lambda: of_server(its.trained("moon", "MOON", mu=1.0, tau=0.5)),
        {"method.mu": 1.0, "method.temperature": 0.5},
    )
    yield case(
        "fedbn",
        lambda: of_clients(sent(its.trained("bn", "FedBN", batch_norm=True))),
        changes=[("defect: BatchNorm is known by 'bn' in names, unlike downsample.1 of torchvision's ResNets",
                  lambda: mock.patch.object(its.client("bn").clientBN, "set_parameters", all_but_batch_norm))],
        batch_norm=True,
    )  # fmt: skip

    def ditto() -> Values:
        server = its.trained("ditto", "Ditto", mu=0.5)
        return {**of_server(server), **of_clients(server, lambda client: client.model_per.parameters())}

    yield case("ditto", ditto, {"method.pull": 0.5})
    yield case("fedper", lambda: of_clients(sent(its.trained("per", "FedPer"))))
    yield case(
        "fedrep", lambda: of_clients(sent(its.trained("rep", "FedRep", plocal_epochs=3))), {"method.head_epochs": 3}
    )
    yield case(
        "feddyn",
        lambda: of_server(its.trained("dyn", "FedDyn", alpha=0.5)),
        {"method.alpha": 0.5},
        [("defect: α/2 ‖w − θ‖ in the place of its square", lambda: mock.patch("torch.norm", squared_norm))],
    )

    def pfedme() -> Values:
        server = its.trained("pFedMe", "pFedMe", lamda=15.0, K=5, p_learning_rate=0.01, local_learning_rate=0.05)
        own = of_clients(server, lambda client: getattr(client, "kept", client.personalized_params))
        return {**of_server(server), **own}

    yield case(
        "pfedme",
        pfedme,
        {
            "method.envelope": 15.0,
            "method.personal_steps": 5,
            "method.personal_rate": 0.01,
            "training.learning_rate": 0.05,
        },
        [
            ("defect: a weight decay of 0.001 that no option has", lambda: without_decay(its)),
            ("defect: w_i overwrites θ at the end of a task, as both are the same tensors", lambda: kept_personal(its)),
        ],
    )

    def fedbabu() -> Values:
        server = sent(its.trained("babu", "FedBABU", fine_tuning_epochs=0))
        for client in server.clients:
            client.fine_tuning_epochs = 2
            client.fine_tune(["base", "head"])
        return of_clients(server)

    yield case(
        "fedbabu",
        fedbabu,
        {"method.tune_epochs": 2},
        [("decision: fine-tuned from the model that the last client task received", lambda: one_round_less(its))],
    )
    after_training = (
        "decision: prototypes of the model after training, not of all states that it had in its epochs",
        lambda: collected_after_training(its),
    )
    by_samples = (
        "decision: means of prototypes by samples",
        lambda: by_class_counts(its, "proto"),
    )

    def fedproto() -> Values:
        server = its.trained("proto", "FedProto", lamda=1.0)
        return {**of_clients(server), **predictions(server)}

    yield case(
        "fedproto",
        fedproto,
        {"method.pull": 1.0},
        [after_training, by_samples],
    )
    yield case(
        "fedpac",
        lambda: of_clients(sent(its.trained("pac", "FedPAC", lamda=1.0))),
        {"method.head_epochs": 1, "method.head_learning_rate": problem.RATE, "method.alignment": 1.0},
        [
            ("decision: means of centroids by samples", lambda: by_class_counts(its, "pac")),
            (
                "defect: heads are mixed in place, so that later clients mix heads that are mixed already",
                lambda: copied_heads(its),
            ),
        ],
    )
    yield case(
        "fedala",
        lambda: of_server(its.trained("ala", "FedALA", rand_percent=100, layer_idx=2, eta=1.0)),
        {"method.layers": 1, "method.weight_rate": 1.0, "training.batch_size": max(problem.SIZES)},
        batch=max(problem.SIZES),  # one mini-batch: which end the first learning of W makes no difference
    )

    def perfedavg() -> Values:
        return of_server(its.trained("peravg", "PerAvg", local_epochs=problem.EPOCHS // 2))

    yield case(
        "perfedavg",
        perfedavg,
        {"method.adaptation_rate": problem.RATE},
        [("start: both mini-batches of a step are the same", lambda: same_halves(its))],
    )
    yield case(
        "fedcp",
        lambda: conditional(its.trained("cp", "FedCP", lamda=5.0)),
        {"method.discrepancy": 5.0},
        [
            ("decision: the softmax of the print, without Gumbel noise", without_noise),
            ("start: the same first values of the policy", lambda: first_policy(its)),
            (
                "decision: before its first task the policy sees the head, not random numbers",
                lambda: first_context(its),
            ),
        ],
    )


# -- changes ---------------------------------------------------------------------------------------------------------


def all_but_batch_norm(client: Any, model: nn.Module) -> None:
    """PFLlib's, with the names of BatchNorm's layers in the place of "bn"."""
    own = {name for name, layer in client.model.named_modules() if isinstance(layer, nn.BatchNorm1d)}
    for (name, new), old in zip(model.named_parameters(), client.model.parameters(), strict=True):
        if name.rpartition(".")[0] not in own:
            old.data = new.data.clone()


def squared_norm(values: Tensor, power: int = 2) -> Tensor:
    return values.square().sum()


def without_decay(its: Checkout) -> AbstractContextManager[Any]:
    module = its.client("pFedMe")
    optimizer = module.pFedMeOptimizer
    return mock.patch.object(module, "pFedMeOptimizer", lambda *given, **options: optimizer(*given, **options, mu=0.0))


def kept_personal(its: Checkout) -> AbstractContextManager[Any]:
    def update(client: Any, model: nn.Module, values: Sequence[Tensor]) -> None:
        client.kept = [parameter.data.clone() for parameter in client.personalized_params]
        its.client_base.Client.update_parameters(client, model, values)

    return mock.patch.object(its.client("pFedMe").clientpFedMe, "update_parameters", update, create=True)


def one_round_less(its: Checkout) -> AbstractContextManager[Any]:
    server = its.server("babu").FedBABU
    train = server.train

    def shorter(self: Any) -> None:
        self.global_rounds -= 1
        train(self)

    return mock.patch.object(server, "train", shorter)


def collected_after_training(its: Checkout) -> AbstractContextManager[Any]:
    client = its.client("proto").clientProto
    train = client.train

    def train_and_collect(self: Any) -> None:
        train(self)
        self.collect_protos()

    return mock.patch.object(client, "train", train_and_collect)


def by_class_counts(its: Checkout, module: str) -> AbstractContextManager[Any]:
    def mean(of_clients: Sequence[Mapping[int, Tensor]]) -> dict[int, Any]:
        sums: dict[int, Any] = defaultdict(list)
        counts: dict[int, int] = defaultdict(int)
        for (_, labels), own in zip(problem.clients(), of_clients, strict=True):
            for label, prototype in own.items():
                count = int((labels == label).sum())
                sums[label] = count * prototype + sums.get(label, 0)
                counts[label] += count
        for label, count in counts.items():
            sums[label] = sums[label] / count
        return sums

    return mock.patch.object(its.server(module), "proto_aggregation", mean)


def copied_heads(its: Checkout) -> AbstractContextManager[Any]:
    server = its.server("pac").FedPAC
    mix = server.aggregate_and_send_heads

    def of_copies(self: Any) -> None:
        self.uploaded_heads = copy.deepcopy(self.uploaded_heads)
        mix(self)

    return mock.patch.object(server, "aggregate_and_send_heads", of_copies)


def same_halves(its: Checkout) -> AbstractContextManager[Any]:
    def load(client: Any, batch_size: int | None = None) -> list[tuple[Tensor, Tensor]]:
        return [(torch.cat([x, x]), torch.cat([y, y])) for x, y in problem.batches(client.id)]

    return mock.patch.object(its.client("peravg").clientPerAvg, "load_train_data", load)


def without_noise() -> AbstractContextManager[Any]:
    return mock.patch("torch.nn.functional.gumbel_softmax", lambda values, dim, **options: values.softmax(dim))


def first_policy(its: Checkout) -> AbstractContextManager[Any]:
    selection = its.server("cp").ConditionalSelection
    start = selection.__init__
    with torch.random.fork_rng():
        policy: Any = extended(FedCP(), problem.network(), seed=0).get_submodule("policy")

    def with_values(self: Any, *given: Any) -> None:
        start(self, *given)
        for own, value in zip(self.parameters(), policy.parameters(), strict=True):
            own.data.copy_(swapped(value.data))

    return mock.patch.object(selection, "__init__", with_values)


def swapped(values: Tensor) -> Tensor:
    """The two halves of the pairs in the other order."""
    return torch.cat(values.chunk(2)[::-1])


def first_context(its: Checkout) -> AbstractContextManager[Any]:
    client = its.client("cp").clientCP
    start = client.__init__

    def with_context(self: Any, *given: Any, **options: Any) -> None:
        start(self, *given, **options)
        self.context = self.model.model.head.weight.detach().sum(dim=0, keepdim=True)

    return mock.patch.object(client, "__init__", with_context)


def conditional(server: Any) -> Values:
    """Body, both heads and policy of every client, in raysim's order."""

    def parameters(client: Any) -> list[Tensor]:
        own = client.model
        policy = [swapped(value.detach()) for value in own.gate.cs.parameters()]
        return [*own.model.base.parameters(), *own.model.head.parameters(), *own.head_g.parameters(), *policy]

    return of_clients(server, parameters)
