"""Answers for the machine learning reproducibility checklist (Pineau et al., version 2.0), from the runs' folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raysim.comparison.markdown import as_text
from raysim.config.options import show
from raysim.config.run_config import flatten
from raysim.paper.collected import Paper
from raysim.paper.instructions import environments, unrepeatable
from raysim.results.measures import TAIL, How
from raysim.results.model_file import MODEL_NAME
from raysim.storage.checkpoint import newest_first
from raysim.storage.folder_files import is_there
from raysim.units import counted, duration, number
from raysim.workloads.splits.split_options import OPTIONS_OF_PARTITIONS

SOURCE = "https://www.cs.mcgill.ca/~jpineau/ReproducibilityChecklist-v2.0.pdf"
UNKNOWN = "**Not known from the runs**: "
SUMMED_UP: Mapping[How, str] = {
    "last": "last round",
    "best": "best round",
    "validated": "round with the best validation accuracy",
    "average": "mean of all judged rounds",
    "tail": f"mean of the last {TAIL} judged rounds",
    "spread": f"standard deviation of the last {TAIL} judged rounds",
    "epochs": "at the local epochs that it names",
    "cost": "what it cost to reach",
    "gain": "client by client against training alone",
}
"""How a measure sums up a run → its words."""
WINDOWS = ("text", "tinyshakespeare", "shakespeare", "har")
"""Workloads whose samples are windows of recordings or texts, which overlap with their neighbors."""
Answer = Callable[[Paper], str]


def page(paper: Paper) -> str:
    """The checklist as Markdown: questions in their order, those that folders cannot answer said to be so."""
    lines = [
        "# Reproducibility checklist",
        f"The questions of the [machine learning reproducibility checklist 2.0]({SOURCE}), shortened, and what the "
        "runs' folders say. What they cannot say is left to the authors.",
    ]
    for heading, questions in QUESTIONS.items():
        lines += [f"## {heading}", *(f"**{question}** {as_text(answer(paper))}" for question, answer in questions)]
    return "\n\n".join(lines) + "\n"


def _method(paper: Paper) -> str:
    names = dict.fromkeys(_setting(paper, "method.name"))
    return (
        f"{', '.join(names)}, as `python -m raysim.launch --method NAME --help` and raysim's page of methods describe "
        "them (paper, equations, departures). " + UNKNOWN + "the description in the paper itself."
    )


def _complexity(paper: Paper) -> str:
    values = {show(run.facts.summary.get("model_values")) for run in paper.runs}
    return f"Values of the model: {', '.join(sorted(values))}; bytes sent and seconds stand in each `summary.json`."


def _statistics(paper: Paper) -> str:
    facts, table = paper.first.facts, paper.first.result.clients
    known = {"client", "samples"} <= set(table)
    shares = table.drop_duplicates("client")["samples"].dropna().tolist() if known else []
    clients = int(facts.summary.get("clients") or 0)
    whose = "in all" if len(shares) == clients else f"of the {len(shares)} that took part"
    samples = f", {number(sum(shares))} training samples {whose} ({_range(shares)})" if shares else ""
    return f"{facts.data}: {counted(clients, 'client')}{samples}; `partition.csv` has every client."


def _range(values: Sequence[float]) -> str:
    return f"{number(min(values))} to {number(max(values))} a client"


def _splits(paper: Paper) -> str:
    flat = flatten(paper.first.facts.config)
    partition, local = str(flat.get("workload.partition")), flat.get("workload.local_test")
    read = ("alpha",) if partition == "auto" else OPTIONS_OF_PARTITIONS.get(partition, ())
    share = () if local == "global" else ("test_share",)  # else nothing is cut off for local tests
    names = ("partition", *read, *share, "validation_share", "local_test", "limit")
    found = {name: show(flat[f"workload.{name}"]) for name in names if f"workload.{name}" in flat}
    if partition == "auto":
        found["partition"] = "auto (clients that the data names, else dirichlet)"
    told = ", ".join(f"{name} {value}" for name, value in found.items()) or "those of the data set"
    return f"{told}; the split follows from the seed, and {_held_out(flat)}."


def _held_out(flat: Mapping[str, Any]) -> str:
    """The sentence on whether clients train on what they are judged by (docs/data.md, Text and Signals)."""
    windows = flat.get("workload.name") in WINDOWS and flat.get("workload.task") != "classification"
    cut = {
        "local test": flat.get("workload.local_test") != "global",
        "validation": bool(flat.get("workload.validation_share")),
    }
    drawn = " and ".join(name for name, there in cut.items() if there)
    if not windows or not drawn or flat.get("workload.partition") in ("auto", "sites"):
        return "no client trains on validation or test data"
    length, stride = flat.get("workload.length"), flat.get("workload.stride")
    apart = isinstance(length, int) and isinstance(stride, int) and stride > length  # which LEAF's layout does not read
    return (
        f"{drawn} data are windows that were drawn at random, which {'may ' if apart else ''}overlap with those that "
        "clients train on; no client trains on the global test data"
    )


def _preprocessing(paper: Paper) -> str:
    augment = dict.fromkeys(_setting(paper, "workload.augment"))
    told = f"Augmentation: {', '.join(augment)}. " if augment else ""
    return told + "All options of the data stand in each `config.yaml`. " + UNKNOWN + "what was left out before."


def _link(paper: Paper) -> str:
    facts = paper.first.facts
    if facts.published is not None:
        return f"{facts.published.source} ({facts.published.license}); digests in `croissant.json`."
    if facts.summary.get("synthetic"):
        return "The data is made up by raysim from the seed."
    if unrepeatable(paper.first):
        return UNKNOWN + "the data was given in Python; its digest is in the proof."
    return f"{facts.data}: `croissant.json` says what raysim knows of it. " + UNKNOWN + "a link to other files."


def _dependencies(paper: Paper) -> str:
    several = [name for name, values in environments(paper).items() if len(values) > 1]
    more = f" The runs differ in: {', '.join(several)}." if several else ""
    return f"`requirements.txt`, from `environment.json` of the first run.{more}"


def _code(paper: Paper) -> str:
    commits = environments(paper).get("commit", [])
    dirty = any(run.facts.environment.get("dirty") for run in paper.runs)
    changed = " with changes that no commit holds" if dirty else ""
    text = f"raysim, commit {', '.join(commits) or 'not recorded'}{changed}. "
    return text + (unrepeatable(paper.first) or "No other code was used.")


def _models(paper: Paper) -> str:
    files = {str(run.facts.settings.get("model.weights_file") or "") for run in paper.runs} - {""}
    begun = f"Runs began from weights in {', '.join(sorted(files))}. " if files else "No pretrained weights. "
    without = [run.facts.folder for run in paper.runs if not is_there(run.facts.folder / MODEL_NAME)]
    if not without:
        return f"{begun}The trained model of each run is its `{MODEL_NAME}`."
    if len(without) < len(paper.runs):
        begun += f"The trained model of {len(paper.runs) - len(without)} of {len(paper.runs)} runs is `{MODEL_NAME}`. "
    own = [folder for folder in without if newest_first(folder / "checkpoints")]
    if own:
        begun += "No file" if len(own) == len(paper.runs) else f"In {len(own)} of {len(paper.runs)} runs no file"
        begun += (
            " holds one model for all clients: the model that a client is judged by is made of the last of the run's "
            "`checkpoints/` (`raysim.load_model(FOLDER, client=0)`). "
        )
    if lost := len(without) - len(own):
        begun += f"{UNKNOWN}the trained models of {counted(lost, 'run')}, which are not kept."
    return begun.strip()


def _commands(paper: Paper) -> str:
    return "`README.md`: three commands; `commands.md`: the command of every run beside the head of its proof."


def _hyperparameters(paper: Paper) -> str:
    text = f"All options of all {len(paper.runs)} runs stand in their `config.yaml`. "
    return text + UNKNOWN + "which values were tried and how they were chosen; add the folders of the searches."


def _runs(paper: Paper) -> str:
    rows = [f"{row}: {counted(len(own), 'run')}" for row, own in paper.rows.items()]
    judged = sorted({int(run.result.rounds["loss"].count()) for run in paper.runs if "loss" in run.result.rounds})
    often = f" Judged rounds of a run: {', '.join(map(str, judged))}." if judged else ""
    return f"{'; '.join(rows)}.{often} {UNKNOWN}runs that were made and are not given."


def _measure(paper: Paper) -> str:
    told = [f"`{measure.name}` ({measure.column}, {SUMMED_UP[measure.how]})" for measure in paper.measures]
    return f"{', '.join(told)}; differences are paired by seed."


def _variation(paper: Paper) -> str:
    fewest = min(map(len, paper.rows.values()))
    if fewest < 2:
        return "At least one row has a single seed, of which no variation can be told."
    return f"Mean ± standard deviation over at least {fewest} seeds; differences with Student's 95 % interval."


def _runtime(paper: Paper) -> str:
    seconds = [float(run.facts.summary["seconds"]) for run in paper.runs if run.facts.summary.get("seconds")]
    mean = duration(sum(seconds) / len(seconds)) if seconds else "not recorded"
    energy = any("joules" in run.result.rounds for run in paper.runs)
    told = "energy of the simulated devices is the column joules" if energy else "energy was not measured"
    return f"Rounds of a run took {mean} on average; {told}."


def _machine(paper: Paper) -> str:
    found = environments(paper)
    facts = [f"{name} {', '.join(found[name])}" for name in ("cpu", "cpu_count", "platform", "python") if name in found]
    return "; ".join(facts) + "."


def _setting(paper: Paper, path: str) -> list[str]:
    return [show(run.facts.settings[path]) for run in paper.runs if path in run.facts.settings]


def _unknown(text: str) -> Answer:
    return lambda paper: UNKNOWN + text


QUESTIONS: dict[str, list[tuple[str, Answer]]] = {
    "Models and algorithms": [
        ("A clear description of the setting, algorithm and model?", _method),
        ("A clear explanation of any assumptions?", _unknown("the authors say them.")),
        ("An analysis of the complexity?", _complexity),
    ],
    "Theoretical claims": [
        ("A clear statement of each claim, and a complete proof?", _unknown("runs hold no theory.")),
    ],
    "Data sets": [
        ("The relevant statistics, such as the number of examples?", _statistics),
        ("The details of train, validation and test splits?", _splits),
        ("Data that were excluded, and all steps of preprocessing?", _preprocessing),
        ("A link to a downloadable version of the data?", _link),
        ("For new data, how it was collected and checked?", _unknown("the publisher of the data says it.")),
    ],
    "Code": [
        ("A specification of dependencies?", _dependencies),
        ("Training and evaluation code?", _code),
        ("Trained and pretrained models?", _models),
        ("A table of results with the precise command of each?", _commands),
    ],
    "Results": [
        ("The range of hyperparameters, how the best was selected, and all that were used?", _hyperparameters),
        ("The exact number of training and evaluation runs?", _runs),
        ("A clear definition of the measure?", _measure),
        ("Results with central tendency and variation?", _variation),
        ("The average runtime of each result, or its energy?", _runtime),
        ("The computing infrastructure?", _machine),
    ],
}
"""Part of the checklist → its questions, each with what answers it."""
