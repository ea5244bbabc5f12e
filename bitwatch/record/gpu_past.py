"""The ten minutes of samples before those that a follower reads, read backwards for the GPUs.

A line of many processes is a hundred times as long as one of the GPUs, and says nothing of
them: it is passed over without being decoded, unless there are no GPUs and the ranks' own
processor time takes their place.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from bitwatch import small
from bitwatch.record import codec, events
from bitwatch.record.gpu_history import RECENT_S
from bitwatch.record.state import SAMPLES, RunState, fold

PIECE_BYTES = 256 << 10  # a fraction of a millisecond's reading
MOST_BYTES = 256 << 20  # of samples in which no GPU is found
GPUS, PROCESSES = b'{"kind":"gpus"', b'{"kind":"processes"'  # records begin with their kind


class _Process(msgspec.Struct):
    role: str
    rank: int | None = None
    cpu_percent: float | None = None
    rss_mib: float | None = None


class _Processes(events.Record, tag="processes"):
    """Of a sample of processes, what a history of the ranks needs."""

    processes: list[_Process] = []


_processes = msgspec.json.Decoder(_Processes)


class GpuPast:
    """Reads from `gap` of the newest file towards its beginning, then the files before it. A
    file without a gap has been read whole."""

    def __init__(self, newest: Path, gap: tuple[int, int] | None, state: RunState) -> None:
        self._files = [(newest, *gap)] if gap else []
        try:
            names = sorted(os.listdir(newest.parent))
        except OSError:
            names = []
        self._earlier = [newest.parent / name for name in names if name < newest.name]
        self._state = state
        self._rest = b""  # the end of a line whose beginning is further back
        self._left_bytes = MOST_BYTES
        self._overlap = gap is not None
        self.done = False

    def piece(self) -> None:
        """Folds in the next piece back; first what the journal has told and nobody drew."""
        if self._state.gpu_history.backlog:
            self._state.gpu_history.absorb()
            return
        if not self._files and not self._open_earlier():
            self.done = True
            return
        path, begin, end = self._files[-1]
        start = max(begin, end - PIECE_BYTES)
        block = _read(path, start, end)
        if self._overlap:  # the line that was cut in two ends after the gap does
            self._overlap = False
            block += _rest_of_line(path, end)
        self._left_bytes -= max(1, len(block))
        if start == begin or not block:
            self._files.pop()
            lines, self._rest = (block + self._rest).split(b"\n"), b""
        else:
            self._files[-1] = (path, begin, start)
            first, *lines = (block + self._rest).split(b"\n")
            self._rest = first if lines else block + self._rest
        oldest = self._fold(lines)
        self.done = self._left_bytes <= 0 or (
            oldest is not None and oldest < self._newest() - RECENT_S
        )

    def _open_earlier(self) -> bool:
        if not self._earlier:
            return False
        path = self._earlier.pop()
        try:
            self._files.append((path, 0, path.stat().st_size))
        except OSError:
            return self._open_earlier()
        return True

    def _fold(self, lines: list[bytes]) -> float | None:
        """The time of the oldest sample among them."""
        oldest = None
        instead = self._state.samples.gpus is None or self._state.samples.gpus.source != "nvml"
        for line in reversed(lines):
            if line.startswith(GPUS):
                record = codec.decode(line)
                if record is not None:
                    fold(self._state, SAMPLES, [record])
                    oldest = record.t
            elif instead and line.startswith(PROCESSES):
                try:
                    sample = _processes.decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    continue
                self._state.gpu_history.take_processes(sample.t, sample.processes)
                oldest = sample.t
        return oldest

    def _newest(self) -> float:
        samples = self._state.samples
        known = [one.t for one in (samples.gpus, samples.processes) if one is not None]
        return max(known, default=0.0)


def _read(path: Path, start: int, end: int) -> bytes:
    try:
        with small.opened(path) as file:
            file.seek(start)
            return file.read(end - start)
    except OSError:
        return b""


def _rest_of_line(path: Path, start: int) -> bytes:
    rest = b""
    while True:
        block = _read(path, start + len(rest), start + len(rest) + PIECE_BYTES)
        end = block.find(b"\n")
        rest += block if end < 0 else block[:end]
        if end >= 0 or not block:
            return rest
