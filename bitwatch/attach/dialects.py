"""Hears what the lines of any training's log say: the step, the loss, what went wrong.

The dialects are tables (`dialect_tables`), tried in their order: what a user has added, what
went wrong, the steps of known trainers, facts, and last what any line may look like. A sentence
that merely has the words of one says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from bitwatch.attach.dialect_tables.facts import FACTS
from bitwatch.attach.dialect_tables.rule import Compiled, Rule
from bitwatch.attach.dialect_tables.steps import GENERIC, STEPS
from bitwatch.attach.dialect_tables.troubles import LEVELS, TROUBLES
from bitwatch.attach.said import Line, Said, Value, What
from bitwatch.attach.sieve import Sieve
from bitwatch.attach.tracebacks import (
    ASIDE,
    CHAINED,
    OPENING,
    REPORT_OPENINGS,
    FailureReport,
    Tracebacks,
    without_prefix,
)

RULES: tuple[Rule, ...] = (
    *TROUBLES,
    *STEPS,
    *(rule for rule in FACTS if rule.dialect != "any"),
    *LEVELS,
    *(rule for rule in FACTS if rule.dialect == "any"),
    *GENERIC,
)
# What says more about an exception than that it is one.
TELLING: set[What] = {"out-of-memory", "timeout", "signal"}
LONGEST_REST = 60  # characters after a step that a known trainer said, which it may say besides
# Lines of progress that are worth more than others: an evaluation, a loss that is no number.
NEVER_THINNED = ("val loss", "val_loss", "eval_loss", "validation", " nan", "=nan", "'nan'")
LARGEST = 2**63 - 1  # no log counts so far; what does is damaged


class Listener:
    """Hears one log. `own` are the dialects of the user (`own_dialects.load`). Keeps little:
    open tracebacks, an unfinished report, and which rule was right last."""

    def __init__(self, own: Iterable[Rule] = ()) -> None:
        self._rules = [*map(Compiled, own), *COMPILED]
        self._recent: Compiled | None = None
        self._tracebacks = Tracebacks()
        self._report = FailureReport()
        self._longest_bar = 0

    def hear(self, lines: Iterable[Line]) -> list[Said]:
        """What they say, in their order. Most lines say nothing."""
        found: list[Said] = []
        for line in lines:
            text = line.text
            if not text:
                continue
            who, rank = "", None
            if text[0] in "[d ":
                text, who, rank = without_prefix(text)
            if said := self._told(line, text, who, found):
                if rank is not None and "rank" not in said.values:
                    said = said._replace(values={**said.values, "rank": rank})
                found.append(said)
        return found

    def end(self) -> list[Said]:
        """What was begun and has no end in the log."""
        return self._report.end()

    def sieve(self, size_bytes: int = 0) -> Sieve:
        """A new sieve for a large log: it passes all lines that can say something here. With
        the size of what is read it thins out the steps of a log that has very many."""
        progress = [rule.word for rule in self._rules if rule.rule.what == "step"]
        words = [rule.word for rule in self._rules if rule.rule.what != "step"]
        return Sieve([*words, *NEVER_THINNED], OPENINGS, ["loss", *progress], size_bytes)

    def _told(self, line: Line, text: str, who: str, found: list[Said]) -> Said | None:
        if self._report.open or text.lstrip().startswith(REPORT_OPENINGS):
            found += self._report.hear(text, line)
            if self._report.open:
                return None
        if self._tracebacks or OPENING in text or text.startswith(BEFORE):
            part = self._tracebacks.hear(who, text, line)
            if isinstance(part, Said):
                return self._telling(part, text)
            if part:
                return None
        return self._by_rules(line, text)

    def _telling(self, exception: Said, text: str) -> Said:
        """An exception that is out of memory, or a time-out, as that, and where it happened."""
        said = self._by_rules(exception.line, text)
        if said is None or said.what not in TELLING:
            return exception
        return said._replace(values={**exception.values, **said.values})

    def _by_rules(self, line: Line, text: str) -> Said | None:
        recent = self._recent
        if recent is not None and (match := recent.search(text)):
            rest = len(text) - match.end()
            if rest <= 0 or (rest < LONGEST_REST and "[" not in text[match.end() :]):
                return self._said(recent, match, line, text)
        low = text.lower()
        for rule in self._rules:
            if rule.word in low and (match := rule.search(text)):
                said = self._said(rule, match, line, text)
                if said is not None:
                    if said.what == "step" and rule.rule.dialect != "any":
                        self._recent = rule
                    return said
        return None

    def _said(self, rule: Compiled, match: object, line: Line, text: str) -> Said | None:
        values: dict[str, Value] = rule.values(match)  # type: ignore[arg-type]
        what: What | str = rule.rule.what
        if rule.rule.then is not None:
            try:
                what = rule.rule.then(rule.rule.what, values, text)
            except (KeyError, ValueError, OverflowError):
                return None  # of a number of hundreds of digits
        if any(type(value) is int and abs(value) > LARGEST for value in values.values()):
            return None
        if not what or (rule.rule.dialect == "tqdm" and not self._is_the_bar(values)):
            return None
        if what in ("begins", "done"):
            self._longest_bar = 0
        return Said(what, line, rule.rule.dialect, values)  # type: ignore[arg-type]

    def _is_the_bar(self, values: dict[str, Value]) -> bool:
        """A bar without a loss that is shorter than the one of the training is of something
        within it, as an evaluation."""
        steps = int(values.get("steps", 0))
        if "loss" in values or "epoch" in values:
            return True
        if steps < self._longest_bar:
            return False
        self._longest_bar = 0 if values.get("step") == steps else steps
        return True


BEFORE = (*CHAINED, *ASIDE)  # what is said before a traceback, and of it
OPENINGS = (OPENING, *REPORT_OPENINGS, *BEFORE)
COMPILED = tuple(map(Compiled, RULES))
