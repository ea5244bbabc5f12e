"""The user's command: run for what is severe, bounded, one at a time, and never waited for."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch.record import events, rundir
from bitwatch.record.journal import read_all
from bitwatch.record.rundir import RunDir
from bitwatch.sense import processes
from bitwatch.strict import ConfigError
from bitwatch.supervise import launch, notify, notifying
from bitwatch.supervise.notify import WAITING, Notifier
from bitwatch.supervise.reaper import Exit
from bitwatch.supervise.spared import Spared
from tests.conftest import alive, until
from tests.supervise.standins import Standins, of

BAD = events.Alert(id="gpu-lost", severity="error", text="GPU 3 is gone", next="look", attempt=2)
Told = Callable[..., Notifier]


@pytest.fixture
def told(run: RunDir) -> Iterator[Told]:
    """Makes a notifier for a command; what still runs at the end is waited for."""
    made: list[Notifier] = []

    def make(command: str) -> Notifier:
        made.append(Notifier(command, run))
        made[-1].journal(run)
        return made[-1]

    yield make
    for notifier in made:
        finish(notifier)


def reap(notifier: Notifier) -> bool:
    """As the supervisor's reaper does, of this child alone; whether it still runs."""
    for pid in list(notifier.pids):
        gone, status = os.waitpid(pid, os.WNOHANG)
        if gone:
            notifier.note_exit(Exit(pid, 0, os.waitstatus_to_exitcode(status), None))
    return bool(notifier.pids)


def finish(notifier: Notifier) -> None:
    until(lambda: not reap(notifier), "the command to end")


def failures(run: RunDir) -> list[tuple[str, str]]:
    actions = of(read_all(run.journal)[0], events.Action)
    return [(action.on, action.result) for action in actions if action.name == "notify"]


