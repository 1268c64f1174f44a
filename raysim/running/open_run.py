"""The run folder before a run: a new one, or the one to resume, checked against the config."""

from __future__ import annotations

from pathlib import Path

from raysim.config.all_sections import DECIDED, LENGTH, ON_CLIENT_ERROR
from raysim.config.config_file import CONFIG_NAME, check_names, check_seal, read_config_file, stored_text
from raysim.config.registry import NO_CLASSES, Classes, names_of
from raysim.config.run_config import RunConfig, build, classes_of, differences, to_dict
from raysim.engine.checkpointing import check_rounds
from raysim.errors import ResultsError
from raysim.monitor import observers
from raysim.remote.address import is_remote, typed_path
from raysim.remote.places import new_folder
from raysim.results.given_again import check_digests
from raysim.running.own_sources import own_sources
from raysim.running.preflight import check_request
from raysim.storage import run_folder
from raysim.workloads.naming import data_name


def prepare(config: RunConfig, resume: str | Path | None = None) -> Path:
    """The run folder: a new one with config and environment in it, or the one to continue, checked against ``config``.

    Raises:
        ConfigError: its config.yaml is damaged.
        ResultsError: the folder to continue is no run, was made with other settings, or cannot have another number of
            rounds.
        UnreachableError: its remote folder does not answer.
        RaysimError: the run cannot be done as asked (raysim/running/preflight.py).
    """
    if resume is not None:
        return _resumed(config, Path(resume))
    observers.check(config.engine.observer)
    check_request(config)
    plain = to_dict(config)
    method, data = plain["method"]["name"], data_name(plain["workload"])
    if is_remote(config.output):
        path = new_folder(config.output)
    else:
        path = typed_path(config.output or run_folder.new_run_path(Path("runs"), method, data, config.seed))
    facts = run_folder.environment() | {"seed": config.seed}
    if sources := own_sources(config):
        facts["sources"] = {name: [digest] for name, digest in sources.items()}
    run_folder.RunFolder.create(path, stored_text(config), facts)
    return path.resolve()


def _resumed(config: RunConfig, path: Path) -> Path:
    folder = run_folder.RunFolder.open(path)
    check_seal(path / CONFIG_NAME)
    stored = stored_config(path, classes_of(config))
    check_digests(stored, config, path)
    if changed := _changed_results(stored, config):
        raise ResultsError(
            f"{path} was made with other settings, and going on with these would change its results:\n  "
            + "\n  ".join(changed)
            + "\nLeave them out to resume, or start a new run with --config "
            f"{path / CONFIG_NAME} and your changes"
        )
    observers.check(config.engine.observer)
    check_request(config)
    if stored.schedule.rounds != config.schedule.rounds:
        check_rounds(folder, config)  # the driver writes them (raysim/driver/drive.py)
    return path.resolve()


def _changed_results(stored: RunConfig, config: RunConfig) -> list[str]:
    """The settings (``name: old → new``) in which ``config`` would lead to other results than ``stored``."""
    free = [*LENGTH]
    if stored.engine.on_client_error == "fail":
        free.append(ON_CLIENT_ERROR)  # no client has failed so far, so every round is the same by either rule
    changed = [line for line in differences(stored, config) if line.partition(":")[0] not in free]
    if bool(stored.engine.gpus_per_client) != bool(config.engine.gpus_per_client):
        # How many share a GPU changes nothing; whether it is a GPU or a CPU changes how sums are rounded.
        old, new = stored.engine.gpus_per_client, config.engine.gpus_per_client
        changed.append(f"engine.gpus_per_client: {old:g} → {new:g}")
    return changed


def stored_config(path: Path, classes: Classes = NO_CLASSES) -> RunConfig:
    """The config that a run folder was made with.

    Args:
        path: the run folder.
        classes: those that are in use already; the folder may name no other code.
    """
    settings = read_config_file(path / CONFIG_NAME, run_folder=True)
    named = names_of(classes)
    check_names(settings, path / CONFIG_NAME, named)
    known = {kind: cls for kind, cls in classes.items() if settings.get(f"{kind}.name") == named[f"{kind}.name"]}
    return build([settings], known, decided=DECIDED)
