"""Header, alerts and the keys at the bottom."""

from __future__ import annotations

import math

import msgspec
import pytest
from textual import events as textual_events
from textual.geometry import Size

from bitwatch.record import events
from bitwatch.tui.widgets.alerts import AlertBar, shortened
from bitwatch.tui.widgets.footer import fitting
from bitwatch.tui.widgets.header import Header
from tests.tui import views

SIZE = Size(80, 24)


def header(view: views.View, width: int, height: int, mode: str = "live") -> list[str]:
    widget = Header()
    widget.mode = mode
    widget.show(view, views.NOW)
    return [line.text for line in widget.draw(width, height)]


def alerts(view: views.View, width: int, height: int, **remedies: tuple[str, str]) -> list[str]:
    bar = AlertBar()
    bar.remedies = {key.replace("_", "-"): value for key, value in remedies.items()}
    bar.show(view, views.NOW)
    return [line.text for line in bar.draw(width, height)]


def test_one_line_says_everything_where_there_is_room() -> None:
    (line,) = header(views.on_l4s(), 160, 1)
    for words in (
        "1b21",
        "attempt 2",
        "● RUNNING",
        "step 12,408/20,000",
        "62 %",
        "ETA 1 d 4 h",
        "loss 0.0891",
        "1.030 bits/byte",
        "20.1k bit/s",
        "MFU 35 %",
    ):
        assert words in line


def test_what_matters_least_goes_first() -> None:
    first, second = header(views.on_l4s(), 60, 2)
    assert "● RUNNING" in first
    assert "loss 0.0891" in second and "ETA" in second
    assert "MFU" not in second and "bit/s" not in second


def test_a_state_has_a_shape_and_a_word() -> None:
    shapes = {
        header(views.on_l4s(state=state), 200, 1)[0].split(state.upper())[0].strip()[-1]
        for state in ("preparing", "running", "stalled", "stopping", "done", "failed")
    }
    assert len(shapes) == 6


def test_an_end_says_why_and_how_long_it_took() -> None:
    first, second = header(views.failed(), 160, 2)
    assert "✗ FAILED   rank 2: loss is not finite at step 12,408" in first
    assert "took 2 h 03 m" in second and "ETA" not in second
    assert "loss nan" in second


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (60, "rank 2: loss is not finite …"),
        (80, "rank 2: loss is not finite at step 12,408, and …"),
    ],
)
def test_where_the_cause_of_an_end_does_not_fit_its_beginning_is_said(
    width: int, said: str
) -> None:
    view = msgspec.structs.replace(views.failed(), cause=views.failed().cause + ", and the next")
    assert header(view, width, 2)[0].endswith(said)


def test_the_note_of_a_lost_supervisor_is_a_warning() -> None:
    view = views.on_l4s(supervisor="gone", note="supervisor gone; the ranks go on")
    assert "▲ supervisor gone" in header(view, 200, 2)[0]


def test_a_phase_that_makes_one_wait_is_named() -> None:
    view = views.on_l4s(phase="compile", phase_text="layer 3", phase_progress=0.25)
    assert "compile layer 3 25 %" in header(view, 200, 2)[0]


def test_the_mode_stands_at_the_right() -> None:
    assert header(views.on_l4s(), 80, 2, "paused")[0].rstrip().endswith("paused")
    assert header(views.on_l4s(), 80, 2, "live")[0].rstrip().endswith("RUNNING")


def test_the_most_severe_alert_comes_first_and_the_rest_is_counted() -> None:
    (line,) = alerts(views.with_leftovers(), 120, 1)
    assert line.startswith(" ■ 12 leftovers")
    assert "and 2 more" in line


def test_keys_stand_at_the_same_place_whatever_the_sentence_says() -> None:
    lines = alerts(views.with_leftovers(), 120, 2, leftovers=("c", "clean up"))
    assert lines[0].index("[w] why") == lines[1].index("[w] why")
    assert "[c] clean up" in lines[0] and "[c]" not in lines[1]


def test_a_long_sentence_never_pushes_the_key_out() -> None:
    view = views.on_l4s(alerts=[events.Alert(id="x", text="very " * 80)])
    (line,) = alerts(view, 80, 1)
    assert line.rstrip().endswith(" [w] why") and len(line) == 80
    assert " very… " in line


IDLE = "8 of 16 readers idle, and every rank reads everything: 2 shards for 4 ranks x 4 workers"


def test_where_there_is_little_room_a_sentence_says_less_in_whole_words() -> None:
    assert shortened(IDLE, 90) == IDLE
    assert shortened(IDLE, 70) == "8 of 16 readers idle, and every rank reads everything"
    assert shortened(IDLE, 50) == "8 of 16 readers idle, and every rank reads…"
    listed = "2 of 4 readers have nothing to read: rank 0 worker 1, rank 1 worker 1"
    assert shortened(listed, 57) == "2 of 4 readers have nothing to read"
    assert shortened(IDLE, 16) == "8 of 16 readers…"
    assert shortened(IDLE, 15) == "8 of 16…"
    assert shortened("x" * 30, 10) == "x" * 9 + "…"
    assert shortened(IDLE, 0) == ""


