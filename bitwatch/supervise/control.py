"""The control socket of a supervisor, both ends.

A request and its answer are one JSON line each. Only the same user is answered: the folder is
private, and the peer's uid is asked of the kernel. What it does also works without it (a stop
is a file in the run directory); it is the quick way, and it says at once that someone is there.
A supervisor that somebody has stopped (SIGSTOP) is told to go on by whoever asks it something.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import signal
import socket
import stat
import struct
from pathlib import Path

import msgspec

from bitwatch import utf8
from bitwatch.sense.processes import read_stat, send_signal

MESSAGE_BYTES = 64 << 10
ANSWER_S = 5.0


class Request(msgspec.Struct):
    """`command`: status, stop, clean, relaunch, signalled or cleaned. `by` is who asks, for the record.
    With an `attempt`, only that one is meant: a later one does not answer to it. `correction` says
    what the next attempt is to do better (see `relaunch`). signalled, cleaned: it is done already,
    to whom (`on`) and with what `result`, and the record is to say so."""

    command: str
    by: str = ""
    now: bool = False
    attempt: int = 0
    correction: str = ""
    on: str = ""
    result: str = ""


class Answer(msgspec.Struct):
    ok: bool
    text: str = ""
    pid: int = 0
    attempt: int = 0


class ControlError(Exception):
    """Nobody answers there, as one sentence."""


def socket_path(run_directory: Path) -> Path:
    """A short path (the kernel allows 107 bytes), the same for every process of this user.
    Not in $XDG_RUNTIME_DIR, which vanishes at logout."""
    name = hashlib.sha256(os.fsencode(run_directory.absolute())).hexdigest()[:16]
    return Path("/tmp") / f"bitwatch-{os.getuid()}" / f"{name}.sock"


def listen(path: Path) -> socket.socket:
    """Raises ControlError when the folder is not ours alone, OSError when it cannot be made."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    facts = path.parent.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise ControlError(f"{path.parent}: is not a private folder of yours; remove it")
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    server.bind(str(path))
    path.chmod(0o600)
    server.listen(8)
    server.setblocking(False)
    return server


class Server:
    """The supervisor's end, while it listens. What cannot be opened is no reason to fail: a
    stop by file still works."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None

    def listen(self, selector: selectors.BaseSelector, name: str) -> None:
        """Opens the socket, and again when somebody has removed it."""
        if self._socket is not None and self._path.exists():
            return
        if self._socket is not None:
            selector.unregister(self._socket)
            self._socket.close()
            self._socket = None
        with contextlib.suppress(OSError, ControlError):
            self._socket = listen(self._path)
            selector.register(self._socket, selectors.EVENT_READ, name)

    def receive(self) -> tuple[socket.socket, Request] | None:
        return receive(self._socket) if self._socket else None

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._path.unlink(missing_ok=True)


def receive(server: socket.socket) -> tuple[socket.socket, Request] | None:
    """The next request, or None when it was none of ours, not whole, or not the same user's.
    A peer that sends nothing costs a tenth of a second, not more."""
    try:
        peer, _ = server.accept()
    except OSError:
        return None
    try:
        uid = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
        if uid != os.getuid():
            raise ControlError("another user")
        peer.settimeout(0.1)
        return peer, msgspec.json.decode(_line(peer), type=Request)
    except (OSError, ControlError, msgspec.MsgspecError, UnicodeDecodeError):
        peer.close()
        return None


def reply(peer: socket.socket, answer: Answer) -> None:
    with contextlib.suppress(OSError), peer:
        peer.sendall(utf8.to_json(answer) + b"\n")


def ask(path: Path, request: Request, limit_s: float = ANSWER_S, *, wake: bool = True) -> Answer:
    """Raises ControlError when no supervisor answers. `wake`: one that somebody has stopped is
    told to go on first."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(limit_s)
            peer.connect(str(path))
            if wake:
                _wake(peer)
            peer.sendall(utf8.to_json(request) + b"\n")
            return msgspec.json.decode(_line(peer), type=Answer)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ControlError(f"{path}: no supervisor answers ({error})") from None


def _wake(peer: socket.socket) -> None:
    """Whoever listens there is our supervisor by the kernel's word, and a stopped one would let
    us wait for nothing."""
    pid, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    found = read_stat(pid)
    if found is not None and found.state == "T" and uid == os.getuid():
        send_signal(*found.key, signal.SIGCONT)


def _line(peer: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < MESSAGE_BYTES:
        block = peer.recv(4096)
        if not block:
            break
        data += block
    return data
