"""The processes of a run as rows of a tree, or flat and sorted. Pure."""

from __future__ import annotations

from typing import NamedTuple

from bitwatch.record.events import Reader
from bitwatch.record.readers import Judged, judged
from bitwatch.record.view import ProcessRow, View
from bitwatch.tui.draw import plain
from bitwatch.tui.rows import LETTERS, SORT_KEYS, STATE_ROLES, Key, Row, contains, place, rank_of

SHAPE = 5


def rows(
    view: View,
    *,
    tree: bool = True,
    sort: str = "pid",
    backwards: bool = False,
    text: str = "",
    collapse: int = 0,
    now: float = 0.0,
    made: dict[Key, Row] | None = None,
) -> list[Row]:
    """`now` tells which readers are stuck. `text` keeps rows that contain it (in a tree with what
    stands above them). `collapse`: 0 shows every process, 1 joins idle workers of a rank, 2 all
    workers of a rank. `made` are the rows of this view, when they have been made before: each
    call gives them the guides of what it shows."""
    made = make(view, now) if made is None else made
    if not tree:
        flat = [row for row in made.values() if contains(row, text)]
        for row in flat:
            row.guides, row.context = "", False
        return sorted(flat, key=SORT_KEYS.get(sort, SORT_KEYS["pid"]), reverse=backwards)
    below = {child.process.pid for row in made.values() for child in row.children}
    found: list[Row] = []
    for root in made.values():
        if root.process.pid not in below:
            _walk(root, "", "", found, text.lower(), collapse)
    return found


def counts(view: View) -> dict[str, int]:
    """How many of each role, in the order of the tree."""
    found: dict[str, int] = {}
    for process in sorted(view.processes, key=lambda p: rank_of(p.role)):
        found[process.role] = found.get(process.role, 0) + 1
    return found


def gpu_memory(view: View) -> dict[int, float]:
    """MiB by pid, over all GPUs."""
    held: dict[int, float] = {}
    for card in view.gpus.gpus if view.gpus else ():
        for pid, mib in card.processes or ():
            held[pid] = held.get(pid, 0.0) + (mib or 0.0)
    return held


def make(view: View, now: float, before: dict[Key, Row] | None = None) -> dict[Key, Row]:
    """The row of every process, in order, with the rows of its children, in order. Of `before`
    are taken those whose process is as it was, as most are."""
    readers, gpu = _accounts(view, now), gpu_memory(view)
    before = before or {}
    made: dict[Key, Row] = {}
    for process in _in_order(view.processes, before):
        key = process.pid, process.starttime
        one = readers.get(key) if process.role == "worker" else None
        row = before.get(key)
        if row is None or one or row.process is not process or row.gpu_mib != gpu.get(process.pid):
            row = Row(
                process=process,
                role=role_words(process, one.reader if one else None),
                state=_state(process, one),
                keys=(key,),
                gpu_mib=gpu.get(process.pid),
                rss_mib=process.rss_mib,
                shared_mib=process.shared_mib,
                cpu_percent=process.cpu_percent,
            )
        elif row.children:
            row.children = []
        made[key] = row
    by_pid = {row.process.pid: row for row in made.values()}
    for row in made.values():
        parent = by_pid.get(row.process.ppid)
        if parent is not None and parent is not row:
            parent.children.append(row)
    _without_supervisor(view, made)
    return made


class Renewed(NamedTuple):
    """The rows that are another than they were. `reshaped`: a column may be wider or narrower."""

    rows: list[Row]
    reshaped: bool


def renew(view: View, now: float, made: dict[Key, Row], before: View) -> Renewed | None:
    """Brings the rows that were made of the view before up to this one, each where it stands.
    None when a process has come, gone, or changed places: then they are to be made anew."""
    if len(view.processes) != len(before.processes):
        return None
    readers, gpu = _accounts(view, now), gpu_memory(view)
    due: dict[Key, ProcessRow] = {}
    for process, was in zip(view.processes, before.processes, strict=True):
        if process is was:
            continue
        row = made.get(process.key)
        if row is None or place(process) != place(row.process) or process.ppid != row.process.ppid:
            return None
        due[process.key] = process
    if gpu != gpu_memory(before):
        for key, row in made.items():
            if row.gpu_mib != gpu.get(row.process.pid):
                due.setdefault(key, row.process)
    changed, reshaped = [], False
    for key in due.keys() | (readers.keys() & made.keys()):
        row, one = made[key], readers.get(key)
        process = due.get(key, row.process)
        one = one if process.role == "worker" else None
        role, state = role_words(process, one.reader if one else None), _state(process, one)
        if key not in due and (role, state) == (row.role, row.state):
            continue
        looked = _looks(row)
        row.process, row.gpu_mib = process, gpu.get(process.pid)
        row.rss_mib, row.shared_mib = process.rss_mib, process.shared_mib
        row.cpu_percent = process.cpu_percent
        row.role, row.state, row.tone = role, state, STATE_ROLES.get(state, "quiet")
        looks = _looks(row)
        if looked != looks:
            changed.append(row)
            reshaped = reshaped or looked[:SHAPE] != looks[:SHAPE]
    gone = _without_supervisor(view, made)
    return Renewed([*changed, *gone], reshaped or bool(gone))


