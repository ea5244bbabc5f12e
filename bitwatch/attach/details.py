"""All that can be known of one process when somebody looks at it closely.

It takes milliseconds, the first time more: that is for another thread than the screen's. It
never waits for a process that waits in the kernel (D); of that one less is known.
"""

from __future__ import annotations

import os
import time

import msgspec

from bitwatch.attach.signals import barred, user_name
from bitwatch.sense import processes
from bitwatch.sense.facts import NOBODY, Facts
from bitwatch.sense.processes import Details, Stat
from bitwatch.supervise.evidence import ancestors


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What cannot be known is None. `threads_live`: those that are not dead. `wchan` is the
    function of the kernel in which it waits. `run`, `attempt` and `run_directory` are the tags
    in its environment; an empty `run` says that it surely has none. `barred` says why it cannot
    be signalled, empty when it can. The rest is as in `sense.details`."""

    pid: int
    starttime: int
    name: str
    state: str
    state_words: str
    barred: str = ""
    role: str = ""
    command: list[str] | None = None
    directory: str | None = None
    user: str | None = None
    created: float | None = None
    threads: int | None = None
    threads_live: int | None = None
    open_files: int | None = None
    user_s: float | None = None
    system_s: float | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    rss_mib: float | None = None
    shared_mib: float | None = None
    unique_mib: float | None = None
    proportional_mib: float | None = None
    swap_mib: float | None = None
    wchan: str | None = None
    gpu_files: tuple[str, ...] | None = None
    run: str | None = None
    attempt: int | None = None
    run_directory: str | None = None
    parent_pid: int | None = None
    parent_name: str | None = None
    session: int | None = None
    session_name: str | None = None
    has_terminal: bool = False


def about(pid: int, starttime: int) -> About | None:
    """None when exactly this process is not there any more."""
    stat = processes.read_stat(pid)
    if stat is None or stat.starttime != starttime:
        return None
    facts = Facts()
    user = facts.user(stat)
    command = facts.command(stat)
    certain = facts.tags_known(stat)
    tags = facts.tags(stat) if certain else None
    told = processes.details(pid, starttime) or Details(pid, starttime)
    known = {name: value for name, value in told._asdict().items() if value is not None}
    # The same by the kernel alone, where psutil may not be asked.
    known.setdefault("created", time.time() - processes.age_s(stat))
    known.setdefault("threads", stat.threads)
    known.setdefault("rss_mib", stat.rss_mib)
    known.setdefault("user", None if user == NOBODY else user_name(user))
    found = About(
        **known,
        name=stat.name,
        state=stat.state,
        state_words=processes.state_words(stat),
        barred=barred(stat, facts, ancestors()),
        role=processes.role_of_command(command, stat.name),
        threads_live=processes.live_threads(pid),
        shared_mib=facts.shared_mib(stat),
        wchan=facts.wchan(stat) or None,
        gpu_files=tuple(facts.gpu_files(stat)) if user == os.getuid() else None,
        run=(tags.run if tags else "") if certain else None,
        attempt=tags.attempt if tags else None,
        run_directory=(tags.directory or None) if tags else None,
        parent_pid=stat.ppid or None,
        parent_name=_name_of(stat.ppid, stat),
        session=stat.session or None,
        session_name=_name_of(stat.session, stat),
        has_terminal=stat.terminal != 0,
    )
    after = processes.read_stat(pid)
    return found if after is not None and after.starttime == starttime else None


def _name_of(pid: int, stat: Stat) -> str | None:
    """The name of its parent, or of its session's leader: neither can have begun after it."""
    above = processes.read_stat(pid) if pid else None
    return above.name if above is not None and above.starttime <= stat.starttime else None
