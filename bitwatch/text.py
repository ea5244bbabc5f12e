"""Numbers and untrusted text as a terminal shows them. Shared by every face."""

from __future__ import annotations

import time
import unicodedata

BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def literal(text: str) -> str:
    """Text from logs, files and processes as printable characters on one line: what could
    move a cursor, change a colour or reorder a line is shown as its escape."""
    if text.isprintable():  # as nearly all is: `_harmless` of every character, said by one call
        return text
    return "".join(c if _harmless(c) else repr(c)[1:-1] for c in text)


def sentence(error: Exception) -> str:
    """What an error says to a person: where, then what, without the number of the kernel's."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def literal_lines(text: str) -> str:
    """The same, where it may have several lines: newlines and tabs stay."""
    return "".join(c if c in "\n\t" else literal(c) for c in text)


def _harmless(character: str) -> bool:
    return character == " " or unicodedata.category(character)[0] not in "CZ"


def duration(seconds: float | None) -> str:
    """Two units at most: 3 d 4 h, 2 h 05 m, 2 m 10 s, 8.2 s"""
    if seconds is None:
        return "n/a"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def clock(t: float) -> str:
    """Local time of day of wall-clock seconds: 07:14:02"""
    return time.strftime("%H:%M:%S", time.localtime(t))


def short(number: float | None) -> str:
    """Three digits and a magnitude: 24.1k, 1.21G"""
    if number is None:
        return "n/a"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def size(count: float | None) -> str:
    """Bytes in binary units: 14.5 GiB"""
    if count is None:
        return "n/a"
    for unit in BYTE_UNITS:
        if abs(count) < 1024 or unit == BYTE_UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def number(value: float | None, digits: int) -> str:
    """Fixed digits; n/a for what is not known, nan and inf as they are."""
    return "n/a" if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.0f} %"


def counted(number: int, noun: str) -> str:
    """1 shard, 2 shards, 2 processes"""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{ending}"
