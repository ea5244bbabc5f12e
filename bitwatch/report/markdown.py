"""A report as Markdown, for a ticket or a page. Text of files cannot become markup."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bitwatch.report.lines import place
from bitwatch.report.model import Evidence, Report
from bitwatch.report.words import moment
from bitwatch.text import literal

MARKUP = re.compile(r"([\\`*_{}\[\]#|<>~]|^[-+=])")
# What becomes a link, a mention or a character of its own even behind a backslash.
LIVE = re.compile(r"[&@]|(?<=:)//|(?<=www)\.|^\d+(?=[.)])")
TEXT_OF_EVIDENCE = 300


def lines(report: Report) -> Iterator[str]:
    yield f"# Report: {escaped(', '.join(report.about) or 'this machine')}"
    verdict = report.verdict
    parts = (
        ("Shown", verdict.shown),
        ("Likely", verdict.likely),
        ("Unknown", verdict.unknown),
    )
    for name, sentences in parts:
        if sentences:
            yield from ("", f"## {name}", "")
            yield from (f"- {escaped(sentence)}" for sentence in sentences)
    if report.findings:
        yield from ("", "## Findings")
    for finding in report.findings:
        yield from ("", f"### {finding.severity}: {escaped(finding.title)}", "")
        if finding.why:
            yield from (escaped(finding.why), "")
        yield from (f"- {_evidence(one)}" for one in finding.evidence)
        if finding.next:
            yield from ("", f"Next: {escaped(finding.next)}")
    if report.timeline:
        yield from ("", "## Timeline", "", "| time | what | source |", "| --- | --- | --- |")
        for entry in report.timeline:
            when = moment(entry.t) if entry.t is not None else ""
            yield f"| {when} | {_code(entry.text)} | {escaped(place(entry))} |"
    if report.notes:
        yield from ("", "## Notes", "")
        yield from (f"- {escaped(note)}" for note in report.notes)


def escaped(text: str) -> str:
    """Printed as it is: no markup, no links, no mentions."""

    def as_numbers(found: re.Match[str]) -> str:
        return "".join(f"&#{ord(character)};" for character in found[0])

    pieces = []
    for piece in LIVE.split(shown := literal(text)):
        pieces.append(MARKUP.sub(r"\\\1", piece))
    kept = [as_numbers(found) for found in LIVE.finditer(shown)]
    return "".join(a + b for a, b in zip(pieces, [*kept, ""], strict=True))


def _evidence(evidence: Evidence) -> str:
    started = ""
    if evidence.source.startswith("process ") and evidence.t is not None:
        started = f" (started {moment(evidence.t)})"
    text = _code(evidence.text[:TEXT_OF_EVIDENCE]) if evidence.text else ""
    return f"{escaped(place(evidence))}{started} {text}".rstrip()


def _code(text: str) -> str:
    """A line of a file, as it is. A bar would end a table's cell, a backtick the code."""
    shown = literal(text).replace("`", "'").replace("|", "¦").strip()
    return f"`{shown}`" if shown else ""
