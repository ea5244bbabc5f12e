"""Whatever lies where a small file should: nothing is waited for, and nothing read without end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch import small
from bitwatch.record import rundir
from bitwatch.record.rundir import RunDirError
from bitwatch.strict import ConfigError
from bitwatch.supervise import launch, stopping
from bitwatch.tui import kept, themes
from bitwatch.tui.kept import Kept
from tests.conftest import TINY, Shell
from tests.terminal import Terminal
from tests.tui import recorded


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(small.RECORDED_MIB * small.MIB + 1)


@pytest.fixture(params=[os.mkfifo, zeros, large, Path.mkdir], ids=["pipe", "zero", "large", "dir"])
def lay(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    return request.param


def test_a_plain_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * small.MIB)
    assert small.read(file, 1) == b"x" * small.MIB
    with file.open("ab") as more:
        more.write(b"x")
    with pytest.raises(OSError, match="larger than 1 MiB"):
        small.read(file, 1)
    assert len(small.read(file)) == small.MIB + 1


def test_a_users_files_may_be_anything(
    lay: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("BITWATCH_HOME", raising=False)
    (tmp_path / "bitwatch" / "themes").mkdir(parents=True)
    lay(tmp_path / "bitwatch" / "themes" / "mine.toml")
    found, (complaint,) = themes.load()
    assert len(found) > 3 and "mine.toml" in complaint
    assert any(words in complaint for words in ("not a regular file", "larger than", "a folder"))
    lay(configuration.user_file())
    with pytest.raises(ConfigError, match=r"config\.toml"):
        configuration.load_user()
    lay(tmp_path / kept.NAME)
    assert kept.read(tmp_path / kept.NAME) == Kept()


def test_files_of_a_run_may_be_anything(lay: Callable[[Path], None], tmp_path: Path) -> None:
    run = rundir.create(tmp_path, "demo")
    number = rundir.new_attempt(run)
    for path in (run.plan(number), run.stop(number)):
        lay(path)
    run.identity_file.unlink()
    lay(run.identity_file)
    with pytest.raises(RunDirError, match=r"run\.json"):
        run.identity()
    assert launch.plan_of(run, number) == {} and stopping.read(run, number) is None


def test_the_screen_opens_whatever_lies_there_and_says_what(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    recorded.make(shell.home, ended=True)
    folder = tmp_path / "config" / "bitwatch" / "themes"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "x.toml")
    os.mkfifo(shell.home / kept.NAME)
    with Terminal(shell, "attach") as screen:
        screen.see("DONE", "3 Loss", "x.toml")
        screen.press("q")
        assert screen.leave()[0] == 0
    zeros(folder.parent / "config.toml")
    with Terminal(shell, "attach") as screen:
        code, lines = screen.leave()
    said = "".join(lines).replace(" ", "")  # the terminal ends a line wherever it is full
    assert code != 0 and "cannotberead:itisnotaregularfile" in said


def test_what_the_shell_hands_over_is_a_configuration() -> None:
    """As in `bitwatch plan <(sed ... demo.toml)`."""
    reading, writing = os.pipe()
    with open(writing, "w") as file:
        file.write(TINY)
    assert configuration.load(Path(f"/dev/fd/{reading}")).run.name == "tiny"
    os.close(reading)
