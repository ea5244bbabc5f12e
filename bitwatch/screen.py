"""What the commands do with the screen: whether there can be one, on which run, and what is
said when it has been left. Imports the screen itself only when it opens one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatch import headless, lines
from bitwatch.attach import choose
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.record.view import END_STATES
from bitwatch.supervise import begin, holding

if TYPE_CHECKING:
    from bitwatch.plan.result import Plan
    from bitwatch.sense.training import Training
    from bitwatch.tui.start import Left, Look

FAILED = 1


def is_terminal() -> bool:
    """Whether there is one to read keys from and to paint on."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):  # closed, or none at all
        return False


def look() -> Look | None:
    """How a screen would look; None without a terminal. Raises ConfigError."""
    if not is_terminal():
        return None
    from bitwatch.tui import start

    return start.look()


def asking(wanted: Look) -> Callable[[str, Plan, bool], str | None]:
    """The plan screen, as a question: the run's name, the plan as configured, whether that is
    impossible; the answer is the id of a correction, "as-is", or None."""

    def ask(name: str, configured: Plan, blocked: bool) -> str | None:
        from bitwatch.tui import start

        return start.ask(name, configured, blocked, wanted)

    return ask


def launched(run: RunDir, wanted: Look) -> int:
    """The screen of a run that was launched just now. Left before the end, the run goes on;
    left after it, the exit code says how it was."""
    from bitwatch.tui import start

    left = start.show(run, wanted)
    seen = left.seen
    over = seen is not None and seen.state in END_STATES and holding.is_free(run)
    if left.crash or seen is None or not over:
        return _leave(left)
    if not seen.gone:
        begin.close_if_dead(run, "bitwatch run")
    for line in lines.summary(seen):
        print(line)
    _leave(left)
    return headless.exit_code(seen)


def attach(home: Path, word: str | None) -> int:
    """Brings the screen back, or opens it on a training that bitwatch did not start. Raises
    RunDirError when there is nothing to be shown, or no terminal."""
    from bitwatch.attach import target

    found: list[Training] = []
    meant: target.Target | None = None
    if word is not None:
        meant = target.meant(home, word)
    else:
        live = choose.live(home)
        found = [] if live else choose.trainings()
        runs = live or rundir.list_runs(home)
        if not runs and not found:
            raise RunDirError(f"{home}: no runs yet; `bitwatch run` starts the demo")
        meant = runs[0] if len(runs) == 1 and not found else None
    if not is_terminal():
        raise RunDirError(f"attach needs a terminal; {_without_one(meant, found)}")
    from bitwatch.tui import start

    if meant is None:
        return _leave(start.pick(home))
    return _leave(start.show(target.opened(home, meant)))


def replay(home: Path, word: str, speed: str | None) -> int:
    """Plays a finished run as it happened. Raises RunDirError."""
    from bitwatch.attach import replay as replaying

    factor = replaying.speed(speed)
    run = replaying.opened(home, word)
    playing = replaying.Replay(run, factor)
    if not is_terminal():
        raise RunDirError(
            f"a replay needs a terminal; `bitwatch report {run.id}` tells its story without one"
        )
    from bitwatch.tui import start

    left = start.replay(playing)
    if left.crash:
        print(
            f"the screen failed ({left.error}); the traceback is in {left.crash}", file=sys.stderr
        )
        return FAILED
    print(f"{run.id} was played, and is as it was; bitwatch attach {run.id} shows how it ended")
    return 0


def _without_one(meant: object, found: Sequence[Training]) -> str:
    """What there is to be done without a terminal."""
    from bitwatch.attach import target
    from bitwatch.sense.training import Training as Kind

    if isinstance(meant, Kind):
        found = [meant]
    if found:
        return f"found was {target.words(found)} in one"
    if isinstance(meant, Path):
        return f"{meant} can be watched in one"
    run = meant.id if isinstance(meant, RunDir) else "RUN"
    return f"`bitwatch logs {run} -f` follows a run without one"


def _leave(left: Left) -> int:
    """Says how to come back, as the last line."""
    from bitwatch.tui import start

    text = start.farewell(left)
    if text:
        print(text, file=sys.stderr if left.crash else sys.stdout)
    return FAILED if left.crash else 0
