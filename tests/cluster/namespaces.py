"""A laptop and three hosts on one machine: Linux namespaces with a network between them and an sshd in each.

A host has its own network, processes, /tmp, /dev/shm and home directory (what is there already is seen, what it writes
is its own), so `ray stop` on one of them reaches nobody else. They share the rest of the file system, and `SHARED` is
the network file system of them all. Everything ends with the process that made it, however that ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.processes import within

NETWORK = "192.0.2"
HOSTS = {"laptop": f"{NETWORK}.1", "head": f"{NETWORK}.10", "worker-1": f"{NETWORK}.11", "worker-2": f"{NETWORK}.12"}
SHARED = Path("/srv")
SKIPPED = 77
_TOOLS = ("unshare", "nsenter", "setpriv", "ip", "mount", "sshd", "ssh", "ssh-keygen", "rsync")
_INSIDE = "RAYSIM_TEST_WORLD"
_PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"

_BOOT = """
set -e
hostname "$NAME"
mount -t tmpfs tmpfs /mnt
for folder in /tmp "$HOME"; do
    layer="/mnt/$(echo "$folder" | tr / _)"
    mkdir -p "$layer/new" "$layer/work"
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/new,workdir=$layer/work" "$folder"
done
mkdir -p "$HOME/.ray" "$HOME/.ssh" /tmp/ray
for folder in "$HOME/.ray" "$HOME/.ssh" /tmp/ray /dev/shm; do mount -t tmpfs tmpfs "$folder"; done
exec "$@"
"""


def why_not() -> str:
    """What is missing for such hosts; empty: nothing."""
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]
    if missing:
        return f"no {', '.join(missing)} (Debian: openssh-server, rsync, iproute2)"
    trial = 'mkdir -p /mnt && NAME=trial HOME="$HOME" bash -c "$0" true'
    tried = subprocess.run([*_unshare(), "bash", "-c", trial, _BOOT], capture_output=True, text=True)
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else ""


def _unshare() -> list[str]:
    spaces = ["--net", "--pid", "--mount", "--uts", "--ipc"]
    return ["setpriv", "--pdeathsig", "KILL", "unshare", *spaces, "--fork", "--mount-proc", "--kill-child"]


def enter_world(module: str) -> None:
    """Start the module again as the first process of a namespace of its own, once; its exit code is this one's.

    Where this machine allows no hosts it is ``SKIPPED``.
    """
    if reason := why_not():
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    command = [sys.executable, "-m", module, *sys.argv[1:]]
    if _INSIDE not in os.environ:
        environment = {**os.environ, _INSIDE: "1", "PATH": _PATH}
        sys.exit(subprocess.run([*_unshare(), *command], env=environment).returncode)


class Namespaces:
    """The hosts; a context manager, within `enter_world`."""

    def __enter__(self) -> Namespaces:
        self._processes: dict[str, int] = {}
        self._started: list[subprocess.Popen[bytes]] = []
        _run("mount -t tmpfs tmpfs /srv && mkdir -p /srv/key /run/sshd && ip link set lo up")
        _run("ip link add switch type bridge && ip link set switch up")
        _run("ssh-keygen -q -t ed25519 -N '' -f /srv/key/host && ssh-keygen -q -t ed25519 -N '' -f /srv/key/user")
        (SHARED / "key" / "sshd").write_text(
            "HostKey /srv/key/host\nAuthorizedKeysFile /srv/key/user.pub\nPermitRootLogin prohibit-password\n"
            "PasswordAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\n"
        )
        for number, (name, address) in enumerate(HOSTS.items()):
            self._boot(name, number, address)
        return self

    def _boot(self, name: str, number: int, address: str) -> None:
        first = ["sleep", "infinity"] if name == "laptop" else ["sshd", "-D", "-f", "/srv/key/sshd"]
        first[0] = shutil.which(first[0]) or first[0]  # sshd wants to be called by its whole path
        environment = {**os.environ, "NAME": name}
        started = subprocess.Popen([*_unshare(), "bash", "-c", _BOOT, name, *first], env=environment)
        self._started.append(started)
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        first_child = within(120, lambda: children.read_text().split())
        assert first_child, f"{name} does not start"
        self._processes[name] = process = int(first_child[0])
        _run(f"ip link add port{number} type veth peer name eth0 netns {process}")
        _run(f"ip link set port{number} master switch up")
        inside = f"nsenter --target {process} --net"
        _run(
            f"{inside} ip link set lo up && {inside} ip addr add {address}/24 dev eth0 && {inside} ip link set eth0 up"
        )
        _run(f"{inside} ip route add default via {NETWORK}.254")  # a host finds its own address by its way outside
        assert within(60, lambda: Path(f"/proc/{process}/comm").read_text().strip() != "bash")  # it is at its mounts

    def command(self, name: str, command: str) -> list[str]:
        """What runs a shell command on a host."""
        return ["nsenter", "--target", str(self._processes[name]), "--all", "bash", "-c", command]

    def processes(self) -> list[str]:
        """Command lines of Ray's processes on all hosts."""
        lines = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # it has ended meanwhile
                lines.append(path.read_bytes().replace(b"\0", b" ").decode())
        marks = ("ray::", "gcs_server", "/raylet", "raysim.launch", "ray/dashboard", "ray/autoscaler")
        return [line for line in lines if any(mark in line for mark in marks)]

    def __exit__(self, *error: object) -> None:
        for started in self._started:
            started.kill()  # and with it, by --kill-child, all that runs on that host
            started.wait()


def _run(command: str) -> None:
    done = subprocess.run(["bash", "-c", f"set -e; {command}"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr.strip()}")
