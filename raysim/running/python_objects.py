"""The config of a run whose method, model or data is given as Python objects."""

from __future__ import annotations

import dataclasses
import hashlib
import numbers
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim import seeds
from raysim.client_side.model_parts import check_types
from raysim.config import registry
from raysim.config.command_line import given_config
from raysim.config.conditions import own_models
from raysim.config.registry import Kind
from raysim.config.run_config import RunConfig, flatten, with_sections
from raysim.errors import ConfigError, warn
from raysim.results.given_again import gathered
from raysim.running.given_checks import check_functions, check_has_data, copied, copied_functions, made_model
from raysim.running.source_digest import identity_of, module_digest, own_classes, source_of
from raysim.workloads.given.given_data import GivenClients, GivenData, GivenModel
from raysim.workloads.given.labels import as_classes
from raysim.workloads.graphs.given_graphs import GatheredGraphs, GivenGraphs
from raysim.workloads.graphs.pyg_data import as_graph_classes

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.given.arrays import GatheredArrays
    from raysim.workloads.objective import Figure

SOURCE_NAME = "source.txt"
"""In a run's folder: the source of what was given as objects, for people to read; nothing reads it again."""


def config_of(  # noqa: PLR0913 - those of raysim.run
    method: object,
    resume: str | Path | None,
    options: Mapping[str, object],
    model: object = None,
    clients: object = None,
    test: object = None,
    loss: Figure | None = None,
    metrics: Mapping[str, Figure] | None = None,
) -> tuple[RunConfig, str]:
    """The config that Python objects and options make, and the source of the objects.

    Args:
        method: the name of a method, or a class or an instance of one's own; or a mapping of settings; None: that of
            the options, of the folder to continue, or FedAvg.
        resume: the run folder to continue, whose settings hold where none is given.
        options: settings by their short or full names, which win over those of ``method``.
        model: the name of a model, a module, what makes one, or a class or an instance with ``build``.
        clients: every client's data (:func:`raysim.workloads.given.arrays.gather`), or their number in a named
            workload.
        test: the global test set, or every client's.
        loss: in the place of the task's own loss.
        metrics: further figures of the tables, by name.

    Raises:
        ConfigError: an option is unknown or not allowed, or something is not what it should be.
        WorkloadError: the data is not sound, or does not fit the model.
    """
    objects = _Objects()
    settings = flatten(method) if isinstance(method, Mapping) else {}
    given, named, facts = flatten(options), dict[str, object](), dict[str, object]()
    defaults: dict[str, object] = {"method.name": "fedavg"} if method is None and resume is None else {}
    if resume is not None and not isinstance(resume, str | Path):
        raise ConfigError(f"resume: {resume!r} is not allowed. Allowed: the path of a run's folder, as text or a Path.")
    if method is not None and not isinstance(method, Mapping):
        objects.take_section("method", method, named)
    arrays: GatheredArrays | GatheredGraphs | None = None
    if isinstance(clients, numbers.Integral):
        facts["workload.clients"] = int(clients)
    elif clients is not None:
        arrays = gathered(clients, test)
        objects.classes["workload"] = GivenGraphs if isinstance(arrays, GatheredGraphs) else GivenData
        facts["workload.digest"] = arrays.digest()
        loss, metrics = objects.take_functions(loss, metrics or {}, facts)
        if resume is None and not isinstance(arrays, GatheredGraphs):  # else as it was
            defaults["workload.test_share"] = 0.0 if test is not None else 0.2
    elif further := [name for name, what in (("test", test), ("loss", loss), ("metrics", metrics)) if what is not None]:
        wrong = further[0]
        instead = "leave it out" if wrong == "test" else "choose a workload class whose federation has it (objective)"
        raise ConfigError(
            f"{wrong}: it goes with clients, the data to train on; a workload with a name brings its own. Give clients "
            f"too, or {instead}."
        )
    has_workload = any("workload.name" in source for source in (given, settings))
    check_has_data(model, clients, workload_named=has_workload or resume is not None)
    if model is not None and not objects.take_section("model", model, named):
        objects.take_model(model, facts)
    typed = [name for name in given if name in options]  # those of a section may be all that a run's file has
    config = given_config(defaults, settings, named, given, facts, resume=resume, own=objects.classes, typed=typed)
    if arrays is not None:
        config = with_sections(config, workload=config.workload.holding(arrays, functions=(loss, metrics or {})))
    if objects.classes.get("model") is GivenModel:
        config = with_sections(config, model=objects.held_model(config))
    if arrays is not None:
        section = config.workload
        config = with_sections(config, workload=_fitted(config))
        _warn_of_numbers(section)
    return config, "\n\n".join(objects.sources)


