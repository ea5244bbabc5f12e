"""Runs the user's command for what a supervisor has to tell, one after the other.

    python -m bitwatch.supervise.notifying < JOBS

Each line is a job: the command, the text for its standard input, and what is added to its
environment. How it went is a line of output. The supervisor may be gone meanwhile. A command, with
all that it starts, has 30 seconds; then its session is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from typing import Any

LIMIT_S = 30.0
KEPT_BYTES = 4096  # of its output: the end says why it failed
LOOK_S = 0.1  # between two looks at what it has left running
KILLED_S = 5.0  # that what was killed has to go
PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    limit_s = float(sys.argv[1]) if sys.argv[1:] else LIMIT_S
    jobs = [json.loads(line) for line in sys.stdin]
    for job in jobs:
        _wait_for(job.get("after", 0))
        result = run(job, limit_s)
        with contextlib.suppress(OSError):  # nobody listens any more
            os.write(1, json.dumps(result).encode() + b"\n")


def _wait_for(pid: int) -> None:
    """One command at a time: that of another process of this kind comes first."""
    with contextlib.suppress(OSError):
        if pid:
            fd = os.pidfd_open(pid)
            select.select([fd], [], [], 2 * LIMIT_S)
            os.close(fd)


def run(job: dict[str, Any], limit_s: float = LIMIT_S) -> dict[str, str]:
    """`how` is empty when all went well."""
    added = job["environment"]
    environment = {**os.environ, **added}
    environment.pop("PYTHONSAFEPATH", None)  # it is for our imports, not for the user's
    reading, writing = os.pipe2(os.O_CLOEXEC)
    text = os.memfd_create("text")
    with open(text, "wb", closefd=False) as file:
        file.write(job["text"].encode(errors="replace"))
    os.lseek(text, 0, os.SEEK_SET)
    try:
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", job["command"]],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, text, 0),
                (os.POSIX_SPAWN_DUP2, writing, 1),
                (os.POSIX_SPAWN_DUP2, writing, 2),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE],
        )
    except (OSError, ValueError) as error:
        os.close(reading)
        return {"id": added["BITWATCH_ALERT_ID"], "how": f"could not be run: {error}", "words": ""}
    finally:
        os.close(writing)
        os.close(text)
    status, late, said = _wait(pid, reading, time.monotonic() + limit_s)
    os.close(reading)
    how = _how(status)
    if late:
        how = f"ended after {limit_s:g} s, which is all that it gets"
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    words = lines[-1].strip() if how and lines else ""
    return {"id": added["BITWATCH_ALERT_ID"], "how": how, "words": words}


def _wait(pid: int, reading: int, deadline: float) -> tuple[int | None, bool, bytes]:
    """Until it has ended, with all that it started: the status of the shell, whether that took too
    long, and the end of what was printed."""
    os.set_blocking(reading, False)
    status: int | None = None
    said, late, killed = b"", False, False
    watched = [reading]
    while True:
        left = deadline - time.monotonic()
        if left <= 0 and not killed:
            late, killed = status is None, True
            deadline = time.monotonic() + KILLED_S
            _end(pid, is_reaped=status is not None)
        elif left <= 0:
            return status, late, said
        if select.select(watched, [], [], min(max(left, 0.0), LOOK_S))[0]:
            block = os.read(reading, 1 << 16)
            said = (said + block)[-KEPT_BYTES:]
            watched = watched if block else []
        try:
            ended, code = os.waitpid(-1, os.WNOHANG)
            if ended == pid:
                status = code
        except ChildProcessError:
            return status, late, said


def _end(session: int, *, is_reaped: bool) -> None:
    """What is in its session. What has left that on purpose is no more of it. Once the shell has
    been reaped its number can be that of another session, but whatever it has started is below us."""
    from bitwatch.sense import processes

    table = processes.scan()
    below = {stat.key for stat in processes.descendants(table, {os.getpid()})}
    for stat in table.values():
        if stat.session == session and (not is_reaped or stat.key in below):
            processes.send_signal(stat.pid, stat.starttime, signal.SIGKILL)


def _how(status: int | None) -> str:
    if status is None:
        return "did not end"
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return f"exit code {code}" if code else ""


if __name__ == "__main__":
    main()
