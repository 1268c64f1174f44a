"""The trained model of a run, read back from the run's folder.

A method with one global model leaves it in a file at the end (raysim/results/model_file.py). Where every client
has a model of its own (``Traits.personal``, or clients of different tasks), and where a run has not ended, models are
made of the last checkpoint, which holds all that they consist of already.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.config.all_sections import DECIDED
from raysim.config.conditions import own_models
from raysim.config.config_file import CONFIG_NAME, check_names, read_config_file, without_calls
from raysim.config.run_config import RunConfig, build, with_sections
from raysim.errors import ConfigError, ResultsError
from raysim.remote.places import run_folder
from raysim.results.model_file import MODEL_NAME, global_model, has_global_model, module_with, tensors_of
from raysim.storage.run_folder import RunFolder
from raysim.workloads.given.given_data import GivenClients, GivenModel

if TYPE_CHECKING:
    import torch

Trust = bool | type[Any] | Collection[type[Any]]


def load_model(
    folder: str | Path,
    client: int | None = None,
    *,
    trust: Trust = False,
    model: object = None,
    clients: object = None,
    test: object = None,
) -> torch.nn.Module:
    """The trained model of a run, on the CPU and in evaluation mode.

    Args:
        folder: what the run has written, or its remote address. Of a run that has not ended, the model of its last
            checkpoint.
        client: whose model, as this client is judged by it; None: the global model.
        trust: whose code may be imported, since importing runs it. raysim's own methods, workloads and models need
            none; a class of your own that config.yaml names is given here (``trust=MyModel``, several in a list), or
            True stands for whatever it names.
        model: of a run whose model was given in Python, such a module, or what makes one.
        clients: of a run whose data was given in Python, that data, which the model of a client needs.
        test: what was given with it.

    Raises:
        ConfigError: config.yaml cannot be read, or names code that ``trust`` does not.
        ResultsError: the folder is no run, has no global model, or no such client, or the data is not that of the run.
        CheckpointError: no checkpoint can be read, or the model does not fit the config.
    """
    path = run_folder(folder)
    RunFolder.open(path)
    config = trusted_config(path, trust)
    if model is not None and hasattr(config.model, "holding"):
        config = with_sections(config, model=config.model.holding(model))
    if clients is not None:
        config = _with_data(config, path, clients, test)
    return model_of(config, path, client)


def model_of(config: RunConfig, folder: Path, client: int | None = None) -> torch.nn.Module:
    """The same of a run whose config is known."""
    if client is None and own_models(config):
        raise ResultsError(f"{folder}: every client has a model of its own. {_of_client(config, folder)}")
    if client is None and (folder / MODEL_NAME).exists():
        return global_model(config, folder)
    from raysim.client_side.worker import Worker, fixed_threads
    from raysim.engine.load_federation import load_federation
    from raysim.results.newest_state import newest_state
    from raysim.workloads.parallel_map import Sequential

    federation = load_federation(config, Sequential())
    if client is None and not has_global_model(config, federation):
        raise ResultsError(
            f"{folder}: the clients of {federation.name} have different tasks, and each a head of its own. "
            f"{_of_client(config, folder)}"
        )
    if client is not None and client not in range(federation.clients):
        raise ResultsError(f"{folder}: there is no client {client!r}. Allowed: 0 to {federation.clients - 1}.")
    worker, chosen = Worker(config, federation), int(client or 0)
    state = newest_state(RunFolder(folder), worker, () if client is None else (chosen,))
    with fixed_threads(config.engine.threads):
        deployed = worker.deployed(chosen, worker.method.message(state.server, chosen), state.clients.get(chosen))
    return module_with(tensors_of(deployed.module), config, federation.input_spec(chosen), folder)


def trusted_config(folder: Path, trust: Trust) -> RunConfig:
    """The config that a run was made with.

    Raises:
        ConfigError: it cannot be read, or names code that ``trust`` does not.
    """
    file = folder / CONFIG_NAME
    settings = read_config_file(file, run_folder=True)
    if trust is not True:
        classes = [trust] if isinstance(trust, type) else list(trust or ())
        wrong = [given for given in classes if not isinstance(given, type)]
        if wrong:
            raise ConfigError(
                f"trust: {wrong[0]!r} is not allowed. Allowed: True, False, a class or a list of classes."
            )
        given = {f"{cls.__module__}:{cls.__qualname__}" for cls in classes}
        named = {path: name for path, name in settings.items() if isinstance(name, str) and name in given}
        advice = (
            "give its class (trust=MyClass, imported from the module of that name), or trust=True for all that it names"
        )
        check_names(settings, file, named, advice=advice)
        settings = without_calls(settings, file)
    return build([settings], decided=DECIDED)


def _with_data(config: RunConfig, folder: Path, clients: object, test: object) -> RunConfig:
    """The config with the data that was given to the run in it."""
    from raysim.results.given_again import check_digest, gathered

    if not isinstance(config.workload, GivenClients):
        raise ConfigError(f"clients: {folder} names its workload, {config.workload.name}, which is read. Leave it out.")
    data = gathered(clients, test)
    check_digest("data", config.workload.digest, data.digest(), folder, "give the same clients and test")
    return with_sections(config, workload=config.workload.holding(data))


def _of_client(config: RunConfig, folder: Path) -> str:
    model = ", model=…" if isinstance(config.model, GivenModel) else ""
    clients = ", clients=…" if isinstance(config.workload, GivenClients) else ""
    return (
        "Name one, and its model is made of the last checkpoint: result.client_model(0), or "
        f"raysim.load_model({str(folder)!r}, client=0{model}{clients})"
    )
