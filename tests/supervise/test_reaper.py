"""One reaper: every exit status is kept."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import os, signal, sys, time
from bitwatch.record import rundir
from bitwatch.supervise import reaper

assert reaper.reap() == []
codes = {}
for code in (0, 7):
    pid = os.fork()
    if not pid:
        os._exit(code)
    codes[pid] = (code, None)
pid = os.fork()
if not pid:
    signal.pause()
start = rundir.starttime(pid)
os.kill(pid, signal.SIGKILL)
codes[pid] = (None, signal.SIGKILL)
seen = {}
while len(seen) < 3:
    for ended in reaper.reap():
        assert ended.starttime > 0
        if ended.pid == pid:
            assert ended.starttime == start
        seen[ended.pid] = (ended.status, ended.signal)
assert seen == codes, (seen, codes)
assert reaper.reap() == []
"""


def test_exit_codes_and_signals_are_told_apart() -> None:
    """In a process of its own: reaping takes every child, the test runner's too."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_words_for_how_a_process_ended() -> None:
    from bitwatch.supervise.reaper import Exit, describe

    assert describe(Exit(1, 1, 7, None)) == "exit code 7"
    assert describe(Exit(1, 1, None, signal.SIGKILL)) == "killed by SIGKILL"
    assert describe(Exit(1, 1, None, 250)) == "killed by signal 250"
    assert describe(None) == "exit status unknown"
