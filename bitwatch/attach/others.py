"""The processes of this machine beside those of the live attempt: what ended attempts have
left, what may be somebody's, what only looks like a leftover, and who else holds a GPU."""

from __future__ import annotations

from typing import Literal

import msgspec

Group = Literal["leftover", "confirm", "suspect", "gpu"]


class Other(msgspec.Struct, frozen=True, kw_only=True):
    """One process that is not of the live attempt. Its identity is (pid, starttime).

    `group`: leftover, `c` ends it; confirm, ours by descent or by its tag, but perhaps somebody's;
    suspect, nothing proves that it is ours; gpu, it only holds memory of a GPU. `words` is its
    state in words, `barred` why it cannot be signalled from here, empty when it can. `why` is
    the evidence. starttime 0: known to the driver alone (a pid of outside this namespace).
    """

    pid: int
    starttime: int
    ppid: int = 0
    group: Group
    role: str = ""
    run: str = ""
    attempt: int = 0
    rank: int | None = None
    worker: int | None = None
    user: str = ""
    state: str = ""
    words: str = ""
    barred: str = ""
    proof: str = ""
    why: str = ""
    age_s: float | None = None
    cpu_percent: float | None = None
    rss_mib: float | None = None
    shared_mib: float | None = None
    gpu_mib: float | None = None
    command: str = ""

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.starttime
