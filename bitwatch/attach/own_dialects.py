"""What a user adds to the dialects: `dialects.toml` beside the configuration of the user.

    [[line]]
    name = "ours"
    what = "step"
    pattern = 'batch (?P<step>\\d+) cost (?P<loss>[\\d.]+)'
    sample = "batch 12 cost 3.21"
    word = "cost"

`word` is part of each such line, in any case. Without it all lines of a large log are looked
at, which takes several times as long.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from bitwatch import config as configuration
from bitwatch.attach.dialect_tables.rule import GROUPS, Compiled, Rule, Values
from bitwatch.attach.dialect_tables.steps import with_a_value
from bitwatch.attach.said import What
from bitwatch.strict import ConfigError, convert, read_toml

FILE = "dialects.toml"
LONGEST_PATTERN = 500
MOST_LINES = 100
NEEDED: dict[str, str] = {"target": "parameters", "built": "parameters"}


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    what: What
    pattern: str
    sample: str
    word: str = ""


class _File(msgspec.Struct):
    line: list[dict[str, Any]]


def path() -> Path:
    return configuration.user_file().parent / FILE


def load() -> tuple[Rule, ...]:
    """The user's own rules; none without the file. Raises ConfigError."""
    file = path()
    return read(file) if file.exists() else ()


def read(file: Path) -> tuple[Rule, ...]:
    """Raises ConfigError, with the file, the entry and the key."""
    entries: list[dict[str, Any]] = convert(read_toml(file), _File, str(file)).line
    if len(entries) > MOST_LINES:
        raise ConfigError(
            f"{file}: line: has {len(entries)} entries; at most {MOST_LINES} are read"
        )
    return tuple(_rule(entry, f"{file}: line {at}") for at, entry in enumerate(entries, start=1))


def _rule(table: dict[str, Any], where: str) -> Rule:
    entry: Entry = convert(table, Entry, where)
    if not entry.name.strip():
        raise ConfigError(f"{where}: name: is empty; name the program that prints such lines")
    if len(entry.pattern) > LONGEST_PATTERN:
        raise ConfigError(
            f"{where}: pattern: has {len(entry.pattern)} characters; at most {LONGEST_PATTERN}"
            " are allowed, so make two entries of it"
        )
    try:
        pattern = re.compile(entry.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{where}: pattern: is no regular expression: {error}") from None
    for group in pattern.groupindex:
        if group not in GROUPS:
            raise ConfigError(f"{where}: pattern: {group}: unknown value{_near(group)}")
    needed = NEEDED.get(entry.what)
    if needed and needed not in pattern.groupindex:
        raise ConfigError(f'{where}: pattern: a "{entry.what}" needs a group (?P<{needed}>...)')
    rule = Rule(entry.name, entry.what, entry.word, entry.pattern, entry.sample, then=_progress)
    _check_sample(rule, entry, where)
    return rule


def _check_sample(rule: Rule, entry: Entry, where: str) -> None:
    if "\n" in entry.sample:
        raise ConfigError(f"{where}: sample: must be one line")
    if entry.word.lower() not in entry.sample.lower():
        raise ConfigError(f'{where}: word: "{entry.word}" is not in the sample')
    compiled = Compiled(rule)
    found = compiled.search(entry.sample)
    if found is None:
        raise ConfigError(f"{where}: sample: the pattern does not match it")
    if not _progress(entry.what, compiled.values(found), entry.sample):
        raise ConfigError(
            f"{where}: sample: shows no step: a step or an evaluation needs a step or an epoch,"
            " and a loss or a speed, each as a number"
        )


def _progress(what: What, values: Values, text: str) -> What | str:
    return with_a_value(what, values, text) if what in ("step", "evaluation") else what


def _near(group: str) -> str:
    import difflib  # only when something is wrong

    near = difflib.get_close_matches(group, sorted(GROUPS), 1, 0.5)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(GROUPS))}"
