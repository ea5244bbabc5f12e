"""From a TOML table to typed structs, strictly, with errors for the person at the keyboard.

Every error is a `ConfigError`: one sentence with the file, the key's path, and what to do.
Knows nothing of what the keys mean.
"""

from __future__ import annotations

import re
import tomllib
import types
import typing
from pathlib import Path
from typing import Any, Literal

import msgspec

from bitwatch import small


class ConfigError(Exception):
    """What is wrong with a configuration, as one sentence for the person at the keyboard."""


def read_toml(path: Path) -> dict[str, Any]:
    """Decoded TOML. Every way a file can fail to be one is a ConfigError."""
    try:
        return tomllib.loads(small.read(path, small.USERS_MIB).decode())
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{path}: is a folder, not a TOML file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not a text file; a TOML file is UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, endless brackets
        raise ConfigError(f"{path}: is not valid TOML: beyond what can be read") from None


def convert(table: dict[str, Any], kind: type, where: str, *, lenient: bool = False) -> Any:
    """`table` as a struct of `kind`; `where` names it in errors. `lenient` drops unknown keys."""
    _check_keys(table, kind, "", where, lenient, kind)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_sentence(str(error), kind, table)}") from None


def _check_keys(table: Any, kind: type, path: str, where: str, lenient: bool, root: type) -> None:
    """Unknown keys, with the nearest valid one anywhere in the file."""
    if not isinstance(table, dict):
        return
    fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}
    for key in list(table):
        full = f"{path}{key}"
        if key not in fields:
            if lenient:
                del table[key]
                continue
            raise ConfigError(
                f"{where}: {full}: unknown key{_did_you_mean(full, kind, path, root)}"
            )
        inner = _struct_of(fields[key].type)
        if inner is not None:
            _check_keys(table[key], inner, f"{full}.", where, lenient, root)


def _did_you_mean(full: str, kind: type, path: str, root: type) -> str:
    """The nearest key of this section, else the same word in another one, else the nearest."""
    import difflib  # only when something is wrong

    last = full.rsplit(".", 1)[-1]
    here = [f.encode_name for f in msgspec.structs.fields(kind)]
    everywhere = list(known_keys(root))
    near = [path + name for name in difflib.get_close_matches(last, here, 1, 0.6)]
    near = near or [key for key in everywhere if key.rsplit(".", 1)[-1] == last]
    near = near or difflib.get_close_matches(full, everywhere, 1, 0.0)
    return f"; did you mean {near[0]}?" if near else ""


def known_keys(kind: type, path: str = "") -> typing.Iterator[str]:
    """Every dotted key of a struct, sections first."""
    for field in msgspec.structs.fields(kind):
        inner = _struct_of(field.type)
        if inner is None:
            yield path + field.encode_name
        else:
            yield from known_keys(inner, f"{path}{field.encode_name}.")


def _struct_of(kind: Any) -> type | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def _sentence(message: str, kind: type, table: dict[str, Any]) -> str:
    """msgspec's message ("Expected `int`, got `str` - at `$.train.steps`") as ours."""
    text, _, place = message.partition(" - at `$")
    key = place.rstrip("`").lstrip(".")
    missing = re.match(r"Object missing required field `(.*)`", text)
    if missing:
        full = f"{key}.{missing[1]}" if key else missing[1]
        what = "section" if _struct_of(_type_at(kind, full)) else "key"
        return f"{full}: this {what} is missing and has no default"
    if key.endswith("[...]"):  # in a table of any keys
        key = _wrong_entry(kind, table, key.removesuffix("[...]"))
    wanted = _type_at(kind, key)
    value = _value_at(table, key)
    if (key, value) == ("data.start_method", "forkserver"):
        return (
            'data.start_method: "forkserver" is refused: its workers are no children of their '
            'rank, and a parent-death signal cannot see through it; use "fork" or "spawn"'
        )
    return f"{key}: must be {_describe(wanted)}, not {toml_value(value)}"


def _wrong_entry(kind: Any, table: Any, key: str) -> str:
    """The first entry of a table that is of another type than all of its entries must be."""
    entry = typing.get_args(_type_at(kind, key))[1]
    for name, value in _value_at(table, key).items():
        try:
            msgspec.convert(value, entry)
        except msgspec.ValidationError:
            return f"{key}.{name}"
    return key


def _type_at(kind: Any, key: str) -> Any:
    for part in key.split(".") if key else ():
        if typing.get_origin(kind) is dict:
            return typing.get_args(kind)[1]
        if _struct_of(kind) is None:
            return kind
        kind = {f.encode_name: f.type for f in msgspec.structs.fields(kind)}[part]
    return kind


def _value_at(table: Any, key: str) -> Any:
    for part in key.split("."):
        table = table.get(part) if isinstance(table, dict) else None
    return table


def _describe(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return " or ".join(f'"{v}"' for v in typing.get_args(kind))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return _describe(next(a for a in typing.get_args(kind) if a is not type(None)))
    names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
    return names.get(kind, "a table")


def toml_value(value: Any) -> str:
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    return msgspec.json.encode(value).decode() if value is not None else "nothing"


def apply_change(table: dict[str, Any], change: str) -> None:
    """Puts one `--set section.key=value` into the table."""
    if not change.isascii():
        try:
            change.encode()
        except UnicodeEncodeError:
            raise ConfigError(f"--set {change!a}: is not valid text") from None
    key, equals, text = change.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"--set {change}: must look like train.steps=100")
    for part in parts[:-1]:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            place = key[: key.index(part) + len(part)]
            raise ConfigError(f"--set {change}: {place} is a value, not a section")
        table = inner
    table[parts[-1]] = _value_of(text.strip())


def _value_of(text: str) -> Any:
    """A value as TOML writes it; anything else is taken as a plain string."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text
