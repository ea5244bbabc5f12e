"""A stop as a file, `attempts/<n>/stop`: who asked, when, and whether at once.

Rank 0 looks for it at every step, so it works without a supervisor; a supervisor looks at it
too and escalates when the ranks do not answer.
"""

from __future__ import annotations

import errno
import time

import msgspec

from bitwatch import small, utf8
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir

DELETION = "the deletion of its directory"  # who asks when somebody has deleted it


class Stop(msgspec.Struct):
    by: str = "unknown"
    t: float = 0.0
    now: bool = False

    def forced(self) -> str:
        """How an attempt has ended that was ended by signals for this."""
        why = "at once" if self.now else "the ranks did not answer within the grace"
        return f"stopped by {self.by}, without a checkpoint ({why})"


def ask(
    run: RunDir, attempt: int, by: str, *, now: bool = False, to_relaunch: bool = False
) -> None:
    """Asks an attempt to stop, for good unless it is `to_relaunch`: a wish for a next attempt is
    taken away. The first to ask stays in the file; `now` overrules a gentle one. Raises OSError when the file cannot be
    written. A run whose directory somebody has deleted can be stopped too: the ranks look for
    nothing but this file."""
    run.attempt(attempt).mkdir(parents=True, exist_ok=True, mode=0o700)
    before = read(run, attempt)
    if not to_relaunch and run.relaunch(attempt).exists():
        run.relaunch(attempt).unlink(missing_ok=True)
        before = None  # that one was not for good
    if before is None or (now and not before.now):
        data = utf8.to_json(Stop(by=by, t=time.time(), now=now))
        try:
            rundir.write_whole(run.stop(attempt), data)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            run.stop(attempt).touch()  # an empty file takes no room, and is a stop too


def read(run: RunDir, attempt: int) -> Stop | None:
    """The request, if there is one; a file that cannot be understood is one too."""
    try:
        data = small.read(run.stop(attempt))
    except OSError:
        return None
    try:
        return msgspec.json.decode(data, type=Stop)
    except msgspec.MsgspecError:
        return Stop()
