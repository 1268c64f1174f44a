"""Checks of a Ray cluster before joining it: whether it answers, as what, and whether it takes the token.

Ray itself tries for half a minute and more, and then says of a wrong token and of a wrong port that nothing is there.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from raysim.errors import PlacementError

SECONDS = 10.0
CLIENT = "ray://"
_METHODS = {True: "/ray.rpc.RayletDriver/ClusterInfo", False: "/ray.rpc.NodeInfoGcsService/CheckAlive"}
"""A harmless question that only a Ray client server (True), only a head's own port (False) understands."""
MODE = "RAY_AUTH_MODE"
TOKEN_HINT = (
    "put the cluster's token (`ray get-auth-token` prints it on the head) into the variable RAY_AUTH_TOKEN or the file "
    "~/.ray/auth_token, and do not set RAY_AUTH_MODE to disabled"
)


def use_token(local: bool) -> None:
    """Use token authentication in a Ray started here and wherever there is a token, unless RAY_AUTH_MODE is set.

    Ray 2.60 does so by itself, earlier ones do not. It reads the variable when it is imported: afterwards it is too
    late, and would make a Ray whose processes ask for a token that this one does not show.
    """
    if "ray" not in sys.modules and (local or _token()):
        os.environ.setdefault(MODE, "token")


def check_loopback() -> None:
    """Check that processes of this machine can reach one another, as Ray's must.

    Raises:
        PlacementError: not even 127.0.0.1 is up.
    """
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), SECONDS).close()
    except OSError as error:
        raise PlacementError(
            f"this machine has no network interface that is up, not even 127.0.0.1, over which Ray's processes talk: "
            f"{error}. Next: bring it up (`ip link set lo up`), or run without Ray: --engine.backend inline"
        ) from error


def of_environment() -> str:
    """The address that ``auto`` stands for; empty if Ray has to find out, or will say that there is none."""
    given = os.environ.get("RAY_ADDRESS", "")
    if given in ("", "auto", "local"):
        with suppress(OSError):
            folder = Path(os.environ.get("RAY_TMPDIR") or "/tmp") / "ray"
            given = (folder / "ray_current_cluster").read_text(encoding="utf-8").strip()
    return given if ":" in given else ""


def asks_for_token() -> bool:
    """Whether a Ray that this process has started or joined asks for a token, as far as this process was told."""
    return os.environ.get(MODE, "").lower() == "token"


def check(address: str) -> None:
    """Check that a Ray that can be joined answers at ``[ray://]HOST:PORT``.

    Raises:
        PlacementError: nothing answers, it is no Ray or the other kind of Ray port, or it refuses the token.
    """
    wants_client = address.startswith(CLIENT)
    place = address.removeprefix(CLIENT)
    host, _, port = place.rpartition(":")
    try:
        socket.create_connection((host, int(port)), SECONDS).close()
    except (OSError, OverflowError) as error:
        raise PlacementError(
            f"no Ray cluster answers at {address}: {error}. Next: start one (`ray start --head`), or leave "
            "--engine.address out to use this machine"
        ) from error
    if _encrypted():
        return
    code = _ask(place, _METHODS[wants_client])
    if code == "UNAUTHENTICATED":
        sent = "the token that it was shown" if _authorization() else "a call without a token"
        raise PlacementError(f"the Ray cluster at {address} refuses {sent}. Next: {TOKEN_HINT}")
    if code == "UNIMPLEMENTED" and _ask(place, _METHODS[not wants_client]) != code:
        what, form = ("a head's own port", "HOST:PORT") if wants_client else ("a Ray client server", "ray://HOST:PORT")
        other = ", the client server's port is 10001 by default" if wants_client else ""
        raise PlacementError(f"at {address} is {what}. Next: write --engine.address {form}{other}")
    if code in ("UNIMPLEMENTED", "UNAVAILABLE", "DEADLINE_EXCEEDED"):
        raise PlacementError(
            f"something listens at {address}, but it is no Ray ({code.lower()}). Next: look for the port; a head's own "
            "is 6379 by default, its client server's (ray://) 10001, and the dashboard's 8265 is neither"
        )


def answers(address: str) -> bool:
    """Whether a head or a client server at ``[ray://]HOST:PORT`` answers at all, within ten seconds."""
    if _encrypted():
        return True
    code = _ask(address.removeprefix(CLIENT), _METHODS[address.startswith(CLIENT)])
    return code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def _encrypted() -> bool:
    """Whether Ray's calls go over TLS, whose certificates are Ray's own affair."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")


def _ask(place: str, method: str) -> str:
    """Status name with which a gRPC call ends."""
    import grpc

    with grpc.insecure_channel(place) as channel:
        call = channel.unary_unary(method)
        try:
            call(b"", timeout=SECONDS, metadata=_authorization())
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


def _authorization() -> tuple[tuple[str, str], ...]:
    token = _token() if os.environ.get(MODE, "token").lower() == "token" else ""
    return (("authorization", f"Bearer {token}"),) if token else ()


def _token() -> str:
    """The token that Ray would show, from where Ray takes it; empty if there is none."""
    given = os.environ.get("RAY_AUTH_TOKEN", "")
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path("~/.ray/auth_token").expanduser())
    try:
        return given or path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