def test_an_error_reaches_the_command_by_its_input_and_its_environment(
    run: RunDir, told: Told, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    notifier = told(f"cat > {out}; env | grep ^BITWATCH_ | sort >> {out}; touch {out}.done")
    notifier.hear(events.AttemptStarted(attempt=2))
    notifier.hear(events.Alert(id="loss-spike", severity="warning", text="not severe"))
    assert not notifier.pids
    evil = "GPU 3\x1b[2J is `touch /nowhere` $(false); gone"
    notifier.hear(events.Alert(**{**as_dict(BAD), "text": evil}))
    (pid,) = notifier.pids
    command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"GPU" not in command_line and str(out).encode() not in command_line
    assert os.getsid(pid) == pid
    finish(notifier)
    lines = out.read_text().splitlines()
    shown = evil.replace("\x1b", "\\x1b")
    assert lines[0] == f"demo, attempt 2: {shown}"
    assert lines[1:] == [
        "BITWATCH_ALERT_ATTEMPT=2",
        "BITWATCH_ALERT_ID=gpu-lost",
        "BITWATCH_ALERT_NAME=demo",
        "BITWATCH_ALERT_NEXT=look",
        f"BITWATCH_ALERT_RUN={run.id}",
        "BITWATCH_ALERT_SEVERITY=error",
        f"BITWATCH_ALERT_TEXT={shown}",
    ]
    assert not {line.partition("=")[0] for line in lines} & {*launch.TAGS, notify.HANDED_DOWN}
    assert failures(run) == []


def as_dict(alert: events.Alert) -> dict[str, object]:
    return {name: getattr(alert, name) for name in ("id", "severity", "text", "next", "attempt")}


def test_one_at_a_time_and_the_same_alert_once_in_ten_minutes(
    run: RunDir, told: Told, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    notifier = told(f"read words; echo $BITWATCH_ALERT_ID >> {out}")
    cleared = events.Alert(id=BAD.id, cleared=True, attempt=2)
    for record in (BAD, BAD, cleared, BAD):
        notifier.hear(record)
    notifier.hear(events.RunEnded(state="done"))
    notifier.hear(events.RunEnded(state="failed", cause="rank 2: broken"))
    assert len(notifier.pids) == 1
    finish(notifier)
    assert out.read_text().split() == ["gpu-lost", "run-failed"]


def test_what_waits_is_bounded_and_the_end_of_the_run_is_always_told(
    run: RunDir, told: Told, tmp_path: Path
) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out"
    os.mkfifo(gate)
    notifier = told(f"read line < {gate}; echo $BITWATCH_ALERT_ID >> {out}")
    for number in range(WAITING + 3):
        notifier.hear(events.Alert(id=f"bad-{number}", severity="error", text="x", attempt=1))
    notifier.hear(events.RunEnded(state="lost"))
    assert len(notifier.pids) == 1
    assert [name for name, _ in failures(run)] == [f"bad-{WAITING + 1}", f"bad-{WAITING + 2}"]

    def let_go() -> bool:
        try:
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass  # nobody reads it just now
        return reap(notifier)

    until(lambda: not let_go(), "all to be told")
    said = out.read_text().split()
    assert len(said) == WAITING + 1 and said[0] == "bad-0" and said[-1] == "run-lost"


def test_a_command_that_fails_is_written_down_with_its_last_words(run: RunDir, told: Told) -> None:
    notifier = told("echo first; echo 'no \x1b[31mroute' >&2; exit 7")
    notifier.hear(BAD)
    finish(notifier)
    notifier = told("kill -9 $$")
    notifier.hear(BAD)
    finish(notifier)
    assert failures(run) == [
        ("gpu-lost", "exit code 7: no \\x1b[31mroute"),
        ("gpu-lost", "killed by signal 9"),
    ]


NOTIFIES = """
import os, sys, time
from bitwatch.supervise import notifying
clock, over = time.monotonic, sys.argv[2]
time.monotonic = lambda: clock() + 1e6 * os.path.exists(over)
notifying.main()
"""


def notifying_of(command: str, over: Path) -> dict[str, str]:
    """What came of it, when its time was over as soon as this file was there."""
    job = {"command": command, "text": "x\n", "environment": {"BITWATCH_ALERT_ID": "x"}}
    told = subprocess.run(
        [sys.executable, "-c", NOTIFIES, "30", str(over)],
        input=json.dumps(job).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(told.stdout)


def has_ended(pid: int) -> bool:
    stat = processes.read_stat(pid)
    return stat is None or stat.state in "ZX"


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    pids, over = tmp_path / "pids", tmp_path / "over"
    command = f"sleep 600 & echo $! > {pids}; echo waits; touch {over}; sleep 600"
    result = notifying_of(command, over)
    assert result["how"] == "ended after 30 s, which is all that it gets"
    assert result["words"] == "waits"
    assert has_ended(int(pids.read_text()))


def test_what_it_left_running_is_ended_when_its_shell_is_gone_and_nobody_else(
    tmp_path: Path,
) -> None:
    """By then the number of its session may be that of somebody else's."""
    pids, over = tmp_path / "pids", tmp_path / "over"
    lasts = f"while kill -0 $$; do sleep 0.02; done; touch {over}; exec sleep 600"
    assert notifying_of(f"({lasts}) > /dev/null 2>&1 & echo $! > {pids}", over)["how"] == ""
    assert has_ended(int(pids.read_text()))
    begin = (
        "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True,"
        " stdout=subprocess.DEVNULL).pid)"
    )
    words = [sys.executable, "-c", begin]
    stranger = processes.read_stat(int(subprocess.check_output(words, stderr=subprocess.DEVNULL)))
    assert stranger is not None and stranger.session == stranger.pid
    try:
        notifying._end(stranger.session, is_reaped=True)
        assert alive(stranger.key)
    finally:
        assert processes.send_signal(*stranger.key, signal.SIGKILL)


def test_nothing_is_run_without_a_command(run: RunDir, told: Told) -> None:
    notifier = told("")
    notifier.hear(BAD)
    assert not notifier.pids


def test_at_the_end_what_waits_is_told_by_who_goes_on_alone(
    run: RunDir, told: Told, tmp_path: Path
) -> None:
    gate, out = tmp_path / "gate", tmp_path / "out"
    os.mkfifo(gate)
    notifier = told(f"read line < {gate}; echo $BITWATCH_ALERT_ID >> {out}")
    notifier.hear(BAD)
    notifier.hear(events.RunEnded(state="failed"))
    began = time.monotonic()
    notifier.leave(lambda: reap(notifier), limit_s=0.1)
    assert time.monotonic() - began < 30.0
    assert len(notifier.pids) == 2
    for name in ("gpu-lost", "run-failed"):  # one after the other
        with open(gate, "w") as file:
            file.write("\n")
        until(lambda: out.exists() and name in out.read_text(), f"{name} to be told")  # noqa: B023
    until(lambda: not reap(notifier), "both to end")


@contextlib.contextmanager
def few_files(left: int) -> Iterator[None]:
    """So many more can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    held: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(left):
            os.close(held.pop())
        yield
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_could_not_be_started_is_written_down_and_harms_nothing(
    run: RunDir, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    notifier = told(f"echo $BITWATCH_ALERT_ID >> {out}")
    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as refused:
        refused.setattr(sys, "executable", "/nowhere/python")
        notifier.hear(BAD)
        assert failures(run) == [("gpu-lost", "not told: No such file or directory")]
    for left in (1, 2):  # not enough for a pipe, nor for a pipe and what is told
        with few_files(left):
            notifier.hear(events.Alert(id=f"bad-{left}", severity="error", text="x", attempt=2))
        assert failures(run)[left] == (f"bad-{left}", "not told: Too many open files")
    assert os.listdir("/proc/self/fd") == before
    notifier._waiting.append(notifier._job("ecc-errors", 2, "x", "y"))
    notifier.leave(lambda: reap(notifier), limit_s=0.0)
    finish(notifier)
    assert out.read_text().split() == ["ecc-errors"]


def test_the_command_imports_as_the_user_does(run: RunDir, told: Told, tmp_path: Path) -> None:
    out = tmp_path / "out"
    notifier = told(f"echo safe=$PYTHONSAFEPATH > {out}")
    notifier.hear(BAD)
    finish(notifier)
    assert out.read_text() == "safe=\n"


def test_an_error_of_the_next_attempt_is_told_again(
    run: RunDir, told: Told, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    notifier = told(f"echo $BITWATCH_ALERT_ID $BITWATCH_ALERT_ATTEMPT >> {out}")
    for attempt in (2, 3):
        notifier.hear(events.AttemptStarted(attempt=attempt))
        notifier.hear(events.Alert(**{**as_dict(BAD), "attempt": attempt}))
        notifier.hear(events.AttemptEnded(attempt=attempt, state="failed"))
        notifier.hear(events.RunEnded(state="failed"))
    finish(notifier)
    assert out.read_text().splitlines() == [
        "gpu-lost 2", "run-failed 2", "gpu-lost 3", "run-failed 3",
    ]  # fmt: skip


def test_of_a_training_of_others_only_a_failure_is_told(tmp_path: Path, told: Told) -> None:
    """What is not said in its log is not known to be lost; and a log that begins again goes on."""
    run = rundir.create(tmp_path / "runs", "theirs", foreign=True)
    out = tmp_path / "told"
    notifier = Notifier(f"echo $BITWATCH_ALERT_ID $BITWATCH_ALERT_ATTEMPT >> {out}", run)
    notifier.journal(run)
    notifier.hear(events.AttemptStarted(attempt=1))
    notifier.hear(events.RunEnded(state="lost", cause="its log does not say how"))
    notifier.goes_on = True
    notifier.hear(events.RunEnded(state="failed", cause="its launcher starts its ranks again"))
    assert not notifier.pids
    notifier.goes_on = False
    notifier.hear(events.RunEnded(state="failed"))
    finish(notifier)
    assert out.read_text().split() == ["run-failed", "1"]


def test_what_the_command_starts_is_no_part_of_the_run(standins: Standins) -> None:
    """Also what comes to the supervisor when its parent has ended."""
    script = "import subprocess; subprocess.Popen(['sleep', '600']); print(flush=True); input()"
    key = standins.start(script, stdin=-1)
    (child,) = processes.descendants(processes.scan(), {key[0]})
    parent = processes.read_stat(key[0])
    assert parent is not None
    own = {parent.key: parent, child.key: child}
    spared = Spared()
    assert spared.without(own, ()) == own
    assert spared.without(own, {key[0]}) == {}
    adopted = {child.key: child._replace(ppid=1)}
    assert spared.without(adopted, ()) == {}
    assert processes.send_signal(*child.key, 9)


def test_the_command_is_handed_down_to_a_supervisor_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv(notify.HANDED_DOWN, "old")
    assert notify.hand_down(os.environ).get(notify.HANDED_DOWN) is None
    own = configuration.user_file()
    own.parent.mkdir(parents=True)
    own.write_text('notify_command = "beep"\n')
    assert notify.hand_down(os.environ)[notify.HANDED_DOWN] == "beep"
    assert notify.handed_down() == "old" and notify.HANDED_DOWN not in os.environ
    own.write_text("notify_command = ['beep']\n")
    assert notify.HANDED_DOWN not in notify.hand_down(os.environ)
    for wrong in ("['beep']", "''", "7"):
        own.write_text(f"notify_command = {wrong}\n")
        with pytest.raises(ConfigError, match=r"must be a command for sh.*mail -s bitwatch"):
            configuration.load_user()
