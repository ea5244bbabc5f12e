"""`bitwatch report`: a report on stdout, in the form that was asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bitwatch.headless import terminal_width
from bitwatch.report import lines, make, markdown, model


def show(home: Path, words: Sequence[str], as_json: bool, as_markdown: bool) -> int:
    """0 whatever was found: a report is no judgement of the command. Raises RunDirError."""
    report = make.make(home, words)
    if as_json:
        text = model.to_json(report).decode()
    elif as_markdown:
        text = "".join(f"{line}\n" for line in markdown.lines(report))
    else:
        face = lines.Face(terminal_width(), lines.wants_colours())
        text = "".join(f"{line}\n" for line in face.lines(report))
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # so that the exit does not complain
    return 0
