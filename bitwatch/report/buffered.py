"""Steps that stand after a traceback in a log and may yet be older than it.

A Python that writes into a file keeps what it prints in a buffer, and writes its errors at once.
A training that fails, begun by `python -m`, writes its traceback first and, as it ends, what
still waits in the buffer.
"""

from __future__ import annotations

from bitwatch.attach.said import Said
from bitwatch.report.first_cause import CRASHES, is_echo

BUFFER_BYTES = (128 + 8) << 10  # of Python 3.14; before it was 8 KiB, and 8 KiB of text in both
UNBUFFERED = ("tqdm",)  # prints as errors are printed
LAUNCHERS = ("torchrun", "slurm", "deepspeed")
ENDS = ("done", "exception", "out-of-memory", "timeout", "signal", "failure")


class _Doubt:
    def __init__(self, end: Said) -> None:
        self.end = end
        self.last: Said | None = None  # step after it


class Doubts:
    """Hears what follows upon tracebacks in one log. `found`: by the line of a traceback the
    last step after it, where all of them may have waited in a buffer."""

    def __init__(self) -> None:
        self.found: dict[int, Said] = {}
        self._open: list[_Doubt] = []

    def begin(self, end: Said) -> None:
        if end.what in ("exception", "out-of-memory") and end.values.get("where"):
            self._open.append(_Doubt(end))

    def hear(self, said: Said) -> None:
        if not self._open:
            return
        if said.what == "restart" or _is_word_of_launcher(said):
            self.end()
        elif said.what == "step":
            self._step(said)
        elif said.what in ENDS and not is_echo(said):
            self._open = [one for one in self._open if not _shows_life(said, one)]

    def end(self, lines: int = 0) -> None:
        """No more follows that a training may have said. `lines`: how many the log has."""
        for doubt in self._open:
            if doubt.last is not None and _bytes(doubt, lines) <= BUFFER_BYTES:
                self.found[doubt.end.line.number] = doubt.last
        self._open = []

    def _step(self, said: Said) -> None:
        """A step that bears a time is no older than that, and is not asked about."""
        if said.line.t is not None or said.dialect in UNBUFFERED:
            self._open = []
            return
        for doubt in self._open:
            doubt.last = said
        if _bytes(self._open[0], 0) > BUFFER_BYTES:
            del self._open[0]


def _is_word_of_launcher(said: Said) -> bool:
    """About an end that may be of the traceback: none is by a crash, which prints none."""
    ends = said.what in ("failure", "signal") and said.dialect in LAUNCHERS
    return ends and said.values.get("signal") not in CRASHES


def _shows_life(said: Said, doubt: _Doubt) -> bool:
    """Whether the same process has said it after those steps."""
    ranks = said.values.get("rank"), doubt.end.values.get("rank")
    return doubt.last is not None and (None in ranks or ranks[0] == ranks[1])


def _bytes(doubt: _Doubt, lines: int) -> int:
    """Nearly: not all lines of a log are heard, so each counts as long as a step."""
    assert doubt.last is not None
    last = max(lines, doubt.last.line.number)
    return (last - doubt.end.line.number) * (len(doubt.last.line.text) + 1)
