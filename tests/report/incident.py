"""The evidence of the incident that bitwatch exists for, exactly as it is known."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bitwatch.report import files
from bitwatch.report.conclude import conclude
from bitwatch.report.model import Finding, Report

LOG = """\
2025-08-24 07:14:00,709 [INFO] Target: 1,208,606,722 parameters
2025-08-24 07:14:00,710 [INFO] Hardware: 4x NVIDIA L4 GPUs
2025-08-24 07:14:00,710 [INFO] Configuration: {'d_model': 2048, 'nhead': 32, 'num_layers': 24, 'dim_feedforward': 8192, 'max_seq_len': 2048}
2025-08-24 07:15:48,804 [INFO] Target: 679,962,626 parameters
2025-08-24 07:15:48,804 [INFO] Hardware: 4x NVIDIA L4 GPUs
2025-08-24 07:15:57,037 [INFO] ✅ Model created with 169,990,657 parameters (0.17B)
2025-08-24 07:15:57,042 [INFO] 🎯 Starting training loop...
2025-08-24 07:16:02,502 [WARNING] Too many dataloader workers: 4 (max is dataset.num_shards=2). Stopping 2 dataloader workers.
"""
PS = """\
13803  Sun Aug 24 07:14:02  python -c from multiprocessing.spawn import spawn_main
13935  Sun Aug 24 07:14:03  python -c from multiprocessing.spawn import spawn_main
20966  Sun Aug 24 07:15:50  python -c from multiprocessing.spawn import spawn_main
... hundreds more
"""
LISTED = time.mktime((2025, 8, 24, 7, 58, 2, 0, 0, -1))


def at(clock: str, day: int = 24) -> float:
    """Local time on the day of the incident."""
    hour, minute, second = clock.split(":")
    whole = time.mktime((2025, 8, day, int(hour), int(minute), 0, 0, 0, -1))
    return whole + float(second)


def write(folder: Path, name: str, text: str, modified: float | None = LISTED) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    if modified is not None:
        os.utime(path, (modified, modified))
    return str(path)


def report(*words: str) -> Report:
    return conclude(files.gather(words))


def finding(made: Report, id_: str) -> Finding:
    (found,) = [one for one in made.findings if one.id == id_]
    return found


def ids(made: Report) -> list[str]:
    return [one.id for one in made.findings]


def errors(made: Report) -> list[str]:
    return [one.id for one in made.findings if one.severity == "error"]


def everything(made: Report) -> str:
    """All words that the report says of its own, without the lines of the evidence."""
    verdict = made.verdict
    said = [*verdict.shown, *verdict.likely, *verdict.unknown, *made.notes]
    said += [word for one in made.findings for word in (one.title, one.why, one.next)]
    return "\n".join(said)
