"""Processes that do pieces of work for their parent, tell how far they are, and die with it.

They are spawned: a fork would copy whatever threads the libraries have started. Each begins
with nothing imported but this, so a piece of work pays only for what it uses. The parent is
never stuck in work: it looks around several times a second, whatever its children wait for.
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

from trainer import lifeline
from trainer.failures import Failed, sentence

LOOK_S = 0.1  # longest between two looks of the parent

Work = Callable[[Any], Iterator[Any]]


class Told(NamedTuple):
    """What a piece of work says while it runs, and at its end `done`."""

    task: int  # its place in the list of tasks
    value: Any = None
    done: bool = False


class Pool:
    """Up to `most` processes, started when there is work for them and killed at the end of
    the `with`. `look` is called at least every LOOK_S while work is done; it may raise."""

    def __init__(self, most: int, look: Callable[[], None]) -> None:
        self.most = most
        self.look = look
        self._children: list[tuple[Any, connection.Connection]] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for child, _pipe in self._children:
            child.kill()
        for child, pipe in self._children:
            child.join()
            pipe.close()
        self._children = []

    def run(self, work: Work, tasks: Sequence[Any]) -> Iterator[Told]:
        """Does all tasks and gives what they tell, of several tasks at once.

        `work` is a module's function; what it yields is told. Raises Failed for what went
        wrong in a process, or the OSError that it met. After that the pool is of no use.
        """
        while len(self._children) < min(self.most, len(tasks)):
            self._start()
        idle = [pipe for _, pipe in self._children]
        at_work: dict[connection.Connection, int] = {}
        begun = 0
        while at_work or begun < len(tasks):
            while idle and begun < len(tasks):
                pipe = idle.pop()
                at_work[pipe] = begun
                pipe.send((work, tasks[begun]))
                begun += 1
            self.look()
            ready = connection.wait(list(at_work), LOOK_S)
            for pipe in [pipe for pipe in at_work if pipe in ready]:
                what, value = self._heard(pipe)
                if what == "failed":
                    raise value
                task = at_work[pipe]
                if what == "done":
                    del at_work[pipe]
                    idle.append(pipe)
                yield Told(task, value, done=what == "done")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        child = context.Process(target=_serve, args=(theirs, os.getpid()), daemon=True)
        child.start()
        theirs.close()
        self._children.append((child, ours))

    def _heard(self, pipe: connection.Connection) -> tuple[str, Any]:
        try:
            return pipe.recv()
        except (EOFError, OSError):
            self.look()  # a stop that ended the child too is a stop
            child = next(child for child, ours in self._children if ours is pipe)
            child.join()
            raise Failed(_cause_of_death(child.exitcode)) from None


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def _serve(pipe: connection.Connection, parent: int) -> None:
    """The life of a child."""
    lifeline.die_with(str(parent))
    os.setpgid(0, 0)  # a signal to the parent's group is for the parent: it ends its children
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            work, task = pipe.recv()
            try:
                for value in work(task):
                    pipe.send(("told", value))
            except Exception as error:
                pipe.send(("failed", _plain(error)))
            else:
                pipe.send(("done", None))


def _plain(error: Exception) -> Exception:
    """The error as something that any process can unpickle."""
    if isinstance(error, OSError) and error.errno in errno.errorcode:
        return OSError(error.errno, error.strerror, error.filename)
    if not isinstance(error, Failed):
        traceback.print_exc()
    return Failed(sentence(error))


def _cause_of_death(status: int | None) -> str:
    if status is not None and status < 0:
        hint = "; memory may have run out" if status == -9 else ""
        return f"a process that was reading the text was ended by signal {-status}{hint}"
    return f"a process that was reading the text ended by itself with status {status}"
