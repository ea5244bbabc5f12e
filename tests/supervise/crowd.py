"""Many cheap real processes with chosen command lines and environments.

    python crowd.py NUMBER KIND [NAME=VALUE]...

Forks NUMBER children that become `sleep` under the command line of a spawned worker, and leaves
them to whoever adopts orphans. It prints their pids. KIND: willing; deaf, who ignore SIGTERM;
again, who start another whenever they are told to leave; left, in a session whose leader is gone
when this one is (whoever adopts orphans need not be pid 1), and all others in one of their own.
"""

from __future__ import annotations

import os
import signal
import sys

COMMAND = "python -c from multiprocessing.spawn import spawn_main; spawn_main(pipe_handle=7)"
AGAIN = """from multiprocessing.spawn import spawn_main
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.fork() and os._exit(0))
while True:
    signal.pause()
"""


def main() -> None:
    number, kind, *variables = sys.argv[1:]
    environment = dict(variable.split("=", 1) for variable in variables)
    for _ in range(int(number)):
        pid = os.fork()
        if pid == 0:
            become(kind, environment)
        print(pid, flush=True)


def become(kind: str, environment: dict[str, str]) -> None:
    if kind != "left":
        os.setsid()
    if kind == "again":
        program = f"{AGAIN}# {COMMAND}"
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.execve(sys.executable, ["python", "-c", program], environment)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    if kind == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.execve("/bin/sleep", [COMMAND, "600"], environment)


if __name__ == "__main__":
    main()
