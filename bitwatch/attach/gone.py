"""A run whose folder cannot be read any more: why, and what is known of it all the same.

The last picture stays, but for what would be untrue in it: whose process has ended is not there,
nothing is promised that needs the record, and when nothing lives any more the run has ended. A
supervisor whose folder was deleted stops its run; what it and the ranks then write lies where the
folder was, in one that is no run.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from bitwatch import small
from bitwatch.record import events
from bitwatch.record.afterwards import LEFTOVERS, SUPERVISOR_GONE
from bitwatch.record.follow import lives
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.state import RunState
from bitwatch.record.view import END_STATES, View
from bitwatch.supervise import stopping

GONE = "the folder of this run has been deleted or moved"
MANIFEST_MIB = 16

Key = tuple[int, int]


class Exit(msgspec.Struct):
    """exit.json, as far as it matters here."""

    state: events.EndState = "lost"
    cause: str = ""


class Manifest(msgspec.Struct):
    """Of a whole checkpoint, when it was made."""

    created: float = 0.0


class Saved(NamedTuple):
    step: int
    path: Path
    t: float


def is_gone(run: RunDir) -> bool:
    """Whether there is no run in this folder any more. One that cannot be looked at may be there;
    one without a run.json is what processes of a deleted run have made anew."""
    try:
        os.stat(run.identity_file)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def refuse(run: RunDir, done: str) -> None:
    """Raises RunDirError for what cannot be done to a run without its folder."""
    if is_gone(run):
        raise RunDirError(f"{run.id}: {GONE}; without it the run cannot be {done}")


def trouble_with(run: RunDir) -> str:
    """Why the directory cannot be read now, as a sentence; empty when it can."""
    try:
        os.listdir(run.path)
        if not os.access(run.journal, os.R_OK) and run.journal.exists():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        os.stat(run.identity_file)
        run.identity()
    except FileNotFoundError:
        return f"{GONE}; its last picture stays"
    except OSError as error:
        return f"the folder of this run cannot be read ({error.strerror}); trying again"
    except RunDirError as error:
        return f"this is no run any more: {error}"
    return ""


def without_record(run: RunDir, seen: View, state: RunState, trouble: str, now: float) -> View:
    """The last picture of a run of this machine, `seen`, brought to what is true now. `state` is
    all that was read of it, `trouble` why no more can be."""
    gone = is_gone(run)
    if seen.state in END_STATES:
        return _told(seen, run, trouble, now, gone=f"{GONE}; it has ended" if gone else "")
    known = set(_processes(state, seen))
    living = {key for key in known if lives(*key)}
    if known and not living:
        return _ended(run, seen, trouble, now, gone)
    supervised = any(one in living for one in _supervisors(state))
    seen = msgspec.structs.replace(
        seen,
        supervisor="alive" if supervised else "gone",
        note="" if supervised or seen.foreign or gone else "its supervisor is gone",
        eta_s=None,
        processes=[row for row in seen.processes if row.key in living or row.key not in known],
        leftovers=[one for one in seen.leftovers if lives(one.pid, one.starttime)],
    )
    if gone and (stop := stopping.read(run, seen.attempt)):
        trouble = f"{GONE}; the run stops{_for_that(stop)}, with a checkpoint"
        seen = msgspec.structs.replace(seen, state="stopping")
    elif gone and not supervised and not seen.foreign:
        trouble = f"{GONE}, and its supervisor is gone; nothing watches or records its processes"
    following = f"if it was moved: back at {run.path} it is shown again" if gone else ""
    return _told(seen, run, trouble, now, following, gone=GONE if gone else "")


def _ended(run: RunDir, seen: View, trouble: str, now: float, gone: bool) -> View:
    """Nothing of it lives. Its last files say how it ended, if any of them can be read."""
    exit = _exit(run, seen.attempt)
    stop = stopping.read(run, seen.attempt)
    saved = _newest_checkpoint(run, seen)
    if stop is None or (saved is not None and saved.t < stop.t):
        saved = None  # one of before the stop is no end of the run
    cause = "its folder is gone, and its processes have ended"
    following = f"if it was moved: back at {run.path} it shows how it ended"
    if not gone:
        cause, following = "its record cannot be read, and its processes have ended", ""
        words = f"{trouble.split(';', maxsplit=1)[0]}, and its processes have ended"
    elif stop is not None and saved is not None:
        words = (
            f"its folder was deleted; the run stopped{_for_that(stop)} at step {saved.step:,} "
            "with a checkpoint; its processes have ended"
        )
        following = f"whoever wants this model copies {saved.path}: no run knows of it any more"
    elif stop is not None:
        words = f"its folder was deleted; the run stopped{_for_that(stop)} without a checkpoint; "
        words += "its processes have ended"
        following = ""
    else:
        words = f"{GONE}, and its processes have ended"
    state: events.EndState = exit.state if exit else "lost"
    if saved is not None and state in ("lost", "stopped"):
        state, cause = "stopped", ""  # the ranks' last words went into the files that were deleted
    elif exit and state != "lost":
        cause = exit.cause
    if saved is not None:
        made = events.Checkpoint(step=saved.step, path=str(saved.path), t=saved.t)
        checkpoints = [*(one for one in seen.checkpoints if one.step < saved.step), made]
        seen = msgspec.structs.replace(
            seen,
            step=max(seen.step, saved.step),
            checkpoints=checkpoints,
            updated=saved.t,
            ended=saved.t,
        )
    seen = msgspec.structs.replace(
        seen, state=state, cause=cause, note="", supervisor="ended", eta_s=None, phase="",
        phase_text="", phase_progress=None, processes=[], leftovers=[], stuck=None, alerts=[],
    )  # fmt: skip
    evidence = [f"the checkpoint: {saved.path}"] if saved is not None else []
    evidence += [f"its stop was asked by {stop.by}"] if stop else []
    return _told(seen, run, words, now, following, evidence, gone=words if gone else "")


def _told(
    seen: View,
    run: RunDir,
    text: str,
    now: float,
    following: str = "",
    evidence: list[str] | None = None,
    gone: str = "",
) -> View:
    """With the alert about it. Of the others nothing can be done without the folder."""
    others = [one for one in seen.alerts if one.id not in (SUPERVISOR_GONE, LEFTOVERS)]
    if gone:
        others = [msgspec.structs.replace(one, next="") for one in others]
    seen = msgspec.structs.replace(seen, gone=gone, alerts=others)
    seen = with_alert(seen, "record-unreadable", text, run, now)
    alert = seen.alerts[0]
    alert.evidence += evidence or []
    alert.next = following
    return seen


def with_alert(seen: View, name: str, text: str, run: RunDir, now: float) -> View:
    """A picture that says what stands in the way of reading; nobody else could."""
    severity: events.Severity = "info" if name == "newer-version" else "error"
    alert = events.Alert(id=name, severity=severity, text=text, evidence=[str(run.path)], t=now)
    others = [other for other in seen.alerts if other.id != name]
    return msgspec.structs.replace(seen, alerts=[alert, *others])


def _processes(state: RunState, seen: View) -> Iterator[Key]:
    """All that is on record of the newest attempt, without what has ended."""
    journal = state.journal
    for key, start in journal.processes.items():
        if key not in journal.exits and (seen.foreign or start.attempt == seen.attempt):
            yield key
    for rank in state.ranks_of(seen.attempt).values():
        if rank.pid:
            yield rank.pid, rank.starttime
    yield from _supervisors(state)


def _supervisors(state: RunState) -> Iterator[Key]:
    """Of any attempt: one goes on to the next, and another may have taken over."""
    for key, start in state.journal.processes.items():
        if start.role == "supervisor" and key not in state.journal.exits:
            yield key


def _for_that(stop: stopping.Stop) -> str:
    return " for that" if stop.by == stopping.DELETION else ""


def _exit(run: RunDir, attempt: int) -> Exit | None:
    try:
        return msgspec.json.decode(small.read(run.exit(attempt)), type=Exit)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _newest_checkpoint(run: RunDir, seen: View) -> Saved | None:
    """The newest whole one, where checkpoints were saved before or where they go by default."""
    folders = {run.checkpoints(), *(Path(one.path).parent for one in seen.checkpoints[-1:])}
    found = []
    for folder in folders:
        try:
            manifests = list(folder.glob("step-*/manifest.json"))
        except (OSError, ValueError):  # a path out of a record may be anything
            continue
        for path in manifests:
            number = path.parent.name.removeprefix("step-")
            if number.isdecimal() and (made := _made(path)) is not None:
                found.append(Saved(int(number), path.parent, made))
    return max(found, default=None)


def _made(manifest: Path) -> float | None:
    try:
        return msgspec.json.decode(small.read(manifest, MANIFEST_MIB), type=Manifest).created
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
