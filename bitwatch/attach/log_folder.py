"""The logs of an attempt: those that are there, those that come, and what is added to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bitwatch.attach.log_sources import Source, in_order

ALL = "all"  # of them at once: no log has this name
BLOCK_BYTES = 1 << 20


class Change(NamedTuple):
    source: Source
    lines: int  # that have come
    is_new: bool = False  # the log was not there before
    is_another: bool = False  # its file was emptied or replaced: all of it is new


class LogFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._looks = 0
        self.sources: list[Source] = []
        for path in self._paths():
            self.sources.append(Source(path, len(self.sources)))
            self._name_apart(self.sources[-1])
        spans = [source.span for source in self.sources if source.span is not None]
        for source in self.sources:
            if spans:
                source.borrowed = min(s[0] for s in spans), max(s[1] for s in spans)

    def chosen(self, name: str) -> list[Source]:
        """The one with this name, or all."""
        return [source for source in self.sources if source.name == name] or list(self.sources)

    def look(self) -> list[Change]:
        """What has come since the last time."""
        self._looks += 1
        changes = []
        for source in self.sources:
            before = source.pager.end
            grown = source.look(self._looks)
            if grown < 0:
                changes.append(Change(source, _lines(source, 0), is_another=True))
            elif grown:
                changes.append(Change(source, _lines(source, before)))
        known = {source.pager.path for source in self.sources}
        for path in self._paths():
            if path not in known:
                source = Source(path, len(self.sources))
                source.came(self._looks)
                self._name_apart(source)
                self.sources.append(source)
                changes.append(Change(source, _lines(source, 0), is_new=True))
        if any(change.is_new for change in changes):
            self.sources.sort(key=lambda source: in_order(source.pager.path))
        return changes

    def troubles(self, sources: Sequence[Source]) -> list[str]:
        """A sentence each, that begins with the name of the file."""
        found = [source.pager.trouble for source in sources if source.pager.trouble]
        return [text.removeprefix(f"{self._folder}/") for text in found]

    def _paths(self) -> list[Path]:
        try:
            return sorted(self._folder.glob("*.log"), key=in_order)
        except OSError:
            return []

    def _name_apart(self, source: Source) -> None:
        """torchrun.log is not agent.log, which is shown as torchrun's."""
        others = {other.name for other in self.sources if other is not source}
        if source.name in {ALL, *others}:
            source.name = source.pager.path.name


def _lines(source: Source, begin: int) -> int:
    """How many have ended from there on."""
    end, number = source.pager.end, 0
    while begin < end:
        block = source.pager.read(begin, min(BLOCK_BYTES, end - begin))
        if not block:
            break
        number += block.count(b"\n")
        begin += len(block)
    return number
