"""Texts of a run's page while it goes on: state, pace, this round, where clients run, faults."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from raysim import units
from raysim.monitor.status_file import LIVE

STATES = {
    "preparing": "preparing",
    "running": "running",
    "finished": "finished",
    "stopped": "stopped",
    "failed": "failed",
    "died": "its process died",
    "gone": "failed before its first round",
    "unknown": "not finished",
}
SLOTS = 96
"""Slots that are shown."""


def live_part(run: Mapping[str, Any], seconds: Sequence[float], folder: str, inline: bool) -> dict[str, Any]:
    """The variable ``live`` of the template.

    Args:
        run: the status (:func:`raysim.monitor.run_view.live_status`).
        seconds: of each finished round.
        folder: name of the run's folder.
        inline: whether the run goes on in one process, without Ray.
    """
    now, state = time.time(), run.get("state", "unknown")
    again = f"The process of this run is gone; go on with: python -m raysim.launch --resume {folder}"
    slots, faults = run.get("slots", []), run.get("faults", [])
    counts = {"done": 0, "failed": 0, "requeued": 0, "faults": 0} | run.get("counts", {})
    sums = (
        f"{units.counted(counts['done'], 'client task')} done, {units.number(counts['failed'])} failed, "
        f"{units.number(counts['requeued'])} sent again"
    )
    return {
        "state": state if state in STATES else "unknown",
        "word": STATES.get(state, state),
        "done": len(seconds),
        "total": run.get("rounds", 0) or len(seconds),
        "pace": _pace(run, seconds, now),
        "banner": run.get("message") or (again if state == "died" else ""),
        "current": _current(run, seconds, now) if state in LIVE else None,
        "plan": run.get("plan", ""),
        "nodes": _nodes(slots[:SLOTS], run, inline),
        "more_slots": max(0, len(slots) - SLOTS),
        "faults": [_fault(fault) for fault in reversed(faults)],
        "fault_count": units.number(counts["faults"]),
        "faults_text": sums if faults else f"Nothing was lost: {sums}.",
    }


def _pace(run: Mapping[str, Any], seconds: Sequence[float], now: float) -> str:
    """Rounds done, and how long that took and will take."""
    done, total, live = len(seconds), run.get("rounds", 0), run.get("state") in LIVE
    parts = [f"{units.number(done)}{f' of {units.number(total)}' if total else ''} rounds"]
    if live and run.get("started"):
        parts.append(f"{units.duration(max(0.0, now - run['started']))} since the start")
    elif sum(seconds):
        parts.append(f"{units.duration(sum(seconds))} in rounds")
    if live and done and total > done:
        parts.append(f"about {units.duration((total - done) * sum(seconds) / done)} left")
    return " · ".join(parts)


def _current(run: Mapping[str, Any], seconds: Sequence[float], now: float) -> dict[str, Any] | None:
    """The round that goes on, or a step before the first."""
    current, preparing = run.get("current"), run.get("preparing")
    if not current:
        if not preparing:
            return None
        done, total = preparing["done"], preparing["total"]
        count = f": {units.number(done)} of {units.number(total)}" if total > 1 else " …"
        return {"text": f"{preparing['label']}{count}", "done": done, "total": total, "out": []}
    elapsed, usual = max(0.0, now - current["started"]), sum(seconds) / len(seconds) if seconds else 0.0
    usually = f", usually {units.duration(usual)}" if usual else ""
    words = [
        f"round {units.number(run['round'])}",
        units.counted(current["local_epochs"], "local epoch"),
        f"{units.number(current['done'])} of {units.counted(current['participants'], 'client')} back",
        f"for {units.duration(elapsed)}{usually}",
    ]
    out = run.get("out", [])
    return {
        "text": " · ".join(words),
        "done": current["done"],
        "total": current["participants"],
        "late": bool(usual) and elapsed > 2 * usual,
        "out": out,
        "more": max(0, run.get("out_count", 0) - len(out)),
    }


def _nodes(slots: Sequence[Mapping[str, Any]], run: Mapping[str, Any], inline: bool) -> list[tuple[str, list[Any]]]:
    """Heading of each node, and its slots."""
    nodes: dict[str, list[dict[str, Any]]] = {}
    for slot in slots:
        nodes.setdefault(slot["node"], []).append(_slot(slot, run, inline))
    kind = "worker" if inline else "client actor"
    return [(f"node {node} · {units.counted(len(members), kind)}", members) for node, members in nodes.items()]


def _slot(slot: Mapping[str, Any], run: Mapping[str, Any], inline: bool) -> dict[str, Any]:
    """One slot: who it is, where, what it has done."""
    busy = min(1.0, slot["busy"] / max(1e-9, run["updated"] - run["started"]))
    memory = f", {units.byte_count(slot['gpu_bytes'], units.THIN)}" if slot.get("gpu_bytes") else ""
    last = slot["last"]
    clients = f"client{'s' if len(last) > 1 else ''} {', '.join(map(str, last))}"
    return {
        "name": "this process" if inline else f"client-actor-{slot['slot']:02}",
        "replaced": slot["lives"] - 1,
        "place": f"{slot['device']}{memory} · process {slot['process']}",
        "work": f"{units.counted(slot['tasks'], 'task')}, last {clients}",
        "busy": f"{busy:.3f}",
        "busy_text": f"{100 * busy:.0f}{units.THIN}%",
    }


def _fault(fault: Mapping[str, Any]) -> dict[str, str]:
    """When and in which round something was lost, as the run's log has it, and what."""
    when = datetime.fromtimestamp(fault["time"], UTC).isoformat(timespec="seconds")
    return {"time": when, "round": units.number(fault["round"]), "text": fault["text"]}
