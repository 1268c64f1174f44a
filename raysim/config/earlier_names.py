"""Options that had another name in an earlier version: old configurations and command lines may still use it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from raysim.errors import ConfigError

RENAMED: Mapping[str, str] = {
    "attack.target": "attack.target_label",
    "engine.visit_deadline": "engine.task_deadline",
    "workload.data": "workload.path",
    "workload.data_dir": "workload.path",
}
"""Earlier path → what it is called now."""
GONE = ("engine.vectorise",)
"""Options that are no more; old configurations name them, switched off."""


def current(flat: Mapping[str, object]) -> dict[str, object]:
    """Settings by today's names, except those of a workload of one's own, which may call its options as it likes."""
    return current_of([*flat.items()], "config")


def current_of(given: Sequence[tuple[str, object]], source: str) -> dict[str, object]:
    """The same of (path, value), as one ``source`` gives them.

    Raises:
        ConfigError: an option is there twice, by both of its names say.
    """
    ours, found = ":" not in str(dict(given).get("workload.name")), dict[str, object]()
    for path, value in given:
        name = RENAMED.get(path, path) if ours else path
        if name in found:
            raise ConfigError(
                f"{source}: {name} is given twice, in two spellings, and only one would count. Leave one out."
            )
        found[name] = value
    for path in GONE:
        if found.get(path) in (False, "false"):
            del found[path]
    if "engine.tensorboard" in found and found.pop("engine.tensorboard") in (True, "true"):
        found.setdefault("engine.observer", ["tensorboard"])
    return found


def own_name(path: str, options: Collection[str]) -> str:
    """Today's path as a run with these options has it: one's own class may have one that ``RENAMED`` lists as old."""
    earlier = [old for old, new in RENAMED.items() if new == path and old in options]
    return earlier[0] if earlier and path not in options else path


def matching(name: str, options: Collection[str]) -> list[str]:
    """Today's paths, among these options, of an earlier path or the last part of one."""
    return [new for old, new in RENAMED.items() if name in (old, old.rpartition(".")[2]) and new in options]


def note(typed: str, path: str) -> list[str]:
    """One sentence if an option with this path was typed by an earlier name, else none."""
    section, _, name = typed.replace("-", "_").rpartition(".")
    last = path.rpartition(".")[2]
    if path not in RENAMED.values() or name == last:
        return []
    return [f"--{typed} is called --{path if section else last} now; the earlier name goes with the next release"]
