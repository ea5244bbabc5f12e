"""What logind's files say about the end of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.sense import session


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine on which this process belongs to a session."""
    write(tmp_path, "proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_session_that_takes_its_processes_along_is_said(root: Path) -> None:
    write(root, "etc/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\nRemoveIPC=no\n")
    (why,) = session.will_kill(root, "ada")
    assert "KillUserProcesses=yes" in why


def test_shared_memory_is_deleted_unless_somebody_said_no(root: Path) -> None:
    (why,) = session.will_kill(root, "ada")
    assert "RemoveIPC=yes" in why
    write(root, "etc/systemd/logind.conf", "[Login]\n# RemoveIPC=yes\n")
    write(root, "etc/systemd/logind.conf.d/50-ours.conf", "[Login]\nRemoveIPC = off\n")
    assert session.will_kill(root, "ada") == []
    assert session.will_kill(root, "root") == []


def test_who_lingers_or_is_in_no_session_is_spared(root: Path) -> None:
    write(root, "run/systemd/logind.conf", "[Login]\nKillUserProcesses=yes\n")
    assert len(session.will_kill(root, "ada")) == 2
    write(root, "var/lib/systemd/linger/ada", "")
    assert session.will_kill(root, "ada") == []
    write(root, "proc/self/cgroup", "0::/user.slice/user-1000.slice/user@1000.service/app.slice\n")
    assert session.will_kill(root, "bob") == []


def test_a_file_that_makes_no_sense_is_passed_over(root: Path) -> None:
    write(root, "etc/systemd/logind.conf", "RemoveIPC=no\n[Login\n")
    assert len(session.will_kill(root, "ada")) == 1
    assert session.will_kill(root / "nowhere", "ada") == []


def test_this_machine_can_be_asked() -> None:
    assert isinstance(session.will_kill(), list)
