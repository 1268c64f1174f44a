"""The pages of a paper's folder: how a stranger repeats a run, all commands, and the packages to install."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raysim.comparison.markdown import as_text
from raysim.config import registry
from raysim.config.run_config import flatten
from raysim.paper.collected import Paper, PaperRun
from raysim.report.settings_line import repeat_command, settings_line
from raysim.storage.environment import PACKAGES
from raysim.storage.origin import read_origin
from raysim.units import counted

CONTENTS = {
    "table.md": "the tables; `table.tex` the same for a paper (booktabs), `table*.csv` its numbers, runs to six digits",
    "curves.svg": "means over seeds by round, in the band of their 95 % interval; `curves.pdf` the same",
    "commands.md": "the command and the head of the proof of every run",
    "requirements.txt": "the packages and versions that the runs were computed with",
    "croissant.json": "the data set, its split and what is known of its fitness (Croissant with RAI)",
    "checklist.md": "answers for a reproducibility checklist",
    "ro-crate-metadata.json": "all files with digests, software, settings and data (RO-Crate)",
}


def readme(paper: Paper, source: str, drawn: bool) -> str:
    """The page that a stranger reads first.

    Args:
        source: as of :func:`requirements`.
        drawn: whether there are curves.
    """
    run = paper.first
    seeds = {row: ", ".join(str(one.seed) for one in own) for row, own in paper.rows.items()}
    rows = "\n".join(f"- {as_text(row)}: seeds {own}" for row, own in seeds.items())
    listed = "\n".join(f"| `{name}` | {text} |" for name, text in CONTENTS.items() if drawn or name != "curves.svg")
    return f"""# {as_text(paper.title)}

{counted(len(paper.runs), "run")} of [raysim](requirements.txt), which simulates federated learning:

{rows}

## Repeat a run

{_repeat(run, source)}

| file | what is in it |
|---|---|
{listed}
| `{run.place}/` and the like | the folder of each run: settings, tables, model, proof |
"""


def _repeat(run: PaperRun, source: str) -> str:
    """The three commands, or why there are none."""
    if why := as_text(unrepeatable(run)):
        return f"{why} The folder can still be checked: `python -m raysim.verify {run.place}`."
    fetch = list[str]()
    if (data := run.facts.published) is not None:
        how = data.how or f"`python -m raysim.data fetch {data.name}` brings it"
        fetch.append(f"The data is {data.title} ({data.license}), from {data.source}; {how}.\n\n")
    commit = run.facts.environment.get("commit")
    if not source:
        fetch.append(
            f"`requirements.txt` names raysim by its version; where no index has it, install commit "
            f"{commit or 'of that version'} from its repository.\n\n"
        )
    check = f"python -m raysim.verify again --head {run.facts.head}" if run.facts.head else "cat again/summary.json"
    return f"""In this folder, with Python {run.facts.versions.get("Python", "")}:

```sh
pip install -r requirements.txt
python -m raysim.launch --config {run.place}/config.yaml --output again
{check}
```

{"".join(fetch)}The last line says `equal` where the new run has the same settings, tables, states and model, bit for
bit; another kind of processor can give other last digits (`environment.json` in each run's folder names it). Every
other run is repeated with its own folder, see `commands.md`."""


def unrepeatable(run: PaperRun) -> str:
    """Why no command repeats a run; empty: one does."""
    if taken := read_origin(run.facts.folder).get("rounds"):
        return (
            f"It is a replay whose first {taken} rounds are those of another run, with other settings, so that no "
            "command repeats it."
        )
    flat = flatten(run.facts.config)
    names = {kind: str(flat.get(f"{kind}.name")) for kind in registry.KINDS}
    if given := [kind for kind, name in names.items() if name in registry.GIVEN[kind]]:
        return (
            f"Its {' and '.join(given)} came from Python code, which is not in this folder, so no command repeats it."
        )
    if own := [f"{kind} {name}" for kind, name in names.items() if ":" in name]:
        return f"It uses code that is not raysim's ({', '.join(own)}), which is not in this folder."
    return ""


def commands(paper: Paper) -> str:
    """Every run with its settings in a line, the command line that repeats it, and the head of its proof."""
    parts = ["# Commands of all runs"]
    for run in paper.runs:
        command, why = repeat_command(run.facts.config), as_text(unrepeatable(run))
        line = command or "Its settings hold signs that do not print."
        shown = why or (f"```sh\n{line}\n```" if command else line)
        parts += [
            f"## {run.place}",
            as_text(settings_line(run.facts.config, run.facts.summary)),
            shown,
            f"Or `python -m raysim.launch --config {run.place}/config.yaml --output again`. "
            f"Head of its proof: `{run.facts.head or 'none'}`.",
        ]
    return "\n\n".join(parts) + "\n"


def requirements(paper: Paper, source: str) -> str:
    """The packages of the first run as pip installs them, of those that raysim's folders name.

    Nothing vouches for ``environment.json``: a package that it names beside these stays out, as installing one runs it.

    Args:
        source: where raysim is installed from; empty: its version from a package index.
    """
    versions: dict[str, Any] = dict(paper.first.facts.environment.get("versions", {}))
    raysim = versions.pop("raysim", None)
    commit = paper.first.facts.environment.get("commit")
    lines = [f"# Python {paper.first.facts.environment.get('python')}, commit {commit or 'not known'} of raysim"]
    if source:
        lines.append(source if source.startswith("./") else f"raysim @ {source}")
    else:
        lines.append(f"raysim=={raysim}" if raysim else "raysim")
    for name, version in versions.items():
        if version:
            known = "" if name in PACKAGES else "# not a package that raysim needs: "
            lines.append(f"{known}{name}=={version.partition('+')[0]}")
    return "\n".join(lines) + "\n"


def environments(paper: Paper) -> Mapping[str, list[str]]:
    """Fact of the environment → its values over all runs, for the checklist."""
    found: dict[str, list[str]] = {}
    for run in paper.runs:
        facts = {name: run.facts.environment.get(name) for name in ("cpu", "cpu_count", "platform", "python", "commit")}
        for name, value in {**facts, **run.facts.versions}.items():
            if value is not None and str(value) not in found.setdefault(name, []):
                found[name].append(str(value))
    return found
