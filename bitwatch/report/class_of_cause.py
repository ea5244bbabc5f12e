"""Of which class the cause is: configuration, architecture, hardware, data, code, or from
outside; with what points at it, or that it cannot be told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bitwatch.attach.said import Said
from bitwatch.report.about_end import first_cause
from bitwatch.report.facts import Story, of_line
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.words import listed, sentence

KEPT = 6

HARDWARE = re.compile(
    r"uncorrectable|\bECC\b|\bXid\b|fallen off the bus|NVLink error|hardware error|"
    r"unspecified launch failure|GPU is lost|no CUDA-capable device",
    re.IGNORECASE,
)
ARCHITECTURE = re.compile(
    r"size mismatch|shapes cannot be multiplied|must match the size|"
    r"(?:Missing|Unexpected) key\(s\) in state_dict|must be divisible",
    re.IGNORECASE,
)
DATA = re.compile(
    r"FileNotFoundError|DatasetNotFound|DataFilesNotFound|HfHubHTTPError|ConnectionError|"
    r"ArrowInvalid|UnicodeDecodeError|JSONDecodeError|EmptyDataset",
)


class Pointer(NamedTuple):
    """Something that points at a class. `of_end`: it explains how the training ended."""

    kind: str
    words: str
    evidence: list[Evidence]
    of_end: bool = False


def find(stories: Sequence[Story], findings: Sequence[Finding]) -> Iterator[Finding]:
    if not any(story.attempts for story in stories):
        return
    pointers = [*_of_causes(stories), *_of_findings(findings)]
    kinds = list(dict.fromkeys(pointer.kind for pointer in pointers))
    away = _not_pointed_at(kinds, findings)
    if not pointers:
        yield Finding(
            id="class-of-cause",
            severity="info",
            title="Class of the cause: it cannot be told",
            why=f"Nothing in the evidence points at one. {away}".strip(),
            next="More evidence helps: logs of all ranks, `ps` with start times, `dmesg`.",
        )
        return
    why = [
        sentence(f"{kind}: {'; '.join([one.words for one in pointers if one.kind == kind][:KEPT])}")
        for kind in kinds
    ]
    why.append(away)
    if not any(pointer.of_end for pointer in pointers):
        why.append("What ended the training, or whether it has ended, none of it explains.")
    yield Finding(
        id="class-of-cause",
        severity="info",
        title=f"Class of what is wrong: {listed(kinds)}",
        evidence=[one for pointer in pointers for one in pointer.evidence][:KEPT],
        why=" ".join(part for part in why if part),
        next="",
    )


def _of_causes(stories: Sequence[Story]) -> Iterator[Pointer]:
    """What the first error of each attempt points at."""
    seen: set[str] = set()
    for story in stories:
        for attempt in story.attempts:
            cause = first_cause(attempt)
            if cause is None:
                continue
            kind, words = _class_of(cause)
            if kind and words not in seen:
                seen.add(words)
                yield Pointer(kind, words, [of_line(cause.line)], of_end=True)


def _class_of(cause: Said) -> tuple[str, str]:
    text = cause.line.text
    if HARDWARE.search(text):
        return "hardware", "the error is one that a device or its driver raises"
    if cause.what == "out-of-memory":
        return "configuration", "more memory was wanted than this hardware has free"
    if ARCHITECTURE.search(text):
        return "architecture", "shapes of the model do not fit each other or a checkpoint"
    if DATA.search(text):
        return "data", "the text could not be found or read"
    if cause.what == "exception":
        return "code", "an exception that may as well come of a wrong setting"
    if "KILL" in str(cause.values.get("signal")) or cause.values.get("exit_code") == -9:
        return "from outside", "SIGKILL, by the kernel for lack of memory or by somebody"
    return "", ""


def _of_findings(findings: Sequence[Finding]) -> Iterator[Pointer]:
    says = {
        "target-lowered": ("configuration", "the target is a setting, and it was changed"),
        "target-raised": ("configuration", "the target is a setting, and it was changed"),
        "workers-exceed-shards": (
            "configuration",
            "the number of workers is a setting, and there are fewer shards than workers",
        ),
        "parameters-differ": ("architecture", "the model is not the one that was asked for"),
        "loss-not-finite": ("numerics", "the loss became no number"),
    }
    for finding in findings:
        if finding.id in says:
            kind, words = says.pop(finding.id)
            yield Pointer(kind, words, finding.evidence[-1:])


def _not_pointed_at(kinds: Sequence[str], findings: Sequence[Finding]) -> str:
    """Why not the others, as far as the evidence speaks against them."""
    parts = []
    ids = {finding.id for finding in findings}
    if "architecture" not in kinds:
        whole = " (the count is exactly the target's share)" if "count-is-shard" in ids else ""
        parts.append(f"the architecture{whole}")
    if "hardware" not in kinds:
        parts.append("the hardware (no device error, no lack of memory, no signal)"
                     if not ids & {"out-of-memory", "rank-died"} else "the hardware")  # fmt: skip
    return f"Nothing points at {' or at '.join(parts)}." if parts else ""
