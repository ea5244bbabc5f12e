"""What the screen says of a training that bitwatch did not start: only what is known of it."""

from __future__ import annotations

from bitwatch.record import events
from bitwatch.record.view import View
from bitwatch.tui import model
from bitwatch.tui.screens.why import text


def built(asked: int | None, number: int, within: int = 0) -> View:
    told = events.ModelBuilt(asked=asked, built=number, within=within)
    return View(
        foreign=True, state="running", attempt=1, asked=asked, built=number, models=[(1, told)]
    )


def words(view: View) -> str:
    return "; ".join(sentence for sentence, _ in model.paragraph(view))


def line(view: View) -> str:
    return "".join(part for part, _ in model.counted(view).spans)


def test_a_number_that_its_log_rounds_is_about_that_and_no_other_than_was_asked_for() -> None:
    rounded = built(None, 110_000, 10_000)
    assert words(rounded) == (
        "built about 110,000 parameters, as its log says; it gives no digits below 10,000"
    )
    assert line(rounded) == "built about 110,000"
    assert not model.differs(built(112_345, 110_000, 10_000))
    assert "= built" not in line(built(112_345, 110_000, 10_000))
    assert "it gives no digits below 10,000" in words(built(112_345, 110_000, 10_000))
    assert model.differs(built(150_000, 110_000, 10_000))
    assert model.differs(built(112_345, 110_000))


def test_no_key_is_named_that_such_a_training_does_not_have() -> None:
    assert words(built(None, 1234)) == (
        "built 1,234 parameters, as its log says; it names no target"
    )


def test_how_the_attempt_before_failed_is_said_when_nothing_is_wrong_now() -> None:
    before = events.AttemptEnded(attempt=1, state="failed", cause="rank 1 was killed by SIGKILL")
    view = View(foreign=True, state="running", attempt=2, before=before)
    shown = "\n".join(block.text.plain for block in text(view))
    assert "Nothing is wrong now that bitwatch knows of." in shown
    assert "attempt 1 failed at " in shown and "rank 1 was killed by SIGKILL" in shown
    stopped = events.AttemptEnded(attempt=1, state="stopped")
    quiet = text(View(state="running", attempt=2, before=stopped))
    assert [block.text.plain for block in quiet] == ["Nothing is wrong that bitwatch knows of."]
