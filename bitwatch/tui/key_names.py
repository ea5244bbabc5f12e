"""What keys are called: by a person in a file, by Textual, and on the screen. Pure.

Textual calls a key by its character where that is a letter or a digit, else by a name
("question_mark", "f9", "ctrl+s"); a person writes "?", "F9" and "Ctrl+S".
"""

from __future__ import annotations

import difflib
import unicodedata

from textual.keys import KEY_NAME_REPLACEMENTS, KEY_TO_UNICODE_NAME, Keys, _character_to_key

MODIFIERS = ("ctrl", "alt", "shift")
ALIASES = {
    "esc": "escape",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "page_up": "pageup",
    "page_down": "pagedown",
}
SIGNS = {"up": "↑", "down": "↓", "left": "←", "right": "→", "escape": "esc"}
# What a terminal sends for both.
SAME = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+left_square_bracket": "escape"}
NAMED = frozenset(key.value for key in Keys if key.value.replace("+", "").isalnum())
ORIGINAL = {short: long for long, short in KEY_NAME_REPLACEMENTS.items()}


class UnknownKey(Exception):
    """A sentence's end: what is wrong with the name of a key, and what to write."""


def key_of(written: str) -> str:
    """Textual's name of a key as a person writes it. Raises UnknownKey."""
    word = written.strip()
    if word in SIGNS.values():
        return next(key for key, sign in SIGNS.items() if sign == word)
    if len(word) == 1:
        return str(_character_to_key(word))
    *modifiers, last = word.split("+") if not word.endswith("++") else [*word[:-2].split("+"), "+"]
    modifiers = [modifier.strip().lower() for modifier in modifiers]
    last = last.strip()
    last = next((key for key, sign in SIGNS.items() if sign == last), last)
    if len(last) > 1:
        last = ALIASES.get(last.lower(), last.lower())
    elif last:
        last = str(_character_to_key(last))
    if modifiers == ["shift"] and len(last) == 1:
        return last.upper()
    if "ctrl" in modifiers:
        last = last.lower()
    key = "+".join([*(each for each in MODIFIERS if each in modifiers), last])
    if len(set(modifiers)) != len(modifiers) or not set(modifiers) <= set(MODIFIERS):
        raise UnknownKey(f'"{written}" is not the name of a key{_did_you_mean(word.lower())}')
    if not (key in NAMED or _is_character(last, modifiers)):
        raise UnknownKey(f'"{written}" is not the name of a key{_did_you_mean(word.lower())}')
    if same := SAME.get(key):
        raise UnknownKey(f'"{written}" is the same as {same} to a terminal; take another key')
    return key


def _is_character(name: str, modifiers: list[str]) -> bool:
    """Whether it is one that can be typed, by its name, with these modifiers."""
    if len(modifiers) > 1 or "shift" in modifiers:
        return False
    if len(name) == 1:
        return name.isalnum()
    return not modifiers and character_of(name) != ""


def character_of(name: str) -> str:
    """What a key writes; empty for one that writes nothing, or only space."""
    if len(name) == 1:
        return name
    long = ORIGINAL.get(name, name)
    for said in (KEY_TO_UNICODE_NAME.get(name, ""), long.replace("_", " "), long.replace("_", "-")):
        try:
            found = unicodedata.lookup(said)
        except KeyError:
            continue
        break
    else:
        return ""
    return found if found.isprintable() and not found.isspace() else ""


def written(key: str) -> str:
    """As a page of help has it: "?", "F9", "ctrl+s"."""
    *modifiers, last = key.split("+")
    if last in SIGNS:
        last = SIGNS[last]
    elif len(last) in (2, 3) and last[0] == "f" and last[1:].isdigit():
        last = last.upper()
    else:
        last = character_of(last) or last
    return "+".join([*modifiers, last])


def short(key: str) -> str:
    """As a footer has it: "^s" where the help has "ctrl+s"."""
    name = written(key)
    return f"^{name[5:]}" if name.startswith("ctrl+") else name


def _did_you_mean(word: str) -> str:
    near = difflib.get_close_matches(word, [*NAMED, *ALIASES], 1, 0.6)
    near = near or ["?", "S", "F9", "ctrl+s"]
    return f"; did you mean {near[0]}?" if len(near) == 1 else f"; write one as {', '.join(near)}"
