"""Of which class the cause is: configuration, architecture, hardware, data, code, or from
outside; with what points at it, or that it cannot be told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bitwatch.attach.said import Said
from bitwatch.report.about_end import is_silent, last_errors
from bitwatch.report.causes import DISK_FULL, NO_MEMORY
from bitwatch.report.facts import Attempt, Story, of_line
from bitwatch.report.first_cause import finished, first_cause, is_echo, is_stop
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
    pointers = [*_of_causes(stories, findings), *_of_findings(findings)]
    kinds = list(dict.fromkeys(pointer.kind for pointer in pointers))
    away = _not_pointed_at(kinds, stories, findings)
    told = [story for story in stories if story.attempts]
    if not pointers and all(finished(story, story.attempts[-1]) for story in told):
        return  # nothing is wrong
    if not pointers:
        yield Finding(
            id="class-of-cause",
            severity="info",
            title="Class of the cause: it cannot be told",
            why=away,
            next="More evidence helps: logs of all ranks, `ps` with start times, `dmesg`.",
        )
        return
    why = [
        sentence(f"{kind}: {'; '.join([one.words for one in pointers if one.kind == kind][:KEPT])}")
        for kind in kinds
    ]
    why.append(away)
    silent = any(one.attempts and is_silent(one, one.attempts[-1]) for one in stories)
    if silent and not any(pointer.of_end for pointer in pointers):
        why.append("What ended the training, or whether it has ended, none of it explains.")
    yield Finding(
        id="class-of-cause",
        severity="info",
        title=f"Class of what is wrong: {listed(kinds)}",
        evidence=[one for pointer in pointers for one in pointer.evidence][:KEPT],
        why=" ".join(part for part in why if part),
        next="",
    )


def _of_causes(stories: Sequence[Story], findings: Sequence[Finding]) -> Iterator[Pointer]:
    """What the first error of each attempt points at."""
    no_cause = {"before-training", "handled"}
    seen = {one for finding in findings if finding.id in no_cause for one in finding.evidence}
    told: set[str] = set()
    for story in stories:
        for attempt in story.attempts:
            for cause in _ends_of(story, attempt):
                kind, words = _class_of(cause)
                if kind and words not in told and of_line(cause.line) not in seen:
                    told.add(words)
                    yield Pointer(kind, words, [of_line(cause.line)], of_end=True)


def _ends_of(story: Story, attempt: Attempt) -> list[Said]:
    """Its first cause; of a silent end the last error, where that is a full disk or a device."""
    cause = first_cause(story, attempt)
    if cause is not None:
        return [cause]
    if not is_silent(story, attempt):
        return []
    return [said for said in last_errors(attempt) if _is_of_device(said.line.text)]


def _is_of_device(text: str) -> bool:
    return HARDWARE.search(text) is not None or DISK_FULL.search(text) is not None


def _class_of(cause: Said) -> tuple[str, str]:
    text, signal = cause.line.text, str(cause.values.get("signal"))
    if HARDWARE.search(text):
        return "hardware", "the error is one that a device or its driver raises"
    if DISK_FULL.search(text):
        return "hardware", "a disk is full"
    if cause.what == "out-of-memory":
        return "configuration", "more memory was wanted than this hardware has free"
    if is_stop(cause):
        return "from outside", "it was stopped, by somebody or by whoever schedules the jobs"
    if signal == "SIGBUS":
        return "configuration", "most often shared memory (/dev/shm) too small for the workers"
    if signal in ("SIGSEGV", "SIGILL", "SIGFPE"):
        return "code", "a library of it crashed"
    if "KILL" in signal or cause.values.get("exit_code") == -9:
        return "from outside", "SIGKILL, by the kernel for lack of memory or by somebody"
    if is_echo(cause):
        return "", ""
    if ARCHITECTURE.search(text):
        return "architecture", "shapes of the model do not fit each other or a checkpoint"
    if DATA.search(text):
        return "data", "the text could not be found or read"
    if cause.what == "exception":
        return "code", "an exception that may as well come of a wrong setting"
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
        if finding.id == "loss-not-finite" and finding.severity != "error":
            continue
        if finding.id in says:
            kind, words = says.pop(finding.id)
            yield Pointer(kind, words, finding.evidence[-1:])


def _not_pointed_at(
    kinds: Sequence[str], stories: Sequence[Story], findings: Sequence[Finding]
) -> str:
    """Why not the others, as far as the evidence speaks against them."""
    parts = []
    ids = {finding.id for finding in findings}
    if "architecture" not in kinds:
        whole = " (the count is exactly the target's share)" if "count-is-shard" in ids else ""
        parts.append(f"the architecture{whole}")
    if "hardware" not in kinds:
        absent = _absent(stories)
        parts.append(f"the hardware ({', '.join(absent)})" if absent else "the hardware")
    return f"Nothing points at {' or at '.join(parts)}." if parts else ""


def _absent(stories: Sequence[Story]) -> list[str]:
    """Which signs of the hardware no log has, those that were survived among them."""
    said = [
        one
        for story in stories
        for attempt in story.attempts
        for one in (*attempt.problems, *attempt.warnings)
    ]
    memory = any(one.what == "out-of-memory" or NO_MEMORY.search(one.line.text) for one in said)
    signal = any(one.what == "signal" or "signal" in one.values or is_stop(one) for one in said)
    device = any(HARDWARE.search(one.line.text) for one in said)
    signs = {"no device error": device, "no lack of memory": memory, "no signal": signal}
    return [words for words, seen in signs.items() if not seen]
