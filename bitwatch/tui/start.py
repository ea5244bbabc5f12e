"""Opening the screen and leaving it: themes, the feed, the last line, and a crash.

Reading the run begins before Textual is imported, so that the first picture waits for nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bitwatch import calm
from bitwatch import config as configuration
from bitwatch.attach import choose, commands, gone
from bitwatch.attach.follow import Feed
from bitwatch.attach.offer import launchable
from bitwatch.plan.result import Plan
from bitwatch.record.follow import Follower
from bitwatch.record.rundir import RunDir
from bitwatch.record.view import END_STATES, View, view
from bitwatch.strict import ConfigError

if TYPE_CHECKING:
    from textual.theme import Theme

    from bitwatch.attach.replay import Replay
    from bitwatch.tui.app import Bitwatch
    from bitwatch.tui.looks import Wishes

SWITCH_S = 0.001  # between threads: the screen answers while a long history is read


class Left(msgspec.Struct, frozen=True):
    """How the screen was left: on which run, how that stood, and where a crash is told."""

    run: RunDir | None
    seen: View | None
    crash: Path | None = None
    error: str = ""


class Look(msgspec.Struct, frozen=True):
    """The themes there are, the one that is wanted, what was wrong with others, and what the
    user's file and the last time say of the rest."""

    themes: list[Theme]
    wanted: str
    complaints: list[str]
    wishes: Wishes


def look() -> Look:
    """Raises ConfigError when the theme or a key that the user's file names cannot be used. A
    theme that was chosen on the screen counts where that file names none."""
    from bitwatch.tui import remap
    from bitwatch.tui.kept import Keeping
    from bitwatch.tui.looks import Wishes
    from bitwatch.tui.themes import DEFAULT, load

    user = configuration.load_user()
    given = remap.given(user.keys, configuration.user_file())
    keeping = Keeping(configuration.home(user))
    themes, complaints = load()
    names = [theme.name for theme in themes]
    chosen = keeping.before.theme
    wanted = user.theme or (chosen if chosen in names else DEFAULT)
    if wanted not in names:
        broken = f" ({'; '.join(complaints)})" if complaints else ""
        raise ConfigError(
            f'{configuration.user_file()}: theme: there is no theme "{wanted}"; '
            f"take one of {', '.join(names)}{broken}"
        )
    return Look(themes, wanted, complaints, Wishes(user.theme or "", given, keeping))


def show(run: RunDir, chosen: Look | None = None) -> Left:
    """The screen of one run, until it is left."""
    feed = Feed(run)
    feed.start()
    return _open(feed, None, chosen)


def replay(playing: Replay, chosen: Look | None = None) -> Left:
    """A finished run as it happened, until it is left. A crash is told elsewhere than in its
    folder, where nothing is written."""
    from bitwatch.attach.replay import Refusing
    from bitwatch.tui.app import Bitwatch
    from bitwatch.tui.screens.replay import ReplayDashboard

    greys_if_dumb()
    chosen = chosen or look()
    app = Bitwatch(
        playing,
        Refusing(),
        chosen.themes,
        chosen.wanted,
        chosen.complaints,
        dashboard=lambda run, host, first: ReplayDashboard(playing, host, first),
        wishes=chosen.wishes._replace(keeping=None),  # how it is left is kept of live runs alone
    )
    playing.start()
    error = _run(app)
    playing.close()
    if error is None:
        return Left(playing.run, None)
    _restore_terminal()
    return Left(playing.run, None, _tell(error, None), _first_line(error))


def pick(home: Path) -> Left:
    """The choice of a run, then its screen."""
    return _open(None, home, None)


def ask(name: str, configured: Plan, blocked: bool, chosen: Look | None) -> str | None:
    """The plan screen before a launch: the id of the correction to launch with, "as-is" for the
    configured plan, or None for no launch. `blocked`: the configured plan has an error that its
    corrections remove. Where none can be launched there is nothing to ask."""
    from bitwatch.tui.app import Bitwatch
    from bitwatch.tui.screens.plan import AS_IS, PlanScreen

    if not launchable(msgspec.to_builtins(configured)):
        return None if blocked else AS_IS
    chosen = chosen or look()
    greys_if_dumb()
    app = Bitwatch(
        None,
        commands,
        chosen.themes,
        chosen.wanted,
        chosen.complaints,
        choose=lambda: PlanScreen(name, configured, blocked),
        wishes=chosen.wishes,
    )
    if (error := _run(app)) is not None:
        _restore_terminal()
        where = _tell(error, None)
        print(f"the screen failed ({_first_line(error)}); the traceback is in {where}")
        return None
    answer: str | None = app.answer
    return answer


