"""What a line of a log looks like: its text, how bad it is, and where its time stands.

A level is told by the words of a line, never by its colours: a log that was written to a file has
none, and one that has some may have any.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from bitwatch.attach.log_text import ESCAPES
from bitwatch.attach.log_times import GLOG, ISO, NAMED, SEARCHED, SLASHED
from bitwatch.attach.tracebacks import OPENING, without_prefix
from bitwatch.text import literal, size

Level = Literal["bad", "warning", "quiet", ""]
KEPT_TEXTS = 1024  # of rows: a page is drawn many times
ERASES = re.compile(r"\x1b\[[012]?K")
OFF = r"(?<![\w.=/-])"  # a word of a sentence or of a name is no level: /ERROR/, no-WARNING
END = r"(?![\w=/-])"
LEVELS: tuple[tuple[Level, re.Pattern[str]], ...] = (
    ("bad", re.compile(OFF + r"(?:ERROR|CRITICAL|FATAL)" + END)),
    ("bad", re.compile(OFF + r"(?:[Ee]rror|[Ff]atal(?: error)?)(?:\]|: (?![\d.]))")),
    ("bad", re.compile(re.escape(OPENING))),
    ("bad", re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?::|$)")),
    ("bad", re.compile(r"\s(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")),
    ("bad", re.compile(r"^\[?[EF]\d{3,4} \d\d:\d\d:\d\d")),  # glog, torch
    ("bad", re.compile(r"CUDA out of memory|Segmentation fault|exitcode: -?[1-9]|Killed$")),
    ("bad", re.compile(r"^train\.py: ")),  # why a rank of ours ends
    ("warning", re.compile(OFF + r"(?:WARNING|WARN)" + END)),
    ("warning", re.compile(r"\b[A-Z]\w*Warning: |" + OFF + r"[Ww]arning(?:\]|: )")),
    ("warning", re.compile(r"^Too many dataloader workers: ")),  # datasets, as its user sees it
    ("warning", re.compile(r"^\[?W\d{3,4} \d\d:\d\d:\d\d")),
    ("quiet", re.compile(OFF + r"(?:DEBUG|TRACE)" + END)),
    ("quiet", re.compile(r"^\[?[DV]\d{3,4} \d\d:\d\d:\d\d")),
)
# Each line with an error or a warning has one of these, in any case: to find them quickly.
MARKS = (
    *("error", "exception", "interrupt", "critical", "fatal", "traceback", "warn"),
    *("out of memory", "segmentation fault", "exitcode:", "killed", "train.py: "),
    "too many dataloader workers: ",
    *(".cpp:", ".py:"),  # of a level that is one letter
)


def level(text: str) -> Level:
    """Of a line as it is shown. The worst of what its words say."""
    text, _, _ = without_prefix(text)
    return next((name for name, pattern in LEVELS if pattern.search(text)), "")


def stamp(text: str) -> tuple[int, int]:
    """From which character up to which one the line says when it was printed; (0, 0) where it
    does not."""
    head = text[:SEARCHED]
    if ":" in head:
        for pattern in (ISO, SLASHED, GLOG, NAMED):
            if found := pattern.search(head):
                return found.start(), found.start() + len(found[0].rstrip())
    return 0, 0


@lru_cache(maxsize=KEPT_TEXTS)
def text_of(data: bytes, raw: bool = False) -> str:
    """As a terminal shows it in the end: what a carriage return goes back over is overwritten,
    colours are left out. `raw` leaves nothing out. Either has nothing that acts on a terminal."""
    text = data.decode(errors="replace")
    if not text.isascii() or not text.isprintable():
        if not raw:
            if text and not text.strip("\0"):
                return f"({size(len(text))} of zeros)"
            text = ESCAPES.sub("", _overwritten(text.rstrip("\r").replace("\0", "")))
        text = literal(text.removesuffix("\r").replace("\t", "    "))
    return text.rstrip()


def _overwritten(text: str) -> str:
    """What is left of a bar on its line."""
    shown = ""
    for part in text.split("\r"):
        erases = ERASES.search(part) is not None
        plain = ESCAPES.sub("", part)
        shown = plain if erases else plain + shown[len(plain) :]
    return shown
