"""Stacks by py-spy, if it is installed: for a process of ours that cannot say them itself. It looks
into the process's memory without stopping it, and needs the right to trace it."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import msgspec

from bitwatch.sense.stacks import (
    MOST_CHARACTERS,
    MOST_FRAMES,
    MOST_THREADS,
    Frame,
    Look,
    Thread,
)
from bitwatch.sense.stat import read_stat

PROGRAM = "py-spy"
LIMIT_S = 3.0


def dump(look: Look) -> Look:
    """The same with its threads, where py-spy can tell them."""
    program, target = shutil.which(PROGRAM), look.target
    if program is None or not look.state:
        return look
    words = [program, "dump", "--nonblocking", "--json", "--pid", str(target.pid)]
    try:
        told = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False
        ).stdout
        threads = parse(msgspec.json.decode(told), target.pid)
    except (OSError, subprocess.TimeoutExpired, msgspec.MsgspecError, UnicodeDecodeError):
        return look
    after = read_stat(target.pid)
    if not threads or after is None or after.starttime != target.starttime:
        return look
    return look._replace(threads=threads, why="")


def parse(told: Any, pid: int) -> tuple[Thread, ...]:
    """The main thread first: its number is that of the process."""
    threads = []
    for thread in told[:MOST_THREADS] if isinstance(told, list) else ():
        if not isinstance(thread, dict):
            continue
        frames = tuple(_frames(thread.get("frames")))
        if frames:
            first = thread.get("os_thread_id") == pid
            name = str(thread.get("thread_name") or thread.get("thread_id"))
            threads.append((not first, Thread(name[:MOST_CHARACTERS], frames)))
    return tuple(thread for _, thread in sorted(threads, key=lambda pair: pair[0]))


def _frames(told: Any) -> list[Frame]:
    found = []
    for frame in told[:MOST_FRAMES] if isinstance(told, list) else ():
        if isinstance(frame, dict):
            line = frame.get("line")
            file, name = str(frame.get("filename")), str(frame.get("name"))
            number = line if isinstance(line, int) else 0
            found.append(Frame(file[-MOST_CHARACTERS:], number, name[:MOST_CHARACTERS]))
    return found
