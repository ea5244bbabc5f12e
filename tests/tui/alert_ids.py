"""The names of all alerts that bitwatch can raise, as its code says them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import bitwatch

CODE = Path(bitwatch.__file__).parent
REPORT = CODE / "report"  # whose findings are no alerts
MAKERS = {"events.Alert", "Problem"}  # a problem of the plan becomes an alert of the attempt


class Unread(Exception):
    """A name that is made in a way that is not read here."""


def all_ids() -> set[str]:
    """Without the number of a GPU at the end."""
    found: set[str] = set()
    for path in sorted(CODE.rglob("*.py")):
        if REPORT not in path.parents:
            found |= set(_Reader(path).ids())
    return found


class _Reader:
    """One file of the code."""

    def __init__(self, path: Path) -> None:
        self._tree = ast.parse(path.read_text())
        self._where = str(path)
        names = path.relative_to(CODE.parent).with_suffix("").parts
        self._module = ".".join(names)

    def ids(self) -> Iterator[str]:
        for function in ast.walk(self._tree):
            if isinstance(function, ast.FunctionDef):
                for call in _calls(function):
                    yield from self._of(call, function)

    def _of(self, call: ast.Call, function: ast.FunctionDef) -> Iterator[str]:
        name = ast.unparse(call.func)
        if name == "with_alert":
            yield from self._value(call.args[1], function)
        given = {each.arg: each.value for each in call.keywords}
        if name not in MAKERS or "id" not in given or "cleared" in given:
            return
        if "problem" in ast.unparse(given["id"]):  # the id that the problem has
            return
        if function.name != "with_alert":  # whose callers say it
            yield from self._value(given["id"], function)

    def _value(self, node: ast.expr, function: ast.FunctionDef) -> Iterator[str]:
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.IfExp():
                yield from self._value(node.body, function)
                yield from self._value(node.orelse, function)
            case ast.JoinedStr(values=[ast.FormattedValue(value=name), *_]):
                yield from self._value(name, function)
            case ast.Name(id=name):
                yield from self._named(name, function)
            case _:
                raise Unread(f"{self._where}:{node.lineno}: {ast.unparse(node)}")

    def _named(self, name: str, function: ast.FunctionDef) -> Iterator[str]:
        """A constant of the module, a variable, or what the callers hand over."""
        module = importlib.import_module(self._module)
        if isinstance(text := getattr(module, name, None), str):
            yield text
            return
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=variable)], value=value) if variable == name:
                    yield from self._value(value, function)
        places = [argument.arg for argument in function.args.args]
        if name in places:
            for call in _calls(self._tree):
                if ast.unparse(call.func) == function.name:
                    yield from self._value(call.args[places.index(name)], function)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))
