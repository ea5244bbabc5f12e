"""The keys of the user's file: `[keys]`, an id and what it is to be pressed by, "S,f12".

Checked when a screen is opened, as the theme is: one sentence that names the file, the id and
what to do. Pure.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bitwatch.strict import ConfigError
from bitwatch.tui import keys
from bitwatch.tui.key_names import UnknownKey, key_of, written
from bitwatch.tui.keys import FIXED, KEYS, NEEDED, OPENERS, SCOPES, UNBOUND, Key

DIGITS = "logs-rank"  # which of its keys is pressed is what it is about


def given(wanted: Mapping[str, str], file: Path | str) -> dict[str, str]:
    """Textual's names of keys by id, for `keys.use`. Raises ConfigError."""
    ids = {key.id: key for key in KEYS}
    found: dict[str, str] = {}
    for id, text in wanted.items():
        if id not in ids:
            near = difflib.get_close_matches(id, ids, 1, 0.0)
            raise ConfigError(
                f"{file}: keys.{id}: there is no such action; did you mean {near[0]}? "
                f"The help ({keys.get('help').written}) names them all"
            )
        found[id] = _keys_of(id, text, file)
        if id == DIGITS and found[id] != ids[id].keys:
            raise ConfigError(
                f"{file}: keys.{id}: the digits themselves name the rank; remove the line"
            )
    _apart(found, file)
    return found


def _keys_of(id: str, text: str, file: Path | str) -> str:
    if not text.strip():
        if id in NEEDED:
            raise ConfigError(
                f"{file}: keys.{id}: cannot be without a key: it is the way "
                f"{'to the help' if id == 'help' else 'out, or to everything else'}; "
                f'write one, or remove the line for "{_default(id)}"'
            )
        return UNBOUND
    named = []
    for word in text.split(","):
        if not word.strip():
            raise ConfigError(
                f'{file}: keys.{id}: "{text}" has an empty place between commas; '
                'the comma itself is written "comma"'
            )
        try:
            key = key_of(word)
        except UnknownKey as error:
            raise ConfigError(f"{file}: keys.{id}: {error}") from None
        if key in FIXED:
            raise ConfigError(f"{file}: keys.{id}: {written(key)} {FIXED[key]}; take another key")
        named.append(key)
    return ",".join(dict.fromkeys(named))


def _default(id: str) -> str:
    return ",".join(next(key for key in KEYS if key.id == id).written.split(" "))


def _apart(found: Mapping[str, str], file: Path | str) -> None:
    """No key may mean two things in one place. What is so by default stays: a panel may have its
    own use for a key of the dashboard."""
    now = {key.id: found.get(key.id, key.keys).split(",") for key in KEYS}
    for id in found:
        mine = next(key for key in KEYS if key.id == id)
        for other in _beside(mine, KEYS):
            both = [key for key in now[id] if key in now[other.id] and key != UNBOUND]
            if both and not set(both) <= _both_by_default(mine, other):
                key, where = written(both[0]), SCOPES[_inner(mine, other)][0].lower()
                raise ConfigError(
                    f'{file}: keys.{id}: {where} "{key}" belongs to {other.id} already ({_said(other)}); '
                    f"take another key, or give {other.id} another one too"
                )


def _beside(mine: Key, table: Sequence[Key]) -> Iterator[Key]:
    """The other actions that are to be had where this one is."""
    for other in table:
        if (
            other.id != mine.id
            and (scopes := _scopes(mine))
            and any(
                theirs == ours or theirs in SCOPES[ours][1] or ours in SCOPES[theirs][1]
                for ours in scopes
                for theirs in _scopes(other)
            )
        ):
            yield other


def _scopes(key: Key) -> tuple[str, ...]:
    """Where it is bound. The key that opens a page closes it there."""
    return (key.scope, "page") if key.id in OPENERS else (key.scope,)


def _inner(mine: Key, other: Key) -> str:
    """The place that both are in."""
    if mine.scope == other.scope:
        return mine.scope
    if mine.scope in SCOPES[other.scope][1]:
        return other.scope
    return mine.scope


def _both_by_default(mine: Key, other: Key) -> set[str]:
    return set(mine.keys.split(",")) & set(other.keys.split(","))


def _said(key: Key) -> str:
    return key.help.rstrip(".")[:1].lower() + key.help.rstrip(".")[1:]
