"""Processes beside the live attempt, one of each kind, made in code."""

from __future__ import annotations

from typing import Any

from bitwatch.attach.others import Other

RUN = "2026-11-29-1b21-7f3a"
SPAWNED = "python -c from multiprocessing.spawn import spawn_main"
EVIL = "\x1b[2J\x1b]0;x\x07[red]漢字\u202e e\u0301[/red]\r\n\x9b1m"


def other(pid: int, group: Any, **fields: Any) -> Other:
    values: dict[str, Any] = {
        "starttime": 7000 + pid,
        "state": "S",
        "words": "sleeping",
        "age_s": 60.0,
        "cpu_percent": 0.0,
        "rss_mib": 100.0,
        "shared_mib": 10.0,
        "command": SPAWNED,
        **fields,
    }
    return Other(pid=pid, group=group, **values)


def leftover(pid: int, **fields: Any) -> Other:
    values = {"role": "worker", "run": RUN, "attempt": 1, "rank": 2, "worker": 0}
    return other(pid, "leftover", **{**values, "proof": "recorded", **fields})


TMUX = other(
    601, "confirm", role="other", run=RUN, attempt=1, proof="tagged",
    why="tagged by attempt 1, with a terminal", command="/usr/bin/tmux new -s train",
)  # fmt: skip
SUSPECT = other(
    701, "suspect", role="worker", state="D", words="waiting in the kernel (D)",
    why="looks like a worker; its parent is gone", gpu_mib=1024.0,
)  # fmt: skip
GRACE = other(
    801, "gpu", user="grace", barred="of another user (grace)", gpu_mib=2048.0,
    command="python serve.py",
)  # fmt: skip
DRIVER = other(911, "gpu", starttime=0, state="", words="", command="", gpu_mib=512.0)


def all_kinds() -> tuple[Other, ...]:
    rank = leftover(501, role="rank", worker=None, rss_mib=900.0, gpu_mib=3174.0)
    far = leftover(
        503, run="2026-11-27-demo-3236", attempt=3, state="Z", proof="tagged",
        words="leader dead, 3 threads live", age_s=180_000.0,
    )  # fmt: skip
    return far, DRIVER, GRACE, SUSPECT, TMUX, leftover(502), rank
