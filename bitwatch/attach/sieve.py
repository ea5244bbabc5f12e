"""Finds the few lines of a large log that may say something, without looking at each line."""

from __future__ import annotations

from collections.abc import Iterable


class Sieve:
    """Passes lines that have one of the words, in any case, and all of the `FOLLOWING` lines
    after one that has an opening: what a traceback or a report says stands below its title.
    Remembers between blocks how many are still to come, so each file needs its own."""

    FOLLOWING = 120

    def __init__(self, words: Iterable[str], openings: Iterable[str]) -> None:
        self._openings = [word.lower().encode() for word in openings]
        self._words = _without_longer([*(w.lower().encode() for w in words), *self._openings])
        self._following = 0

    def spans(self, block: bytes) -> list[tuple[int, int]]:
        """Where these lines begin and end in a block of whole lines, in order."""
        if b"" in self._words:
            return _all(block)
        low = block.lower()
        ends: dict[int, int] = {}
        begin = 0
        while self._following > 0 and begin < len(low):
            begin = self._take(low, begin, ends)
            self._following -= 1
        for word in self._words:
            at = low.find(word, begin)
            while at >= 0:
                start = low.rfind(b"\n", 0, at) + 1
                at = low.find(word, self._take(low, start, ends))
        for word in self._openings:
            at = low.find(word)
            while at >= 0:
                at = low.find(b"\n", at) + 1 or len(low)
                self._following = self.FOLLOWING
                while self._following > 0 and at < len(low):
                    at = self._take(low, at, ends)
                    self._following -= 1
                at = low.find(word, at)
        return sorted(ends.items())

    @staticmethod
    def _take(low: bytes, start: int, ends: dict[int, int]) -> int:
        """Notes the line that begins there; where the next one begins."""
        end = ends.get(start)
        if end is None:
            end = low.find(b"\n", start)
            end = ends[start] = len(low) if end < 0 else end
        return end + 1


def _without_longer(words: list[bytes]) -> list[bytes]:
    """A word that has another in it finds nothing that the other does not."""
    kept: list[bytes] = []
    for word in sorted(set(words), key=len):
        if not any(other in word for other in kept):
            kept.append(word)
    return kept


def _all(block: bytes) -> list[tuple[int, int]]:
    found = []
    at = 0
    while at < len(block):
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        found.append((at, end))
        at = end + 1
    return found
