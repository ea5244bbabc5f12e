"""From the bytes of a log to clean lines, whatever stands in it.

A progress bar overwrites itself with carriage returns, so that hours of it may be one line of
the file. What it says last stands for it, and once for each stretch of a long one.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from bitwatch.attach.log_times import Times
from bitwatch.attach.said import Line
from bitwatch.attach.sieve import Sieve
from bitwatch.text import literal

LONGEST = 4096  # characters of a line; what follows is cut off
STRETCH_BYTES = 16 << 10  # of a bar that is one line; as much is held of a line without an end
RAW_LONGEST_BYTES = 1 << 20  # a longer line is shown in pieces where nothing may be left out
SAMPLE_BYTES = 8 << 10  # what is looked at to tell a log from a binary file
MOST_CONTROLS = 0.1  # of a text
MOST_ZEROED = 4  # stretches of zeros in the beginning of a text

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)"  # titles, links
    r"|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
TEXT_CONTROLS = b"\t\n\r\x1b\x08\x0c\x07"
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


def clean(text: str) -> str:
    """One line, fit to be shown: no colours, no control characters, at most 4,096 long."""
    if len(text) > STRETCH_BYTES:
        text = text[:STRETCH_BYTES]
    if not text.isascii() or not text.isprintable():
        plain = ESCAPES.sub("", text).replace("\t", "    ").rstrip("\r\n")
        text = literal(plain[:LONGEST])
    return text[:LONGEST].rstrip()


def encoding_of(beginning: bytes) -> str:
    """By the mark at a file's beginning; UTF-8 without one."""
    for mark, name in BYTE_ORDER_MARKS.items():
        if beginning.startswith(mark):
            return name
    return "utf-8"


def looks_binary(beginning: bytes) -> bool:
    """Whether a file that begins so is no text. Zeros before the text are not held against it:
    a log that was truncated under its writer begins with them. Nor are a few stretches of zeros
    in it, which a loss of power leaves."""
    if encoding_of(beginning).startswith("utf-16"):
        return False
    sample = beginning[:SAMPLE_BYTES].lstrip(b"\0")
    if b"\0" in sample:
        if len(re.findall(rb"\0+", sample)) > MOST_ZEROED:
            return True
        sample = sample.replace(b"\0", b"")
        try:
            codecs.getincrementaldecoder("utf-8")().decode(sample)  # its end may be cut
        except UnicodeDecodeError:
            return True
    controls = sum(byte < 32 and byte not in TEXT_CONTROLS for byte in sample)
    return controls > MOST_CONTROLS * len(sample)


class Decoder:
    """Gives blocks of a file in UTF-8, which everything here works on."""

    def __init__(self, encoding: str) -> None:
        self._decoder = None
        if encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")

    def feed(self, block: bytes) -> bytes:
        if self._decoder is None:
            return block
        return self._decoder.decode(block).lstrip("\ufeff").encode(errors="replace")


