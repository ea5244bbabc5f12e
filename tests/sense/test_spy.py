"""What py-spy says is taken only as far as it is what it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bitwatch.sense import spy, stacks
from bitwatch.sense.stacks import Frame, Look, Target
from tests.sense.conftest import Start, stat_of

FRAME = {"name": "get", "filename": "/lib/queue.py", "line": 171, "module": None}


def test_threads_come_with_the_main_one_first() -> None:
    told = [
        {"thread_name": "feeder", "os_thread_id": 8, "frames": [{**FRAME, "name": "feed"}]},
        {"thread_name": "MainThread", "os_thread_id": 7, "frames": [FRAME]},
        {"thread_name": "of C", "os_thread_id": 9, "frames": []},
    ]
    threads = spy.parse(told, 7)
    assert [thread.name for thread in threads] == ["MainThread", "feeder"]
    assert threads[0].frames == (Frame("/lib/queue.py", 171, "get"),)


@pytest.mark.parametrize("told", [None, 7, {}, [None, 7, {"frames": 3}, {"frames": [1, None]}]])
def test_anything_else_is_nothing(told: object) -> None:
    assert spy.parse(told, 7) == ()


def test_a_rank_without_a_handler_is_looked_into(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = start(code="print(flush=True); import sys; sys.stdin.read()")
    look = Look(Target(0, *stat_of(child.pid).key, None), "S", why=stacks.NO_HANDLER)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert spy.dump(look) == look
    program = tmp_path / "py-spy"
    thread = {"os_thread_id": child.pid, "thread_name": "MainThread", "frames": [FRAME]}
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$*" = "dump --nonblocking --json --pid {child.pid}" ] || exit 1\n'
        f"echo '{json.dumps([thread])}'\n"
    )
    program.chmod(0o700)
    assert [one.frames[0].function for one in spy.dump(look).threads] == ["get"]
    assert spy.dump(look).why == ""
    program.write_text("#!/bin/sh\necho Permission denied\nexit 1\n")
    assert spy.dump(look) == look
