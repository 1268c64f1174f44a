"""Does every expression of the Grafana dashboard give data? Asked of a real Prometheus that scrapes a real run.

``python monitoring/check.py`` starts both (Debian's package ``prometheus``) and takes about a minute;
``--prometheus http://127.0.0.1:9090`` asks one that is there already. Exit code 0: every expression gave a value;
1: these did not; 2: no Prometheus.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DASHBOARD = HERE / "grafana.json"
TARGETS = "/tmp/ray/prom_metrics_service_discovery.json"
VARIABLES = {"$run": ".+", "$__rate_interval": "1m"}
PATIENCE = 300.0
"""Seconds until every expression must have data; Ray collects metrics every 10 s and a rate needs two of them."""


def expressions(dashboard: dict[str, Any]) -> dict[str, list[str]]:
    """Panel → expressions, with the dashboard's variables filled in; the variable's own query is one too."""
    found: dict[str, list[str]] = {"variable run": ["group by (run) (ray_raysim_round)"]}
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            found.setdefault(f"{panel['title']} ({panel['type']})", []).append(text)
    return found


def ask(prometheus: str, expression: str) -> list[tuple[dict[str, str], float]]:
    """Labels and present value of each series of an expression."""
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=10) as answer:
        found = json.load(answer)
    return [(series["metric"], float(series["value"][1])) for series in found["data"]["result"]]


def check(prometheus: str, patience: float) -> list[str]:
    """Ask until every expression has given data; those that never did."""
    asked = {(panel, text) for panel, texts in expressions(json.loads(DASHBOARD.read_text())).items() for text in texts}
    missing, deadline = set(asked), time.monotonic() + patience
    while missing and time.monotonic() < deadline:
        for panel, text in sorted(missing):
            try:
                series = ask(prometheus, text)
            except OSError:  # not yet up
                series = []
            if series:
                missing.discard((panel, text))
                print(f"{panel}: {len(series)} series, {series[0][1]:.6g}  {text}", flush=True)
        time.sleep(2.0)
    return [f"{panel}: no data: {text}" for panel, text in sorted(missing)]


@contextmanager
def prometheus_and_run(binary: str) -> Iterator[str]:
    """A Prometheus that scrapes a run made here; its address."""
    with tempfile.TemporaryDirectory(prefix="rs") as name:  # short: Ray's sockets are below it
        folder = Path(name)
        # A Ray of its own: another one on this machine would share the file of targets.
        targets = folder / "ray" / Path(TARGETS).name
        config = folder / "prometheus.yml"
        config.write_text((HERE / "prometheus.yml").read_text().replace(TARGETS, str(targets)).replace("10s", "3s"))
        config.write_text(config.read_text().replace("scrape_timeout: 8s", "scrape_timeout: 3s"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        storage = f"--storage.tsdb.path={folder / 'data'}"
        server = [binary, f"--config.file={config}", storage, f"--web.listen-address={address}", "--log.level=warn"]
        run = [sys.executable, "-m", "raysim.launch", "--method", "fedavg", "--clients", "4", "--rounds", "2000"]
        environment = os.environ | {"RAY_TMPDIR": name}
        started = [
            subprocess.Popen(server),
            subprocess.Popen([*run, "--output", str(folder / "run")], env=environment, stdout=subprocess.DEVNULL),
        ]
        try:
            yield f"http://{address}"
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGINT)
                process.wait(60)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python monitoring/check.py", description=__doc__)
    parser.add_argument("--prometheus", metavar="URL", help="one that runs already and scrapes a Ray with a run in it")
    options = parser.parse_args(arguments)
    if options.prometheus:
        missing = check(options.prometheus.rstrip("/"), PATIENCE)
    else:
        binary = shutil.which("prometheus")
        if binary is None:
            print("no prometheus here: apt-get install prometheus, or give --prometheus URL", file=sys.stderr)
            return 2
        with prometheus_and_run(binary) as address:
            missing = check(address, PATIENCE)
    print("\n".join(missing) if missing else "every expression gave data")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
