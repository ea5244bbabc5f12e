"""How one attempt of a recorded run ended, by all that its record says, with the places where
it says so."""

from __future__ import annotations

from bitwatch.record.state import AttemptState
from bitwatch.record.view import View, is_echo, verdict
from bitwatch.report.model import Evidence
from bitwatch.report.record_read import Record
from bitwatch.report.record_words import cut

NAMED = 6  # ranks in the evidence


class Ended:
    """`words`: the last words of its ranks, first causes first. `elsewhere` says why it cannot be
    seen from here whether it goes on, empty where it can."""

    def __init__(self, record: Record, number: int, seen: View, elsewhere: str = "") -> None:
        self.record = record
        self.number = number
        self.run = record.run.id
        self.foreign = seen.foreign
        self.name = f"attempt {number} of {self.run}"
        state = record.state
        self.attempt = state.journal.attempts.get(number, AttemptState())
        ranks = state.ranks_of(number)
        expected = self.attempt.started.ranks if self.attempt.started else None
        self.state: str = "lost"
        self.cause = "nothing says how"
        self.elsewhere = elsewhere if number == seen.attempt and not self.attempt.ended else ""
        if number == seen.attempt:
            self.state, self.cause = seen.state, seen.cause
        elif self.attempt.ended:
            self.state, self.cause = self.attempt.ended.state, self.attempt.ended.cause
        elif said := verdict(state, number, expected):
            self.state, self.cause = said
        self.cause = cut(self.cause)
        words = [rank.ended for rank in ranks.values() if rank.ended]
        self.words = sorted(
            (word for word in words if word.state == "failed"),
            key=lambda word: (is_echo(word.cause), word.t),
        )
        prepare = state.prepares.get(number)
        if prepare and prepare.ended and prepare.ended.state == "failed":
            self.words.insert(0, prepare.ended)
        self.step = max((rank.step.step for rank in ranks.values() if rank.step), default=0)
        self.updated = max((rank.updated for rank in ranks.values()), default=0.0)
        self.exits = [
            exit
            for key, exit in state.journal.exits.items()
            if exit.signal and (start := state.journal.processes.get(key))
            if start.attempt == number and exit.role in ("rank", "worker", "agent")
        ]

    def evidence(self) -> list[Evidence]:
        """The end as it was recorded, then the first causes, then the echoes."""
        places = self.record.story.places
        found = [places["ended", self.number]] if ("ended", self.number) in places else []
        for word in self.words[:NAMED]:
            key = ("word", self.number, word.rank)
            place = places.get(key) or places.get(("prepared", self.number, word.rank))
            if place is not None:
                echo = "echo: " if is_echo(word.cause) else "first cause: "
                found.append(
                    Evidence(
                        source=place.source,
                        line=place.line,
                        t=place.t,
                        text=echo + place.text,
                    )
                )
        return found
