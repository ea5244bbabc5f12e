"""What is shown of one process when somebody asks for it: by psutil, which is slow and knows
much. Each field is None on its own where it may not be read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from bitwatch.sense.entry import opened
from bitwatch.sense.stat import Stat, read_stat


class Details(NamedTuple):
    """`created` is wall-clock seconds since the epoch. `unique_mib` is what its end would give
    back, `proportional_mib` its share of what several have mapped."""

    pid: int
    starttime: int
    command: list[str] | None = None
    directory: str | None = None
    user: str | None = None
    created: float | None = None
    threads: int | None = None
    open_files: int | None = None
    user_s: float | None = None
    system_s: float | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    rss_mib: float | None = None
    unique_mib: float | None = None
    proportional_mib: float | None = None
    swap_mib: float | None = None


def details(pid: int, starttime: int) -> Details | None:
    """None when this process is gone, or waits in the kernel (D): asking would wait with it."""
    stat = read_stat(pid)
    if stat is None or stat.starttime != starttime or _may_wait(stat):
        return None
    import psutil

    def ask(question: Callable[[], Any]) -> Any:
        # RuntimeError and ValueError: what psutil makes of files that change as it reads them.
        with contextlib.suppress(psutil.Error, OSError, RuntimeError, ValueError):
            return question()

    try:
        process = psutil.Process(pid)
    except (psutil.Error, OSError):
        return None
    with process.oneshot():
        cpu, io, memory = ask(process.cpu_times), ask(process.io_counters), ask(process.memory_info)
        full = ask(process.memory_full_info)
        found = Details(
            pid=pid,
            starttime=starttime,
            command=ask(process.cmdline) or None,
            directory=ask(process.cwd),
            user=ask(process.username),
            created=ask(process.create_time),
            threads=ask(process.num_threads),
            open_files=ask(process.num_fds),
            user_s=cpu and cpu.user,
            system_s=cpu and cpu.system,
            read_bytes=io and io.read_bytes,
            written_bytes=io and io.write_bytes,
            rss_mib=memory and memory.rss / 2**20,
            unique_mib=full and full.uss / 2**20,
            proportional_mib=full and full.pss / 2**20,
            swap_mib=full and full.swap / 2**20,
        )
    after = read_stat(pid)  # all of it was of this process only if it is still the same
    return found if after is not None and after.starttime == starttime else None


def _may_wait(stat: Stat) -> bool:
    """Whether looking at its memory could wait without end. A zombie has none."""
    if stat.state in "ZX":
        return False
    try:
        with opened(stat) as entry:
            return entry.may_wait()
    except OSError:
        return True
