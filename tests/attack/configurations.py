"""Runs with options drawn at random from what each option allows, tiny and in this process."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin

from raysim.config import registry
from raysim.config.options import Option
from raysim.config.run_config import build, options_of
from raysim.errors import FINISHED, REFUSED, ConfigError
from raysim.running.simulation import run
from tests.attack.crash import Disk
from tests.attack.folders import Ending, launch, resume
from tests.attack.place import Attempt, Place
from tests.fingerprint import fingerprint
from tests.small_runs import words

MODELS: Mapping[str, Sequence[str]] = {
    "digits": ("logistic", "mlp"),
    "synthetic": ("logistic", "mlp", "cnn", "mobilenet"),
    "toy-graphs": ("spectral", "gin", "graphsage", "gin-star"),
}
"""Workload → models of its kind that are small."""
VALUES: Mapping[str, Sequence[object]] = {
    "training.batch_size": (1, 4, 7, 32),
    "training.learning_rate": (0.001, 0.01, 0.05),
    "training.steps_per_epoch": (0, 1, 2),
    "schedule.joins": ((), (1, 1), (2, 1), (1, 1, 1)),
    "schedule.epochs": (0, 1, 5),
    "workload.limit": (0, 40, 90),
    "workload.samples_per_client": (0, 12),
    "workload.view_samples": (5, 9),
    "workload.min_samples": (1, 2, 3),
    "method.neunet_rate": (0.0, 0.1, 1.0),
    "model.hidden": (2, 6, 8),
    "model.heads": (1, 2, 3),
    "model.layers": (1, 2),
    "model.width": (0.1, 0.2),
}
"""For options whose range alone would make a run long, or let it diverge."""
NOT_DRAWN = ("engine.", "model.weights_file", "workload.train_size", "workload.test_size", "workload.graphs_per_client")
DIVERGED = "NaN or infinite values"
"""Words of the message for a run whose numbers left their range, which no check can know before."""


def configuration(place: Place, random: Random) -> Attempt:
    """A run with random options; if it finishes, once more, as a whole or killed on the way and resumed."""
    folder, again = place.new(), place.new()
    settings = drawn(random)
    what = " ".join(words(settings))
    disk = Disk(folder, None, False, place.root, random)
    with disk.watched():  # to count the operations on files
        ending = launch([*words(settings), f"--output={folder}"])
    if ending.code != FINISHED:
        return Attempt(what, _refusal(ending, folder), ending.error)
    if random.random() < 0.5:
        second = launch([*words(settings), f"--output={again}"])
    else:
        moment = random.randrange(place.creation + 1, disk.operations)
        what += f" (killed at operation {moment})"
        killed = Disk(place.new(), moment, False, again, random)
        with killed.watched(), warnings.catch_warnings(action="ignore"):  # options that a split does not read
            run(build([settings | {"output": str(killed.folder)}]))
        if killed.crashed:
            shutil.rmtree(killed.folder, ignore_errors=True)
        second = resume(again)
    fault = second.fault_of_run(again, fingerprint(folder)) or ("refused the second time" if second.code else "")
    if not fault:
        shutil.rmtree(folder)
        shutil.rmtree(again)
    return Attempt(what, fault, second.error)


def _refusal(ending: Ending, folder: Path) -> str:
    """What is wrong with a run that did not finish, "" if nothing is."""
    if fault := ending.fault():
        return fault
    if ending.code == REFUSED:
        return "a folder was left" if folder.exists() else ""
    return "" if DIVERGED in ending.error else f"exit code {ending.code}"


def drawn(random: Random) -> dict[str, object]:
    """Path → value of the options of a run that takes a second."""
    workload = random.choice(list(MODELS))
    method = random.choice(list(registry.known("method")))
    named = getattr(registry.resolve("method", method), "defaults", {})
    if named.get("workload.name") == "toy-graphs" and random.random() < 0.9:  # a method for graphs
        workload = "toy-graphs"
    fitting = MODELS[workload] if random.random() < 0.95 else [name for names in MODELS.values() for name in names]
    own = named.get("model.name")
    model = own if own in fitting and random.random() < 0.7 else random.choice(list(fitting))
    names = {"method": method, "workload": workload, "model": str(model)}
    settings: dict[str, object] = {f"{kind}.name": name for kind, name in names.items()}
    settings |= {
        "workload.clients": random.randint(2, 4),
        "schedule.rounds": random.randint(2, 4),
        "schedule.local_epochs": random.randint(1, 2),
        "engine.backend": "inline",
        "engine.checkpoint_every": random.randint(1, 3),
        "engine.keep_checkpoints": random.randint(1, 2),
        "engine.merge_single_steps": random.random() < 0.5,
        "seed": random.randrange(1000),
        "pictures": False,
    }
    sizes: dict[str, dict[str, object]] = {
        "digits": {"workload.limit": 80},
        "synthetic": {
            "workload.train_size": 60,
            "workload.test_size": 20,
            "workload.height": 8,
            "workload.width": 8,
            "workload.classes": 3,
            "workload.channels": 1,
        },
        "toy-graphs": {"workload.graphs_per_client": 12, "model.hidden": 8},
    }
    settings |= sizes[workload]
    classes: dict[str, type[Any]] = {kind: registry.resolve(kind, names[kind]) for kind in registry.KINDS}
    share = random.choice([0.05, 0.15, 0.3])  # of the options; of many drawn ones some two contradict each other
    for path, option in options_of(classes).items():
        if path not in settings and not path.startswith(NOT_DRAWN) and random.random() < share:
            for value in _value(option, random):
                settings[path] = value
    if settings.get("schedule.joins"):
        joins = settings["schedule.joins"]
        assert isinstance(joins, tuple)
        settings |= {"workload.clients": sum(joins), "schedule.join_every": 2}
    if settings.get("schedule.epochs"):
        del settings["schedule.rounds"]
    return settings


def _value(option: Option, random: Random) -> list[object]:
    """One allowed value; none for text and lists that nothing describes."""
    if option.path in VALUES:
        return [random.choice(VALUES[option.path])]
    if get_origin(option.type) is Literal:
        return [random.choice(get_args(option.type))]
    if option.type is bool:
        return [random.random() < 0.5]
    schema = option.schema()
    if option.type is int and "minimum" in schema:
        return [random.randint(schema["minimum"], schema["minimum"] + 4)]
    if option.type is float and isinstance(option.default, (int, float)):
        bounds = [float(schema[limit]) for limit in ("minimum", "maximum") if limit in schema]
        scaled = option.default * random.uniform(0.3, 1.5)
        inside = scaled if _allows(option, scaled) else option.default
        return [random.choice([option.default, inside, *bounds])]
    return []


def _allows(option: Option, value: float) -> bool:
    try:
        option.check(value)
    except ConfigError:
        return False
    return True
