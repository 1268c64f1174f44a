"""What is not loaded where nobody needs it: importing torch, Ray or pandas takes seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TABLES = {"pandas", "sklearn", "matplotlib"}
CHECK = "from raysim.config.run_config import build; from raysim.running.preflight import check_request\n"
LAUNCH = "from raysim.launch import main\n"
SMALL = (
    "assert not main(['--method=fedavg', '--model=mlp', '--clients=2', '--engine.backend=inline', '--limit=100',"
    " '--rounds=1', '--pictures=false', '--output=run'])"
)
CASES: dict[str, tuple[str, set[str]]] = {
    "the package": ("import raysim", {"torch", "ray", "numpy", *TABLES}),
    "names of a method": (
        "from raysim import Context, GlobalModel, Message, Method, Traits, Update, Updates, load_model",
        {"torch", "ray", *TABLES},
    ),
    "all names": (
        "from raysim.config import registry\nfor kind in registry.KINDS: registry.known(kind)",
        {"torch", "ray", "numpy", "raysim.methods.fedavg", "raysim.workloads.images.digits"},
    ),
    "options of models and workloads": (
        "from raysim.config.registry import known, resolve\n"
        "for kind in ('model', 'workload'): [resolve(kind, name)() for name in known(kind)]",
        {"torch", "torchvision", "torch_geometric", "networkx", *TABLES},
    ),
    "what only reads options": (
        LAUNCH + "for word in ('--list', '--help', '--print-config'): assert main([word, '--workload=cifar10']) == 0",
        {"torch", "ray", *TABLES},
    ),
    "a check before the start": (
        CHECK + "for work, model in (('digits', 'cnn'), ('synthetic', 'mlp'), ('toy-graphs', 'gin')):\n"
        "    check_request(build([{'method.name': 'fedavg', 'workload.name': work, 'model.name': model}]))",
        {"torch", "ray", "networkx", *TABLES},
    ),
    "the list of commands": ("from raysim.__main__ import main; main([])", {"torch", "ray", *TABLES}),
    "progress without a terminal": (
        "import io; from raysim.monitor.progress import Progress\n"
        "with Progress('toy', 2, 10, stream=io.StringIO()) as p: p.note('x'); p.round_started(1, 5, 10)",
        {"rich"},
    ),
    "the live page": ("import raysim.ui.__main__", {"torch", "ray"}),
    "help of spectra": (
        "from raysim import spectra\ntry: spectra.main(['--help', '--workload', 'tudataset'])\n"
        "except SystemExit as end: assert end.code == 0",
        {"torch", "ray", *TABLES},
    ),
    # Loading matplotlib and torch's compiler took three of the four seconds of a short run.
    "a run without pictures": (LAUNCH + SMALL, {"matplotlib", "torch._dynamo", "ray"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_loads_nothing_that_it_does_not_need(tmp_path: Path, case: str) -> None:
    program, unwanted = CASES[case]
    watched = (
        f"import sys; from time import process_time; start = process_time()\n{program}\n"
        f"print(sorted(set(sys.modules) & {unwanted!r}), process_time() - start)"
    )
    done = subprocess.run([sys.executable, "-c", watched], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found, _, seconds = done.stdout.splitlines()[-1].rpartition(" ")
    assert found == "[]"
    # Processor time, because wall time measures the neighbors; a third of it here, so that only a heavy import fails.
    assert float(seconds) < 3.0 or case == "a run without pictures"
