"""The control socket: private, of this user only, and never in the way."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bitwatch.sense.processes import read_stat
from bitwatch.supervise import control
from bitwatch.supervise.control import Answer, ControlError, Request
from tests.conftest import PATIENCE_S, until


@pytest.fixture
def path() -> Iterator[Path]:
    """Not in a folder of pytest's: the name of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "private" / "run.sock"


def serve(server: socket.socket, seen: list[Request], count: int) -> threading.Thread:
    server.setblocking(True)

    def loop() -> None:
        for _ in range(count):
            received = control.receive(server)
            if received:
                seen.append(received[1])
                control.reply(received[0], Answer(True, "well", pid=7, attempt=2))

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def test_a_request_is_answered(path: Path) -> None:
    seen: list[Request] = []
    server = control.listen(path)
    thread = serve(server, seen, 1)
    answer = control.ask(path, Request("stop", by="me", now=True, attempt=2))
    thread.join()
    assert answer == Answer(True, "well", pid=7, attempt=2)
    assert seen == [Request("stop", by="me", now=True, attempt=2)]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_garbage_and_silence_cost_nothing(path: Path) -> None:
    seen: list[Request] = []
    server = control.listen(path)
    thread = serve(server, seen, 3)
    for data in (b"\xff\xfe\n", b""):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.connect(str(path))
            peer.sendall(data)
    assert control.ask(path, Request("status")).ok
    thread.join()
    assert [request.command for request in seen] == ["status"]


def test_nobody_there_is_a_sentence(path: Path) -> None:
    with pytest.raises(ControlError, match="no supervisor answers"):
        control.ask(path, Request("status"))
    server = control.listen(path)
    server.close()
    with pytest.raises(ControlError, match="no supervisor answers"):
        control.ask(path, Request("status"))
    control.listen(path).close()  # what a dead supervisor left is replaced


def test_a_folder_that_others_may_enter_is_refused(path: Path) -> None:
    path.parent.mkdir(mode=0o755)
    path.parent.chmod(0o755)
    with pytest.raises(ControlError, match="not a private folder"):
        control.listen(path)
    path.parent.rmdir()
    elsewhere = path.parent.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    path.parent.symlink_to(elsewhere)
    with pytest.raises(ControlError, match="not a private folder"):
        control.listen(path)


def test_the_path_is_short_however_long_the_runs_is(tmp_path: Path) -> None:
    long = control.socket_path(tmp_path / ("x" * 200) / ("y" * 200))
    assert len(os.fsencode(long)) < 107
    assert long != control.socket_path(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_another_user_is_not_answered(path: Path) -> None:
    """The peer drops its uid; the folder is opened wide so that only the kernel's word about
    the peer stands in its way."""
    server = control.listen(path)
    for folder in path.parents:
        if not folder.stat().st_mode & 0o001:
            folder.chmod(0o755)
    path.chmod(0o666)
    child = os.fork()
    if not child:
        os.setgid(65534)
        os.setuid(65534)
        try:
            control.ask(path, Request("stop"))
        except ControlError:
            os._exit(0)
        os._exit(1)
    assert select.select([server], [], [], PATIENCE_S)[0]
    assert control.receive(server) is None
    assert os.waitpid(child, 0)[1] == 0


def test_a_supervisor_that_was_stopped_goes_on_when_it_is_asked(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from bitwatch.supervise import control\n"
        "server = control.listen(Path(sys.argv[1])); server.setblocking(True)\n"
        "print(flush=True)\n"
        "peer, _ = control.receive(server); control.reply(peer, control.Answer(True, 'awake'))\n"
    )
    words = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as server:
        assert server.stdout and server.stdout.readline()
        server.send_signal(signal.SIGSTOP)
        until(lambda: (stat := read_stat(server.pid)) and stat.state == "T", "the stop")
        assert control.ask(path, Request("status"), PATIENCE_S).text == "awake"
    assert server.returncode == 0
