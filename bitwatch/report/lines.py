"""A report as lines for a terminal or a log: calm, wrapped, every claim with its source.

Text of files is untrusted and shown literally. Colours are the terminal's own, and none where
nobody asked for them.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterator

from bitwatch.report.model import Entry, Evidence, Finding, Report
from bitwatch.report.words import moment
from bitwatch.text import literal

NARROWEST = 40
READABLE = 100  # columns of a paragraph: longer lines are hard to read
TEXT_OF_EVIDENCE = 200  # characters
EVIDENCE_LINES = 8
SEVERITIES = {"error": "31", "warning": "33", "info": "36"}  # of the terminal's sixteen colours
BOLD, QUIET = "1", "2"


class Face:
    """`width` None is a log: nothing is wrapped. `colours` are only for a terminal."""

    def __init__(self, width: int | None = None, colours: bool = False) -> None:
        self._width = None if width is None else max(NARROWEST, min(width, READABLE))
        self._colours = colours

    def lines(self, report: Report) -> Iterator[str]:
        about = ", ".join(report.about) or "this machine"
        yield from self._wrapped("report    ", about)
        yield ""
        yield from self._verdict(report)
        if report.findings:
            yield self._in(BOLD, "findings")
        for finding in report.findings:
            yield from self._finding(finding)
            yield ""
        if report.timeline:
            yield self._in(BOLD, "timeline")
            yield from self._timeline(report.timeline)
            yield ""
        if report.notes:
            yield self._in(BOLD, "notes")
            for note in report.notes:
                yield from self._wrapped("  - ", note)

    def _verdict(self, report: Report) -> Iterator[str]:
        verdict = report.verdict
        for name, what in (
            ("shown", verdict.shown),
            ("likely", verdict.likely),
            ("unknown", verdict.unknown),
        ):
            if not what:
                continue
            yield self._in(BOLD, name)
            for sentence in what:
                yield from self._wrapped("  - ", sentence)
            yield ""

    def _finding(self, finding: Finding) -> Iterator[str]:
        lead = f"{finding.severity:<7}  "
        first, *rest = self._wrapped(lead, finding.title)
        yield self._in(SEVERITIES[finding.severity], first[: len(lead)]) + first[len(lead) :]
        yield from rest
        if finding.why:
            yield from self._wrapped("  why      ", finding.why)
        for one in finding.evidence[:EVIDENCE_LINES]:
            yield from self._evidence(one)
        if len(finding.evidence) > EVIDENCE_LINES:
            yield f"  evidence {len(finding.evidence) - EVIDENCE_LINES} more"
        if finding.next:
            yield from self._wrapped("  next     ", finding.next)

    def _evidence(self, evidence: Evidence) -> Iterator[str]:
        text = evidence.text[:TEXT_OF_EVIDENCE]
        started = (
            f" (started {moment(evidence.t)})"
            if evidence.source.startswith("process ") and evidence.t is not None
            else ""
        )
        for line in self._wrapped("  evidence ", f"{place(evidence)}{started}  {text}"):
            yield self._in(QUIET, line)

    def _timeline(self, timeline: list[Entry]) -> Iterator[str]:
        day = ""
        for entry in timeline:
            when = moment(entry.t) if entry.t is not None else ""
            date, _, clock = when.partition(" ")
            if when and date != day:
                day = date
                yield f"  {date}"
            clock = clock if when else ""
            yield from self._wrapped(f"  {clock:<8}  ", f"{entry.text}  [{place(entry)}]")

    def _wrapped(self, lead: str, text: str) -> list[str]:
        shown = literal(text).strip()
        if self._width is None:
            return [lead + shown]
        return textwrap.wrap(
            shown, self._width, initial_indent=lead, subsequent_indent=" " * len(lead)
        ) or [lead.rstrip()]

    def _in(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colours else text


def place(one: Evidence | Entry) -> str:
    """massive.log:4; process 13803"""
    return f"{one.source}:{one.line}" if one.line else one.source


def wants_colours() -> bool:
    """On a terminal that can, unless NO_COLOR is set to anything."""
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and not re.fullmatch(r"dumb|", os.environ.get("TERM", ""))
    )
