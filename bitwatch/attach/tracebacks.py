"""What takes several lines to be said: Python's tracebacks and torchrun's report of failures.

The lines of several ranks may be mixed: who printed a line is told by its prefix, and each has
a traceback of its own.
"""

from __future__ import annotations

import re
import signal

from bitwatch.attach.said import Line, Said, Value

OPENING = "Traceback (most recent call last)"
REPORT_OPENINGS = ("Root Cause (first observed failure):", "Failures:")
LONGEST_LINES = 400  # of a traceback; after so many it has lost its end
MOST_OPEN = 256

PREFIX = re.compile(
    r"\s?(?:\[(?:rank|default|trainer|[a-z]{1,16})(\d{1,6})\]:|default(\d{1,6})\]:|\[\d+,(\d{1,6})\]<\w+>:) ?"
)
FRAME = re.compile(r'\s*File "([^"]+)", line (\d+)')
LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<frozen ")
LAST = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:: ?(.*))?$")
SURELY = re.compile(r"(?:Error|Exception|Interrupt|Exit|Warning|Iteration)$")
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
ASIDE = ("Exception ignored", "Exception in thread ", "Error in atexit._run_exitfuncs")
FIELD = re.compile(r"\s*(time|host|rank|exitcode|error_file|traceback)\s*: (.*)")
ENTRY = re.compile(r"\[\d+\]:$")


def without_prefix(text: str) -> tuple[str, str, int | None]:
    """The text without who printed it, the prefix, and the rank that it names."""
    begin, rank = 0, None
    while found := PREFIX.match(text, begin):
        begin, rank = found.end(), int(next(digits for digits in found.groups() if digits))
    return text[begin:], text[:begin].strip(), rank


class Tracebacks:
    """Of all who print into one log."""

    def __init__(self) -> None:
        self._open: dict[str, _Traceback] = {}
        self._before: dict[str, str] = {}  # the type of the exception that another one follows
        self._newest: dict[str, str] = {}
        self._aside: set[str] = set()  # whose next traceback ends no program

    def __bool__(self) -> bool:
        return bool(self._open)

    def hear(self, who: str, text: str, line: Line) -> Said | bool:
        """An exception when its last line comes; true for a line that is a part of a traceback,
        false for one that says something else."""
        if OPENING in text:
            if len(self._open) >= MOST_OPEN:
                self._open.clear()
            self._open[who] = _Traceback(aside=who in self._aside)
            self._aside.discard(who)
            return True
        if text.startswith(ASIDE):
            if len(self._aside) >= MOST_OPEN:
                self._aside.clear()
            self._aside.add(who)
            return False
        self._aside.discard(who)
        if text.startswith(CHAINED):
            self._before[who] = self._newest.pop(who, "")
            return True
        open_ = self._open.get(who)
        if open_ is None:
            return False
        open_.lines += 1
        if open_.lines > LONGEST_LINES:
            del self._open[who]
            return False
        if not text.strip():
            open_.within = False
            return True
        if text[0] in " \t|":
            if frame := FRAME.match(text):
                open_.where = f"{frame[1]}:{frame[2]}"
                if not LIBRARY.search(frame[1]):
                    open_.called_from = open_.where
            open_.within = True
            return True
        last = LAST.match(text)
        if last and (SURELY.search(last[1]) or (open_.within and _is_a_class(last[1]))):
            del self._open[who]
            return Said("exception", line, "python", self._values(who, last, open_))
        return False

    def _values(self, who: str, last: re.Match[str], traceback: _Traceback) -> dict[str, Value]:
        values: dict[str, Value] = {"type": last[1], "message": (last[2] or "").strip()}
        if traceback.where:
            values["where"] = traceback.where
        if traceback.called_from and traceback.called_from != traceback.where:
            values["called_from"] = traceback.called_from
        if traceback.aside:
            values["aside"] = 1
        if before := self._before.pop(who, ""):
            values["after"] = before
        if len(self._newest) >= MOST_OPEN:
            self._newest.clear()
        self._newest[who] = last[1]
        return values


class _Traceback:
    __slots__ = ("aside", "called_from", "lines", "where", "within")

    def __init__(self, aside: bool = False) -> None:
        self.aside = aside
        self.lines = 0
        self.where = ""
        self.called_from = ""
        self.within = False  # the line before was indented: what is not indented is the last one


def _is_a_class(name: str) -> bool:
    return "." in name or name[:1].isupper()


class FailureReport:
    """torchrun's account of which rank failed first, and which others did."""

    def __init__(self) -> None:
        self.open = False
        self._first = False
        self._values: dict[str, Value] = {}
        self._line: Line | None = None

    def hear(self, text: str, line: Line) -> list[Said]:
        """Entries that are complete when this line is there."""
        heading = text.strip()
        if heading in REPORT_OPENINGS:
            found = self.end()
            self.open, self._first = True, heading == REPORT_OPENINGS[0]
            return found
        if not self.open:
            return []
        if field := FIELD.match(text):
            self._take(field[1], field[2].strip(), line)
            return self._entry() if field[1] == "traceback" else []
        if ENTRY.match(heading):
            return self._entry()
        if heading.startswith(("====", "----")):
            return self.end()
        return []

    def end(self) -> list[Said]:
        found = self._entry()
        self.open = False
        return found

    def _entry(self) -> list[Said]:
        values, line = self._values, self._line
        self._values, self._line = {}, None
        if line is None:
            return []
        values["first"] = int(self._first)
        return [Said("failure", line, "torchrun", values)]

    def _take(self, name: str, text: str, line: Line) -> None:
        if name == "rank" and (found := re.match(r"(\d+)(?: \(local_rank: (\d+)\))?", text)):
            self._values["rank"] = int(found[1])
            if found[2]:
                self._values["local_rank"] = int(found[2])
        elif name == "exitcode" and (found := re.match(r"(-?\d+)\s*\(pid: (\d+)\)", text)):
            self._line = line
            self._values |= {"exit_code": int(found[1]), "pid": int(found[2])}
            if int(found[1]) < 0:
                self._values["signal"] = _name_of_signal(-int(found[1]))
        elif name == "traceback":
            self._values["message"] = text
        elif name in ("time", "host"):
            self._values[name] = text


def _name_of_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
