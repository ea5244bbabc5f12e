"""Why a rank ends, as one sentence for the person at the keyboard."""

from __future__ import annotations

import os
import traceback


class Failed(Exception):
    """An end that every rank comes to at the same step: a refusal, or a trouble they have
    agreed on. Its text is the whole cause."""


class NotFound(Failed):
    """What was asked for is not there, or cannot be there. Its text says what can."""


def sentence(error: BaseException) -> str:
    """What went wrong, and where: "ValueError: no such thing (stream.py:12)"."""
    if isinstance(error, Failed):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        text += f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})"
    return text
