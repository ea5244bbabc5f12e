"""The model's parameters in words: asked, built and held, never one for the other. Pure."""

from __future__ import annotations

from bitwatch.record.view import View
from bitwatch.text import short
from bitwatch.tui.draw import Line


def differs(view: View) -> bool:
    """Whether another model was built than the one that was asked for."""
    if view.asked is None or view.built is None:
        return False
    return abs(view.asked - view.built) > within(view)


def within(view: View) -> int:
    """To what the number that was built is known only; 0 where it is exact."""
    built = [model for attempt, model in view.models if attempt == view.attempt]
    return next((model.within for model in built if model.built == view.built), 0)


def _built(view: View) -> str:
    about = "about " if within(view) else ""
    return f"{about}{view.built:,}"


def counted(view: View) -> Line:
    """asked 1,208,606,722 = built · built 679,962,626, asked 1,208,606,722"""
    if view.built is None:
        return Line()
    if differs(view):
        line = Line("built ", "bad").add(_built(view), "strong bad").add(", asked ", "bad")
        return line.add(f"{view.asked:,}", "strong bad")
    if view.asked is None:
        return Line("built ", "quiet").add(_built(view))
    line = Line("asked ", "quiet").add(f"{view.asked:,}")
    return line.add(", built about that" if within(view) else " = built", "quiet")


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
        words = f"built {_built(view)} parameters"
        words += ", as its log says; " if view.foreign else "; no number was asked for "
        words += _how_rounded(view) if view.foreign else "(model.expected_parameters)"
        found.append((words, "text"))
    elif differs(view):
        found.append((f"built {_built(view)} parameters, asked {view.asked:,}", "bad"))
    elif within(view):
        words = f"asked {view.asked:,} parameters, built {_built(view)}; {_how_rounded(view)}"
        found.append((words, "text"))
    else:
        found.append((f"asked {view.asked:,} parameters = built", "text"))
    if view.held:
        found.append((_held(view.held), "quiet"))
    for attempt, model in view.models:
        if attempt != view.attempt and model.built != view.built:
            words = f"attempt {attempt} built {model.built:,}: this is another model"
            found.append((words, "bad"))
    return found


def _how_rounded(view: View) -> str:
    known_to = within(view)
    return f"it gives no digits below {known_to:,}" if known_to else "it names no target"


def _held(held: list[int]) -> str:
    """Of several ranks; a sentence with the numbers of many could not be read."""
    least, most = min(held), max(held)
    if len(held) == 1:
        return f"its rank holds {most:,} of them"
    if least == most:
        return f"each of {len(held)} ranks holds {most:,} of them"
    return f"{len(held)} ranks hold {least:,} to {most:,} of them each"
