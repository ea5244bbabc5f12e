"""What a cleanup has found and done: for JSON, for a person, and for the record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bitwatch.text import counted


class Listed(msgspec.Struct, kw_only=True):
    """One process. `why` is the evidence in words; `ended` how it ended, or, of a survivor,
    why it did not."""

    pid: int
    starttime: int
    state: str
    role: str
    run: str
    attempt: int
    rank: int | None
    worker: int | None
    proof: str
    why: str
    age_s: float
    rss_mib: float
    gpu_mib: float | None
    command: str
    ended: str = ""


class Result(msgspec.Struct, kw_only=True):
    """`own`, `confirm`, `suspect`, `defunct` are what was there at the beginning. Of defunct
    ones nothing is left but a number that their parent must take. `unclosed` are runs of which
    nothing lives and whose end nobody has written down, `orphaned` those that go on without
    a supervisor; `closed` and `taken_over` say what became of them. `notes`: what could not be
    done as it should."""

    own: list[Listed] = []
    confirm: list[Listed] = []
    suspect: list[Listed] = []
    defunct: list[Listed] = []
    shared_memory: list[str] = []
    killed: list[Listed] = []
    survivors: list[Listed] = []
    freed_gpu_mib: float | None = None
    unclosed: list[str] = []
    orphaned: list[str] = []
    closed: list[str] = []
    taken_over: list[str] = []
    notes: list[str] = []


def said(found: Result) -> str:
    """How it went, as a sentence or two."""
    parts = [f"ended {names(found.killed)}"] if found.killed else []
    parts += [f"{names([one])} is still there: {one.ended}" for one in found.survivors]
    if found.shared_memory:
        parts.append(f"unlinked {counted(len(found.shared_memory), 'file')} of shared memory")
    if found.freed_gpu_mib:
        parts.append(f"{found.freed_gpu_mib:,.0f} MiB of GPU memory came back")
    parts += [*found.closed, *found.taken_over]
    if found.confirm:
        parts.append(
            f"{counted(len(found.confirm), 'process')} may be somebody's: "
            "look at the processes (key 4), key K ends one"
        )
    return "; ".join([*parts, *found.notes]) or "nothing is left of ended attempts"


def names(listed: Sequence[Listed]) -> str:
    """Who they are: the first few, and how many more."""

    def name(one: Listed) -> str:
        of = "" if one.rank is None else f" {one.rank}"
        if one.role == "worker" and one.rank is not None:
            of = f" {one.worker} of rank {one.rank}"
        return f"{one.role or 'process'}{of} (pid {one.pid})"

    shown = [name(one) for one in listed[:4]]
    more = [f"{len(listed) - 4} more"] if len(listed) > 4 else []
    return ", ".join(shown + more)