def farewell(left: Left) -> str:
    """The shell's last line."""
    if left.run is None:
        return ""
    name, over = left.run.id, left.seen is not None and left.seen.state in END_STATES
    word = f"has ended ({left.seen.state})" if left.seen and over else "goes on"
    back = "shows it again" if over else "brings it back"
    line = f"{name} {word}; bitwatch attach {name} {back}"
    if gone.is_gone(left.run):  # nothing brings it back
        line = f"{name}: {left.seen.gone if left.seen and left.seen.gone else gone.GONE}"
        line += f" ({left.run.path})"
    if left.crash:
        return f"the screen failed ({left.error}); {line}; the traceback is in {left.crash}"
    return line


def _open(feed: Feed | None, home: Path | None, chosen: Look | None) -> Left:
    from bitwatch.tui.app import Bitwatch
    from bitwatch.tui.screens.picker import Picker

    chosen = chosen or look()
    greys_if_dumb()
    app = Bitwatch(
        feed,
        commands,
        chosen.themes,
        chosen.wanted,
        chosen.complaints,
        choose=(lambda: Picker(lambda: choose.growing(home))) if home else None,
        open_run=_started,
        wishes=chosen.wishes,
    )
    error = _run(app)
    if chosen.wishes.keeping is not None:
        chosen.wishes.keeping.close()
    source = app.source
    if source is not None:
        source.close()
    run = source.run if source is not None else None
    seen = _now(run) if run is not None else None
    if source is not None and source.latest is not None and gone.is_gone(source.run):
        seen = source.latest.view  # what is known of it stood on the screen
    if error is None:
        return Left(run, seen)
    _restore_terminal()
    return Left(run, seen, _tell(error, run), _first_line(error))


def greys_if_dumb() -> None:
    """A terminal that names itself one without colours would get all of them from Textual."""
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        os.environ["NO_COLOR"] = "1"  # which Textual takes out of it again


def _run(app: Bitwatch) -> BaseException | None:
    """Until it is left; what it failed with."""
    from bitwatch.tui import terminal

    terminal.use(app)
    sys.setswitchinterval(SWITCH_S)
    threading.Thread(target=_end_with_the_terminal, name="terminal", daemon=True).start()
    try:
        calm.collect_seldom()
        app.run()
    except KeyboardInterrupt:
        return None
    except Exception as raised:
        return raised
    return app.crash


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _started(run: RunDir) -> Feed:
    feed = Feed(run)
    feed.start()
    return feed


def _now(run: RunDir) -> View:
    follower = Follower(run, glance=True)
    follower.poll()
    return view(follower.state, time.time(), follower.liveness())


def _tell(error: BaseException, run: RunDir | None) -> Path:
    """The traceback in a file, in the run's folder if that can be written."""
    text = "".join(traceback.format_exception(error))
    name = f"screen-crash-{int(time.time())}-{os.getpid()}.txt"
    folders = [run.path] if run is not None else []
    for folder in (*folders, Path(tempfile.gettempdir())):
        try:
            (folder / name).write_text(text)
        except OSError:
            continue
        return folder / name
    return Path(os.devnull)


def _end_with_the_terminal() -> None:
    """When the terminal is gone and a shell has hung-up signals ignored, nobody would tell us,
    and reading keys from nothing would take a whole core."""
    with contextlib.suppress(OSError, ValueError):
        terminal = select.poll()
        terminal.register(sys.stdin.fileno(), 0)  # only what cannot be masked: a hang-up
        terminal.poll()
        os._exit(0)


def _restore_terminal() -> None:
    """What a screen that died may have left on: mouse reports, the other buffer, no cursor."""
    sys.stdout.write(
        "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[?25h\x1b[0m"
    )
    sys.stdout.flush()
