"""What a report is made of: a timeline, findings with their evidence, and a verdict."""

from __future__ import annotations

from typing import Any

import msgspec

from bitwatch import utf8
from bitwatch.record.events import Severity


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Where something can be read again. source: a file by its path, "process 13803", or a
    record of a run. `line` counts from 1; None of what has no lines. `t`: its time, where it
    has one."""

    source: str
    line: int | None = None
    text: str = ""
    t: float | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the timeline; t None: nothing says when, it stands where it was read."""

    t: float | None
    source: str
    line: int | None = None
    text: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """id as in the list of alerts where there is one. `why` says what it means and what it does
    not, `next` what to do."""

    id: str
    severity: Severity
    title: str
    evidence: list[Evidence] = []
    why: str = ""
    next: str = ""


class Verdict(msgspec.Struct, kw_only=True):
    """Sentences: what the evidence shows, what is likely, and what it cannot tell."""

    shown: list[str] = []
    likely: list[str] = []
    unknown: list[str] = []


class Report(msgspec.Struct, kw_only=True):
    """`about` names what was looked at. `notes` say what could not be read, and why."""

    about: list[str] = []
    timeline: list[Entry] = []
    findings: list[Finding] = []
    verdict: Verdict = msgspec.field(default_factory=Verdict)
    notes: list[str] = []


def to_json(report: Report) -> bytes:
    return msgspec.json.format(utf8.to_json(report)) + b"\n"


def severest_first(findings: list[Finding]) -> list[Finding]:
    order: dict[Any, int] = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda finding: order[finding.severity])
