"""Quiet colours that tell several sources apart: of one lightness, around the accent."""

from __future__ import annotations

from textual.color import Color

NUMBER = 6
SATURATION = 0.3
NAMES = tuple(f"source-{number}" for number in range(NUMBER))


def source_colours(quiet: str, accent: str) -> dict[str, str]:
    """By role. A terminal's own colours cannot be turned; there they are all the quiet one."""
    base, hue = Color.parse(quiet), Color.parse(accent)
    if base.ansi is not None or hue.ansi is not None:
        return dict.fromkeys(NAMES, quiet)
    begin, lightness = hue.hsl.h, base.hsl.l
    return {
        name: Color.from_hsl((begin + number / NUMBER) % 1, SATURATION, lightness).hex
        for number, name in enumerate(NAMES)
    }