class Splitter:
    """Takes blocks of bytes, gives the lines in them. Holds a few kB of an unfinished line.

    `number` is that of the first line, 0 when it is not known. `raw` leaves nothing out and
    changes nothing but what could harm a terminal, which is shown as its escape.
    """

    def __init__(
        self, source: str = "", number: int = 1, near: float | None = None, raw: bool = False
    ) -> None:
        self.times = Times(near)
        self._source = source
        self._number = number
        self._raw = raw
        self._rest = b""
        self._over = False  # the rest of a line that is too long is being left out
        self._told = False  # something of the unfinished line was given already

    def feed(self, block: bytes, sieve: Sieve | None = None) -> list[Line]:
        """The lines that end in this block, of an unfinished bar the newest piece. With a
        sieve only the lines that pass it."""
        if self._over:
            block = self._behind_what_is_too_long(block)
        if b"\0" in block and not self._raw:
            block = block.replace(b"\0", b"")
        data = self._rest + block if self._rest else block
        end = data.rfind(b"\n") + 1
        found: list[Line] = []
        if end:
            found = self._sifted(data[:end], sieve) if sieve else self._all(data[:end])
            self._told = False
        self._rest = data[end:]
        if self._raw:
            while len(self._rest) > RAW_LONGEST_BYTES:
                found.append(self._line(self._rest[:RAW_LONGEST_BYTES]))
                self._rest = self._rest[RAW_LONGEST_BYTES:]
        else:
            found += self._pieces_of_unfinished(sieve)
            if len(self._rest) > STRETCH_BYTES:
                self._rest, self._over = self._rest[:STRETCH_BYTES], True
        return found

    def end(self) -> list[Line]:
        """A last line without an end, if there is one."""
        rest, self._rest, self._over = self._rest, b"", False
        if not rest or (self._told and not rest.strip()):
            return []
        return [self._line(rest)]

    def _all(self, whole: bytes) -> list[Line]:
        found: list[Line] = []
        first = True
        for physical in whole[:-1].split(b"\n"):
            if self._raw:
                found.append(self._line(physical))
            else:
                found += self._of(physical, self._told and first)
            first = False
            self._number += self._number > 0
        return found

    def _sifted(self, whole: bytes, sieve: Sieve) -> list[Line]:
        found: list[Line] = []
        at = 0
        for begin, end in sieve.spans(whole):
            if self._number:
                self._number += whole.count(b"\n", at, begin)
                at = begin
            found += self._of(whole[begin:end], self._told and begin == 0)
        if self._number:
            self._number += whole.count(b"\n", at)
        return found

    def _of(self, physical: bytes, told: bool) -> list[Line]:
        """What one line of the file says: more than one thing only if it is a long bar."""
        physical = physical.rstrip(b"\r")
        if b"\r" not in physical:
            return [] if told and not physical.strip() else [self._line(physical)]
        pieces = list(_last_of_each_stretch(physical))
        if not pieces:
            return [] if told else [self._line(b"")]
        return [self._line(piece) for piece in pieces]

    def _pieces_of_unfinished(self, sieve: Sieve | None) -> list[Line]:
        rest = self._rest
        # A carriage return at the very end may be the first half of a line's end.
        cut = rest.rfind(b"\r", 0, len(rest.rstrip(b"\r"))) + 1
        if not cut:
            return []
        self._rest = rest[cut:]
        pieces = list(_last_of_each_stretch(rest[:cut]))
        self._told = self._told or bool(pieces)
        return [self._line(p) for p in pieces if sieve is None or sieve.spans(p + b"\n")]

    def _behind_what_is_too_long(self, block: bytes) -> bytes:
        """What follows the end of the line, or of the piece of a bar, that is being left out."""
        ends = [at for at in (block.find(b"\n"), block.find(b"\r")) if at >= 0]
        if not ends:
            return b""
        self._over = False
        return block[min(ends) :]

    def _line(self, line: bytes) -> Line:
        if self._raw:
            text = line.decode(errors="replace").rstrip("\r").replace("\t", "    ")
            if not text.isascii() or not text.isprintable():
                text = literal(text)
            return Line(text, self._number, None, self._source)
        text = clean(line[: STRETCH_BYTES + 4].decode(errors="replace"))
        return Line(text, self._number, self.times.read(text), self._source)


def _last_of_each_stretch(bar: bytes) -> Iterator[bytes]:
    """The last piece that is not blank, of each stretch of a bar that ends with a piece."""
    at = 0
    while at < len(bar):
        end = len(bar)
        if end - at > STRETCH_BYTES:
            cut = bar.rfind(b"\r", at + 1, at + STRETCH_BYTES)
            if cut < 0:
                cut = bar.find(b"\r", at + 1)
            end = cut if cut > 0 else end
        upper = end
        while upper > at:
            begin = bar.rfind(b"\r", at, upper) + 1 or at
            piece = bar[begin:upper]
            if piece.strip():
                yield piece
                break
            upper = begin - 1
        at = end
