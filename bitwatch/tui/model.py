"""The model's parameters in words: asked, built and held, never one for the other. Pure."""

from __future__ import annotations

from bitwatch.record.view import View
from bitwatch.text import short
from bitwatch.tui.draw import Line


def differs(view: View) -> bool:
    """Whether another model was built than the one that was asked for."""
    return None not in (view.asked, view.built) and view.asked != view.built


def counted(view: View) -> Line:
    """asked 1,208,606,722 = built · built 679,962,626, asked 1,208,606,722"""
    if view.built is None:
        return Line()
    if differs(view):
        line = Line("built ", "bad").add(f"{view.built:,}", "strong bad").add(", asked ", "bad")
        return line.add(f"{view.asked:,}", "strong bad")
    if view.asked is None:
        return Line("built ", "quiet").add(f"{view.built:,}")
    return Line("asked ", "quiet").add(f"{view.asked:,}").add(" = built", "quiet")


def held(view: View) -> Line:
    """each rank holds 302M"""
    if not view.held:
        return Line()
    least, most = short(min(view.held)), short(max(view.held))
    if len(view.held) == 1:
        return Line("the rank holds ", "quiet").add(_spaced(most))
    if least == most:
        return Line("each rank holds ", "quiet").add(_spaced(most))
    return Line("a rank holds ", "quiet").add(f"{_spaced(least)} to {_spaced(most)}")


def _spaced(number: str) -> str:
    """302 M"""
    return f"{number[:-1]} {number[-1]}" if number[-1:].isalpha() else number


def paragraph(view: View) -> list[tuple[str, str]]:
    """Sentences with their roles: what was asked for, built and held, to the last digit, and
    attempts that built another model."""
    found: list[tuple[str, str]] = []
    if view.built is None:
        return found
    if view.asked is None:
        words = f"built {view.built:,} parameters; no number was asked for"
        found.append((f"{words} (model.expected_parameters)", "text"))
    elif differs(view):
        found.append((f"built {view.built:,} parameters, asked {view.asked:,}", "bad"))
    else:
        found.append((f"asked {view.asked:,} parameters = built", "text"))
    if view.held:
        found.append((_held(view.held), "quiet"))
    for attempt, model in view.models:
        if attempt != view.attempt and model.built != view.built:
            words = f"attempt {attempt} built {model.built:,}: this is another model"
            found.append((words, "bad"))
    return found


def _held(held: list[int]) -> str:
    """Of several ranks; a sentence with the numbers of many could not be read."""
    least, most = min(held), max(held)
    if len(held) == 1:
        return f"its rank holds {most:,} of them"
    if least == most:
        return f"each of {len(held)} ranks holds {most:,} of them"
    return f"{len(held)} ranks hold {least:,} to {most:,} of them each"