def test_labels_of_keys_become_shorter_before_a_sentence_does() -> None:
    view = views.on_l4s(alerts=[events.Alert(id="x", text=IDLE)])
    wide = alerts(view, 120, 1, x=("R", "relaunch corrected"))[0]
    narrow = alerts(view, 60, 1, x=("R", "relaunch corrected"))[0]
    assert "[R] relaunch corrected" in wide
    assert narrow == " ▲ 8 of 16 readers idle, and every…   [w] why  [R] relaunch "


def test_what_a_sentence_says_is_never_a_key() -> None:
    """Anywhere on it is the page of all alerts."""
    view = views.on_l4s(alerts=[events.Alert(id="x", text="[S] stops it, [c] cleans")])
    bar = AlertBar()
    pressed: list[str] = []
    bar.show(view, views.NOW)
    bar._drawn = bar.draw(80, 1)
    bar.post_message = lambda message: pressed.append(message.key)  # type: ignore
    for x in (0, 5, 20, 40, 72, 75):
        bar.on_click(click(x))
    assert pressed == ["a", "a", "a", "a", "w", "w"]


def click(x: int) -> textual_events.Click:
    return textual_events.Click(None, x, 0, 0, 0, 1, False, False, False)


def test_the_bar_shows_the_first_sentence() -> None:
    text = "8 of 16 readers idle: 0.5 of them. Each costs memory. This alone does not hang a run."
    (line,) = alerts(views.on_l4s(alerts=[events.Alert(id="x", text=text)]), 120, 1)
    assert line.startswith(" ▲ 8 of 16 readers idle: 0.5 of them ")


def test_what_the_plan_has_said_is_not_said_again_from_inside() -> None:
    idle = events.Alert(id="idle-reader", text="8 readers have nothing to read", t=views.NOW)
    (line,) = alerts(views.on_l4s(alerts=[idle]), 120, 1)
    assert "8 readers have nothing" in line
    view = views.on_l4s(alerts=[idle, *views.alerts()[:2]])
    (line,) = alerts(view, 120, 1)
    assert "and 1 more" in line and "8 readers have nothing" not in line
    bar = AlertBar()
    bar.show(view, views.NOW)
    assert bar.get_content_height(SIZE, SIZE, 80) == 2


def test_of_equal_alerts_one_that_a_key_ends_comes_first() -> None:
    (line,) = alerts(views.on_l4s(), 120, 1, workers_exceed_shards=("R", "relaunch corrected"))
    assert "8 of 16 readers idle" in line and "[R] relaunch corrected" in line


def test_no_alert_takes_no_line() -> None:
    bar = AlertBar()
    bar.show(views.on_cpu(), views.NOW)
    assert bar.get_content_height(SIZE, SIZE, 80) == 0
    bar.show(views.with_leftovers(), views.NOW)
    assert bar.get_content_height(SIZE, SIZE, 80) == 2


def test_the_last_keys_go_first_but_never_help() -> None:
    keys = [("q", "detach"), ("S", "stop"), ("l", "logs"), ("?", "help")]
    assert fitting(keys, 80) == keys
    assert [key for key, _ in fitting(keys, 27)] == ["q", "S", "?"]
    assert [key for key, _ in fitting(keys, 9)] == ["?"]


def test_the_model_is_said_as_asked_built_and_held_where_there_is_room() -> None:
    told = {"asked": 1_208_606_722, "built": 1_208_606_722, "held": [302_153_729, 302_149_632]}
    first, _ = header(views.on_l4s(**told), 120, 2)
    assert "asked 1,208,606,722 = built   each rank holds 302 M" in first
    assert "asked" not in "".join(header(views.on_l4s(**told), 60, 2))
    (one,) = header(views.on_l4s(**told), 250, 1)
    assert "asked 1,208,606,722 = built" in one
    assert "built 680" in header(views.on_l4s(built=680), 120, 2)[0]


def test_another_model_than_the_one_asked_for_is_loud_at_every_width() -> None:
    widget = Header()
    widget.show(views.on_l4s(asked=1_208_606_722, built=679_962_626), views.NOW)
    for width in (60, 80, 120, 200):
        lines = widget.draw(width, widget.get_content_height(SIZE, SIZE, width))
        assert "built 679,962,626, asked 1,208,606,722" in "".join(line.text for line in lines)
        assert ("679,962,626", "strong bad") in [span for line in lines for span in line.spans]


def test_what_has_ended_has_no_speed() -> None:
    for state in ("done", "stopped", "failed", "lost"):
        (line,) = header(views.on_l4s(state=state, eta_s=None), 200, 1)
        assert "bit/s" not in line and "MFU" not in line
        assert "loss 0.0891" in line and "1.030 bits/byte" in line


def test_of_an_end_it_is_said_what_could_not_be_written() -> None:
    word = events.Unwritten(rank=2, error="Disk quota exceeded", lost=7)
    ended = header(views.on_l4s(unwritten={2: word}, state="stopped"), 120, 2)[0]
    assert "7 records of rank 2 could not be written (Disk quota exceeded)" in ended
    assert "could not" not in header(views.on_l4s(unwritten={2: word}), 120, 2)[0]


def test_a_loss_that_is_not_finite_is_said_in_bad() -> None:
    widget = Header()
    widget.show(views.on_l4s(last=views.step(5, loss=math.inf)), views.NOW)
    spans = [span for line in widget.draw(160, 1) for span in line.spans]
    assert ("inf", "strong bad") in spans
