"""One reaper: every exit status is kept."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import os, signal, sys, time
from bitwatch.record import kernel
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
start = kernel.starttime(pid)
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


HALF_DEAD = """
import ctypes, os, subprocess, sys, time
from bitwatch.record import kernel
from bitwatch.sense import processes
from bitwatch.supervise import reaper

CHILD = '''
import ctypes, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(7))).start()
ctypes.CDLL(None).pthread_exit(None)
'''
child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE)
start = kernel.starttime(child.pid)
while processes.read_stat(child.pid).state != "Z":
    time.sleep(0.01)
assert reaper.runs(child.pid, start)
assert reaper.reap() == []
child.stdin.close()
while reaper.runs(child.pid, start):
    time.sleep(0.01)
(ended,) = reaper.reap()
assert (ended.pid, ended.status) == (child.pid, 7)
assert not reaper.runs(child.pid, start)
assert reaper.runs(os.getppid(), kernel.starttime(os.getppid()))
child.returncode = 7
"""


def test_a_child_whose_first_thread_is_gone_has_not_ended_before_its_status_is_there() -> None:
    command = [sys.executable, "-c", HALF_DEAD]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
