"""Finds the few lines of a large log that may say something, without looking at each line."""

from __future__ import annotations

from collections.abc import Iterable

ALL_IN_BYTES = 8 << 20  # of a log up to this size every line of progress passes
PROGRESS_LINES = 40_000  # about so many of a larger one, evenly over it


class Sieve:
    """Passes lines that have one of the words, in any case, and all of the `FOLLOWING` lines
    after one that has an opening: what a traceback or a report says stands below its title.

    Of lines that have no such word but one of `progress`, which may be all lines of a log, only
    one in each stretch of it passes where it has more than `size_bytes` allow, and the last one
    of each block. Remembers between blocks how many lines are still to follow, so each file
    needs its own.
    """

    FOLLOWING = 120

    def __init__(
        self,
        words: Iterable[str],
        openings: Iterable[str],
        progress: Iterable[str] = (),
        size_bytes: int = 0,
    ) -> None:
        self._openings = [word.lower().encode() for word in openings]
        self._words = _without_longer([*(w.lower().encode() for w in words), *self._openings])
        self._progress = [
            word
            for word in _without_longer([word.lower().encode() for word in progress])
            if not any(other in word for other in self._words)
        ]
        self._stride = size_bytes // PROGRESS_LINES if size_bytes > ALL_IN_BYTES else 1
        self._following = 0

    def spans(self, block: bytes) -> list[tuple[int, int]]:
        """Where these lines begin and end in a block of whole lines, in order."""
        if b"" in self._words or b"" in self._progress:
            return _all(block)
        low = block.lower()
        ends: dict[int, int] = {}
        begin = 0
        while self._following > 0 and begin < len(low):
            begin = _take(low, begin, ends)
            self._following -= 1
        for word in self._words:
            at = low.find(word, begin)
            while at >= 0:
                at = low.find(word, _take(low, low.rfind(b"\n", 0, at) + 1, ends))
        for word in self._openings:
            at = low.find(word)
            while at >= 0:
                at = low.find(b"\n", at) + 1 or len(low)
                self._following = self.FOLLOWING
                while self._following > 0 and at < len(low):
                    at = _take(low, at, ends)
                    self._following -= 1
                at = low.find(word, at)
        self._take_progress(low, begin, ends)
        return sorted(ends.items())

    def _take_progress(self, low: bytes, begin: int, ends: dict[int, int]) -> None:
        """The words are in the order of what they are worth: a stretch that has a line of one
        needs none of the next."""
        stride, taken = self._stride, set()
        for word in self._progress:
            at = low.find(word, begin)
            while at >= 0:
                stretch = at // stride
                if stride > 1 and stretch in taken:
                    at = low.find(word, (stretch + 1) * stride)
                    continue
                taken.add(stretch)
                at = low.find(word, _take(low, low.rfind(b"\n", 0, at) + 1, ends))
            last = low.rfind(word, begin)
            if last >= 0:
                _take(low, low.rfind(b"\n", 0, last) + 1, ends)


def _take(low: bytes, start: int, ends: dict[int, int]) -> int:
    """Notes the line that begins there; where the next one begins."""
    end = ends.get(start)
    if end is None:
        end = low.find(b"\n", start)
        end = ends[start] = len(low) if end < 0 else end
    return end + 1


def _without_longer(words: list[bytes]) -> list[bytes]:
    """A word that has another in it finds nothing that the other does not."""
    return [
        word
        for word in dict.fromkeys(words)
        if not any(other in word for other in words if other != word)
    ]


def _all(block: bytes) -> list[tuple[int, int]]:
    found = []
    at = 0
    while at < len(block):
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        found.append((at, end))
        at = end + 1
    return found
