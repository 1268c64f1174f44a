"""``ray up cluster.local.yaml`` and what comes after it, for real, on three hosts and a laptop on this machine.

    python -m tests.cluster.ray_up

Two things in cluster.local.yaml are replaced: the user, and the command that installs: all hosts see the packages of
this interpreter, and a link to it stands for the installation (which the README's own commands test). Exit codes: 0 all
is as it must be, 1 something is not, 77 this machine allows no hosts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.cluster.namespaces import HOSTS, SHARED, Namespaces, enter_world
from tests.processes import within

ROOT = Path(__file__).parents[2]
DASHBOARD = "http://127.0.0.1:8265"
SMALL = "--method fedrad --model logistic --clients 4 --rounds 2 --workload.limit 200 --pictures false"
STRAY = ("data/cifar10.bin", "images.npz", "runs/old/config.yaml", ".venv/pyvenv.cfg", ".git/HEAD")
"""What lies about in a checkout and must never travel."""
WORKERS = (HOSTS["worker-1"], HOSTS["worker-2"])
KEY = SHARED / "key" / "user"
ON_HOST = "ssh -i ~/.ssh/id_ed25519 -o StrictHostKeyChecking=no root@"
_started = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - _started:5.1f} s] {text}", flush=True)


class Laptop:
    """Where the commands of docs/cluster.md are typed: in a checkout, with Ray on the path and token authentication."""

    def __init__(self, hosts: Namespaces) -> None:
        self._hosts = hosts
        settings = {
            "PATH": f"{sys.prefix}/bin:$PATH",
            "RAY_AUTH_MODE": "token",
            "RAY_UP_enable_autoscaler_v2": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_API_SERVER_ADDRESS": DASHBOARD,
        }
        self._settings = "".join(f"export {name}={value}; " for name, value in settings.items())
        self._make_checkout()

    def _make_checkout(self) -> None:
        copied = f"cd {ROOT} && git ls-files -coz --exclude-standard | xargs -0 cp -P --parents -t ~/checkout"
        strays = "".join(f"mkdir -p $(dirname {path}); echo stray > {path}; " for path in STRAY)
        self.run(f"mkdir ~/checkout; ({copied}); cp {KEY} ~/.ssh/id_ed25519; cd ~/checkout; {strays}", quiet=True)
        text = (ROOT / "cluster.local.yaml").read_text(encoding="utf-8")
        for pattern, new in (
            (r"ssh_user: ubuntu", "ssh_user: root"),
            (r"- cd ~/raysim && python3 -m venv .*", f"- ln -sfn {sys.prefix} ~/raysim/.venv"),
        ):
            text, found = re.subn(pattern, new, text)
            assert found == 1, f"cluster.local.yaml: {pattern!r} is there {found} times"
        (SHARED / "filled.yaml").write_text(text, encoding="utf-8")
        self.run(f"cp {SHARED}/filled.yaml cluster.local.yaml; cp tests/raysim/user_code.py mine.py", quiet=True)

    def command(self, command: str) -> list[str]:
        return self._hosts.command("laptop", f"{self._settings} cd ~/checkout; {command}")

    def run(self, command: str, *, code: int = 0, quiet: bool = False) -> str:
        """What a command says; AssertionError with all of it if it ends otherwise than it must."""
        if not quiet:
            say(f"$ {command}")
        done = subprocess.run(
            self.command(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == code, f"exit code {done.returncode}, not {code}, of: {command}\n{done.stdout}"
        return done.stdout


def bring_up(laptop: Laptop) -> None:
    laptop.run("ray get-auth-token --generate")
    # Ray starts the server for ray:// last, and says that the head is up before. On a slow machine that server gives
    # up waiting for its own node after 30 s, which no setting changes; `ray up` starts Ray on the head anew.
    port = f"(: < /dev/tcp/{HOSTS['head']}/10001)"
    for _ in range(3):
        laptop.run("ray up -y cluster.local.yaml")
        said = laptop.run(
            f"timeout 100 bash -c 'until {port}; do sleep 0.5; done' 2>&1 | tail -n 1; {port} && echo up || :"
        )
        if "up" in said.split():
            return
    raise AssertionError(f"{said}\n{logs(laptop, 'ray_client_server*')}")


def logs(laptop: Laptop, names: str) -> str:
    """The ends of these logs of Ray on the head."""
    return laptop.run(f"{ON_HOST}{HOSTS['head']} 'tail -n 60 /tmp/ray/session_latest/logs/{names}'", quiet=True)


def ask(laptop: Laptop, path: str) -> dict[str, Any]:
    """What the dashboard says, through the tunnel."""
    token = "Authorization: Bearer $(cat ~/.ray/auth_token)"
    said = laptop.run(f'curl -s -H "{token}" {DASHBOARD}{path}', quiet=True)
    found: dict[str, Any] = json.loads(said)
    return found


def wait_for_workers(laptop: Laptop) -> None:
    def all_alive() -> bool:
        with suppress(ValueError, KeyError, TypeError, AssertionError):  # no answer, or one of an error
            nodes = ask(laptop, "/nodes?view=summary")["data"]["summary"]
            alive = {node.get("ip") for node in nodes if node["raylet"].get("state") == "ALIVE"}  # no ip: just joined
            return alive == {HOSTS["head"], *WORKERS}
        return False

    # A worker whose start fails is started anew.
    assert within(300, all_alive, pause=0.5), f"not all nodes have come\n{logs(laptop, 'monitor*')}"
    say("three nodes are there")


def check_the_token_is_asked_for(laptop: Laptop) -> None:
    for without in ("RAY_AUTH_TOKEN=wrong", "RAY_AUTH_MODE=disabled"):
        for address in (f"ray://{HOSTS['head']}:10001", f"{HOSTS['head']}:6379"):
            said = laptop.run(f"{without} python -m raysim.launch {SMALL} --address {address}", code=1)
            assert "refuses" in said and "token" in said, said
    said = laptop.run("RAY_AUTH_TOKEN=wrong ray job list", code=1)
    assert "token" in said, said
    assert " 401 " in laptop.run(f"curl -si {DASHBOARD}/api/jobs/ | head -1")


def submit(laptop: Laptop, entrypoint: str, *, code: int) -> str:
    """What a job says whose entrypoint must end with ``code``."""
    said = laptop.run(f"ray job submit --working-dir . -- {entrypoint}", code=min(code, 1))  # that is all Ray passes on
    (job,) = re.findall(r"raysubmit_\w+(?=' submitted)", said)
    found = ask(laptop, f"/api/jobs/{job}")
    assert found["driver_exit_code"] == code, f"{found}\n{said}"
    return said


def check_a_run_as_a_job(laptop: Laptop) -> None:
    said = submit(laptop, f"python -m raysim.launch {SMALL} --address auto --output {SHARED}/job", code=0)
    assert "accuracy" in said, said
    check_who_worked("job")
    submit(laptop, f"python -m raysim.launch {SMALL} --address auto --momentum 7", code=2)
    failing = f"python -m raysim.launch {SMALL} --address auto --gpus_per_client 1"
    said = submit(laptop, f"bash -c 'find . -type f > {SHARED}/sent; {failing}'", code=2)
    assert "the cluster's largest node has 0" in said, said
    sent = set((SHARED / "sent").read_text().split())
    assert "./raysim/launch.py" in sent and "./raysim/actors/pool.py" in sent
    assert not sent & {f"./{path}" for path in STRAY}, sent


def check_who_worked(run: str) -> None:
    status = json.loads((SHARED / run / "status.json").read_text())
    nodes = {slot["node"] for slot in status["slots"]}  # perhaps one only: work goes to whoever is up first
    say(f"clients of the run {run!r} were on {', '.join(sorted(nodes))}")
    assert nodes and nodes <= set(WORKERS), status["slots"]


def check_a_run_from_outside(laptop: Laptop) -> None:
    """Of a method that only the laptop has; and into a folder that only the laptop has."""
    start = f"python -m raysim.launch {SMALL} --rounds 1 --address ray://{HOSTS['head']}:10001"
    laptop.run(f"{start} --method mine:Waiting --output {SHARED}/outside")
    check_who_worked("outside")
    said = laptop.run(f"{start} --output ~/only-here", code=1)
    assert "there is no such folder on head" in said, said


def take_down(laptop: Laptop, hosts: Namespaces) -> None:
    """With machines of one's own `ray down` stops the head only; Ray on the others would take minutes to notice."""
    laptop.run("ray down -y cluster.local.yaml")
    for address in WORKERS:
        laptop.run(f"{ON_HOST}{address} '~/raysim/.venv/bin/ray stop'")
    assert within(60, lambda: not hosts.processes(), pause=1.0), "still there: " + "\n".join(hosts.processes())
    say("no process of Ray is left on any host")


def main() -> None:
    enter_world("tests.cluster.ray_up")
    with Namespaces() as hosts:
        laptop = Laptop(hosts)
        bring_up(laptop)
        words, null = laptop.command("ray dashboard cluster.local.yaml"), subprocess.DEVNULL
        tunnel = subprocess.Popen(words, stdin=null, stdout=null, stderr=null)
        asked = f"curl -s -o /dev/null {DASHBOARD} || echo not yet"
        assert within(120, lambda: not laptop.run(asked, quiet=True).strip(), pause=0.5), "the tunnel does not come up"
        check_the_token_is_asked_for(laptop)
        wait_for_workers(laptop)
        check_a_run_as_a_job(laptop)
        check_a_run_from_outside(laptop)
        tunnel.kill()
        take_down(laptop, hosts)
    say("all is as it must be")


if __name__ == "__main__":
    main()
