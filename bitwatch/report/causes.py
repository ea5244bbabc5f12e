"""The class of a cause that a rank, or whoever closed its record, wrote down in one sentence:
configuration, architecture, hardware, data, code, or from outside. A sentence that fits none is
of no class, and nothing is guessed."""

from __future__ import annotations

import re
from typing import NamedTuple

from bitwatch.record.view import is_echo


class Cause(NamedTuple):
    """`why`: half a sentence that says what in the words decides."""

    class_: str
    why: str


OUTSIDE = "from outside"
NO_MEMORY = re.compile(r"out of memory|OutOfMemory|MemoryError|Cannot allocate memory", re.I)
DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded|the disk is full", re.I)
NOT_FINITE = re.compile(r"not finite|not-finite|non-?finite|\bnan\b|\binf(?:inity)?\b", re.I)
SIGNAL = re.compile(r"was killed by |SIG(?:KILL|TERM|INT|HUP|SEGV|BUS|ABRT)\b|signal \d+")

# The first that fits counts, so what is surer stands before what is vaguer.
CLASSES = [
    (re.compile(pattern, re.I), class_, why)
    for pattern, class_, why in (
        (
            r"uncorrectable|ECC error|fallen off the bus|\bXid\b|unspecified launch failure"
            r"|hardware error|NVLink",
            "hardware",
            "the driver reports a fault of a GPU",
        ),
        (
            r"Input/output error|Stale file handle|Read-only file system",
            "hardware",
            "a disk or its network does not answer as it should",
        ),
        (DISK_FULL.pattern, "hardware", "a disk is full"),
        (
            NO_MEMORY.pattern,
            "configuration",
            "the sizes that were asked for need more memory than there is, unless somebody else "
            "held some of it",
        ),
        (
            r"size mismatch|mat1 and mat2|shape '|shapes? cannot be|must be divisible|head_dim",
            "architecture",
            "sizes of the model do not fit each other",
        ),
        (r"illegal memory access|device-side assert", "code", "a kernel of the program failed"),
        (r"SIGSEGV|SIGABRT", "code", "a library of it crashed"),
        (
            r"SIGBUS|bus error",
            "configuration",
            "most often shared memory (/dev/shm) that is too small for the workers",
        ),
        (
            r"a row has no column|holds no rows|hold no rows|parquet|arrow|UnicodeDecodeError"
            r"|does not decode|is empty$|HfHub|ConnectionError|checksum|cannot read",
            "data",
            "the text, or the way to it, is not as it should be",
        ),
        (
            r"^(?:rank \d+: )?(?:run|model|data|parallel|train|checkpoint|watch)\.[a-z_]+\b",
            "configuration",
            "it names a key of the configuration",
        ),
        (SIGNAL.pattern, OUTSIDE, "a signal ended it, and a process does not send that to itself"),
        (
            r"worker (?:\d+ )?of rank \d+ .*(?:is gone|lost|killed)",
            OUTSIDE,
            "a worker of it was ended",
        ),
        (
            NOT_FINITE.pattern,
            "configuration or architecture",
            "a loss that is no number comes of settings (learning rate, precision) or of the "
            "model; the record alone cannot tell which",
        ),
        (
            r"^(?:rank \d+: )?[A-Za-z_.]*(?:Error|Exception|Interrupt|Exit)\b",
            "code",
            "an exception of the program that nothing explains as any of the others",
        ),
    )
]


def class_of(cause: str) -> Cause | None:
    """None for what cannot be told: no words, or only that another rank was lost."""
    if not cause or is_echo(cause):
        return None
    for pattern, class_, why in CLASSES:
        if pattern.search(cause):
            return Cause(class_, why)
    return None