class _Objects:
    """Objects that Python code handed over: their classes, their sources, and the model."""

    def __init__(self) -> None:
        self.classes: dict[str, type[Any]] = {}
        self.sources: list[str] = []
        self._model: Any = None

    def take_section(self, kind: Kind, what: object, given: dict[str, object]) -> bool:
        """Put a method's or a model's name, or its class and the options of an instance, into ``given``."""
        if isinstance(what, str):
            given[f"{kind}.name"] = what
            return True
        cls = what if isinstance(what, type) else type(what)
        if not dataclasses.is_dataclass(cls) or (kind == "model" and not hasattr(cls, "build")):
            if kind == "model":
                return False
            raise ConfigError(
                f"method: {what!r} is not allowed. Allowed: a name ('fedavg'), a class or an instance of one's own "
                "(a dataclass, docs/methods-of-your-own.md), or a mapping of settings."
            )
        self.classes[kind] = cls
        if not isinstance(what, type):
            values = {entry.name: getattr(what, entry.name) for entry in dataclasses.fields(cls) if entry.init}
            given.update({f"{kind}.{name}": value for name, value in values.items()})
        self.sources.append(source_of(cls))
        return True

    def take_functions(
        self, loss: Figure | None, metrics: Mapping[str, Figure], given: dict[str, object]
    ) -> tuple[Figure | None, dict[str, Figure]]:
        """Name a loss and metrics, which are sent with the data; copies of them."""
        check_functions(loss, metrics)
        functions = {**({"loss": loss} if loss is not None else {}), **metrics}
        sources = [source_of(function) for function in functions.values()]
        self.sources += sources
        given["workload.loss"] = getattr(loss, "__qualname__", type(loss).__qualname__) if loss is not None else ""
        given["workload.metrics"] = tuple(metrics)
        identities = map(identity_of, functions.values())
        digest = hashlib.sha256("\n".join([*functions, *identities]).encode()).hexdigest()
        given["workload.code_digest"] = digest if functions else ""
        return copied_functions(loss, metrics)

    def take_model(self, model: Any, given: dict[str, object]) -> None:
        """Keep a copy of a module, or what makes one."""
        import torch

        if not callable(model):
            raise ConfigError(
                f"model: {model!r} is not allowed. Allowed: a name ('cnn'), a torch module, or a class or function "
                "that makes one."
            )
        self.classes["model"] = GivenModel
        self._model = copied(model) if isinstance(model, torch.nn.Module) else model
        given["model.class_name"] = getattr(model, "__qualname__", type(model).__qualname__)

    def held_model(self, config: RunConfig) -> GivenModel:
        """The config's model section with the model in it, and its digest."""
        import torch

        from raysim.workloads.models.classifier import has_batch_norm

        with seeds.kept_streams(seeds.number(config.seed, "model")):
            module = made_model(self._model, inputs_of(config), config.model.class_name)
        check_types(module)
        is_module = isinstance(self._model, torch.nn.Module)
        code = dict.fromkeys([*([] if is_module else [self._model]), *own_classes(module)])
        self.sources += map(source_of, code)
        digest = module_digest(module, map(identity_of, code), values=is_module)
        section: GivenModel = config.model
        return replace(section, digest=digest).holding(self._model, batch_norm=has_batch_norm(module))


def inputs_of(config: RunConfig) -> InputSpec:
    """The inputs that the model must fit, from a sketch of the data, or from the data where widths are not known."""
    stream = seeds.data_streams(config.seed)
    federation = config.workload.sketch(stream) if hasattr(config.workload, "sketch") else None
    if federation is None or not all(federation.input_spec(0).input_shape):
        federation = config.workload.load(stream)
    inputs: InputSpec = federation.input_spec(0)
    return inputs


def _fitted(config: RunConfig) -> GivenClients:
    """The config's data section with as many classes as the model has outputs, checked."""
    from raysim.client_side import process_state
    from raysim.workloads.given.fit import fitted, fitted_graphs

    section: GivenGraphs | GivenData = config.workload
    federation: Any = section.load(seeds.data_streams(config.seed))
    tested, traits = any(map(federation.test_samples, range(federation.clients))), config.method.traits
    if (own_models(config) or traits.local_tests) and not tested:
        name = registry.public_name("method", config.method)
        by_method = traits.personal or traits.local_tests
        judge = f"method {name}" if by_method else "training.batchnorm_statistics local"
        raise ConfigError(
            f"{judge} judges every client's model on the client's own test set, "
            "and there is none: set test_share=0.2 to cut it off each client's samples, or give test as a list with "
            "one for each client."
        )
    if isinstance(section, GivenGraphs) and not (
        len(federation.input_specs) == 1 and isinstance(config.model, GivenModel)
    ):
        return section  # the model is made for its inputs
    before = process_state.snapshot()
    with seeds.kept_streams(seeds.number(config.seed, "model")):
        module = config.model.build(federation.input_spec(0))
        if isinstance(section, GivenGraphs):
            changed: GivenClients = replace(section, classes=fitted_graphs(federation, module))
        else:
            kind, classes = fitted(federation, module, None if section.task == "auto" else section.task)
            changed = replace(section, task=kind, classes=classes)
    if found := process_state.put_back(before):
        raise ConfigError(f"model, loss or metrics, on two samples: {found}.")
    return changed.holding(section.held, functions=section.functions)


def _warn_of_numbers(section: GivenGraphs | GivenData) -> None:
    """Warn where labels that are whole numbers of a type for fractions are learned as numbers, and nothing says so."""
    graphs = isinstance(section, GivenGraphs)
    labels = section.held.labels() if graphs else section.held.labels
    if labels.dtype.kind != "f" or section.functions[0] is not None or getattr(section, "task", "auto") != "auto":
        return
    meant = "loss=torch.nn.functional.mse_loss" if graphs else "task='regression'"
    if advice := as_graph_classes(labels) if graphs else as_classes(labels):
        warn(
            "y holds whole numbers of a type for fractions (float), and they are learned as numbers: regression. "
            f"For classes give {advice}; if numbers are meant, say {meant}",
        )