def _without_supervisor(view: View, made: dict[Key, Row]) -> list[Row]:
    """Nobody samples any more when it is gone, so the newest sample shows it as it was. The rows
    that are another by that."""
    changed = []
    for row in made.values():
        if row.process.role != "supervisor":
            break  # it stands first
        state = "gone" if view.supervisor == "gone" else _state(row.process, None)
        if state != row.state:
            row.state, row.tone = state, STATE_ROLES.get(state, "quiet")
            changed.append(row)
    return changed


def _looks(row: Row) -> tuple[object, ...]:
    """All that is drawn of a row; the first `SHAPE` are what the width of a column depends on."""
    gpu, shared, process = row.gpu_mib, row.shared_mib, row.process
    shape = row.role, row.state, gpu is None, shared is None, process.command
    return (*shape, gpu, shared, row.rss_mib, row.cpu_percent, process.started)


def _accounts(view: View, now: float) -> dict[Key, Judged]:
    """What the readers say, by process."""
    return {
        (one.reader.pid, one.reader.starttime): one
        for one in judged(view, now).values()
        if one.reader
    }


def _in_order(processes: list[ProcessRow], before: dict[Key, Row]) -> list[ProcessRow]:
    """As they stand in a tree, which is the order of `before` as long as nobody has come, gone
    or changed places."""
    by_key = {(process.pid, process.starttime): process for process in processes}
    if by_key.keys() == before.keys():
        changed = [p for key, p in by_key.items() if before[key].process is not p]
        if all(place(process) == place(before[process.key].process) for process in changed):
            return [by_key[key] for key in before]
    return sorted(by_key.values(), key=place)


def role_words(process: ProcessRow, reader: Reader | None) -> str:
    if process.role == "rank" and process.rank is not None:
        return f"rank {process.rank}"
    if process.role == "worker" and process.worker is not None:
        shards = reader.shards if reader else []
        if not shards:
            return f"worker {process.worker}"
        shown = ", ".join(plain(str(shard)) for shard in shards[:2])
        more = f" +{len(shards) - 2}" if len(shards) > 2 else ""
        # Shards are numbers; row groups and an index are called by their names.
        what = "shard " if isinstance(shards[0], int) else ""
        return f"worker {process.worker} · {what}{shown}{more}"
    return plain(process.role[:64])


def _state(process: ProcessRow, one: Judged | None) -> str:
    """What a worker says of itself says more than that it sleeps; the kernel's worst news
    come first."""
    word = LETTERS.get(process.state) or plain(process.state) or "unknown"
    if one and (not process.state or word in ("running", "sleeping")):
        return one.state
    if one and word == "defunct" and one.state in ("idle", "done"):
        return "ended"  # with nothing (more) to read PyTorch ends a worker; no harm is done
    return word


def _walk(row: Row, above: str, own: str, found: list[Row], text: str, collapse: int) -> bool:
    """Appends a row and what is below it; with a text only what has it, and what that hangs from,
    as its context."""
    row.guides = above + own
    row.context = not contains(row, text)
    place = len(found)
    found.append(row)
    children = _collapsed(row.children, collapse) if collapse else row.children
    inner = above + {"": "", "├─ ": "│  ", "└─ ": "   "}[own]
    kept = False
    for at, child in enumerate(children):
        guide = "└─ " if at == len(children) - 1 else "├─ "
        if child.children:
            kept = _walk(child, inner, guide, found, text, collapse) or kept
        elif not text or contains(child, text):  # as most are: hundreds of workers
            child.guides, child.context = inner + guide, False
            found.append(child)
            kept = True
    kept = kept or not row.context
    if not kept:
        del found[place:]
    return kept


def _collapsed(children: list[Row], collapse: int) -> list[Row]:
    workers = [
        row
        for row in children
        if row.process.role == "worker"
        and not row.children
        and (collapse == 2 or row.state == "idle")
    ]
    if len(workers) < 2:
        return children
    joined, others = _join(workers), {id(row) for row in workers[1:]}
    return [joined if row is workers[0] else row for row in children if id(row) not in others]


def _join(workers: list[Row]) -> Row:
    """Workers of one rank in one line, which says how many and what they do."""
    states = [row.state for row in workers]
    kinds = sorted(set(states), key=lambda kind: (STATE_ROLES.get(kind) != "fine", kind))
    odd = [kind for kind in kinds if STATE_ROLES.get(kind) in ("bad", "warning")]
    state = kinds[0]
    what = f"{state} ×{len(workers)}"
    if len(kinds) > 1:
        what = ", ".join(f"{states.count(kind)} {kind}" for kind in kinds)
        state = f"{states.count(odd[-1])} {odd[-1]}" if odd else kinds[-1]
    first = workers[0]
    return Row(
        process=first.process,
        role=f"worker {_numbers([row.process.worker for row in workers])} · {what}",
        state=state,
        keys=tuple(key for row in workers for key in row.keys),
        gpu_mib=_sum([row.gpu_mib for row in workers]),
        rss_mib=_sum([row.rss_mib for row in workers]),
        shared_mib=_sum([row.shared_mib for row in workers]),
        cpu_percent=_sum([row.cpu_percent for row in workers]),
        tone=STATE_ROLES.get(odd[-1] if odd else kinds[0], "quiet"),
        members=tuple(workers),
    )


def _numbers(numbers: list[int | None]) -> str:
    """2, 3 · 0–15"""
    known = sorted(number for number in numbers if number is not None)
    if len(known) > 2 and known == list(range(known[0], known[-1] + 1)):
        return f"{known[0]}–{known[-1]}"
    return ", ".join(str(number) for number in known)


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
