"""The view as lines: each thing said once, aligned, literal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from bitwatch.lines import Lines, next_command, summary
from bitwatch.record import events
from bitwatch.record.view import View

PLAN: dict[str, Any] = {
    "model": {"asked": 10, "built": 10, "held": [5, 5]},
    "data": {"num_shards": None},
}


def step(number: int, **facts: Any) -> events.Step:
    facts = {"loss": 0.5, "bits_per_byte": 5.77, "step_s": 0.5, "data_s": 0.05, **facts}
    return events.Step(step=number, t=100.0 + number, **facts)


def seen(**facts: Any) -> View:
    facts = {"device": "cpu", "attempt": 1, "attempt_started": 99.0, "plan": PLAN, **facts}
    return View(run="r", name="demo", state="running", ranks=2, steps=2000, **facts)


def test_nothing_is_said_twice() -> None:
    lines = Lines(Path("/runs/r"))
    alert = events.Alert(id="idle-reader", text="two idle", next="fewer workers")
    first = list(lines.new(seen(recent=[step(1)], alerts=[alert])))
    assert first[0] == "bitwatch  demo · r"
    assert sum("two idle" in line for line in first) == 1
    again = list(lines.new(seen(recent=[step(1)], alerts=[alert])))
    assert again == []
    evaluation = events.Evaluation(step=2, bits_per_byte=3.0, t=102.5)
    old = events.Evaluation(step=1, bits_per_byte=9.0, t=50.0)
    more = list(lines.new(seen(recent=[step(1), step(2), step(3)], evaluations=[old, evaluation])))
    assert [line.split()[0] for line in more] == ["cleared", "2/2,000", "validation", "3/2,000"]
    assert "9.000" not in "".join(more)  # of an earlier attempt: history


def test_every_step_line_has_the_same_columns() -> None:
    lines = Lines(Path("/runs/r"))
    odd = [
        step(1),
        step(20, loss=math.nan, bits_per_byte=math.inf, grad_norm=None, tokens_per_s=None),
        step(300, mfu=0.35, learning_rate=1e-7, tokens_per_s=2.5e6, skipped=0),
    ]
    rows = [line for line in lines.new(seen(recent=odd)) if "/2,000" in line]
    assert len({len(row) for row in rows}) == 1
    assert "nan" in rows[1]
    assert "inf" in rows[1]


def test_on_a_gpu_its_memory_and_utilisation_are_shown() -> None:
    gpus = events.Gpus(gpus=[events.Gpu(index=0, memory_used_mib=16 * 1024.0)])
    view = seen(device="cuda", gpus=gpus, recent=[step(1, mfu=0.35)])
    (heading, row) = [
        line for line in Lines(Path("/r")).new(view) if "MFU" in line or "35 %" in line
    ]
    assert "16.0 GiB" in row
    assert row.index("35 %") + 4 == heading.index("MFU") + 3


def test_hostile_text_is_literal() -> None:
    alert = events.Alert(id="x", text="a\x1b[2J\n", next="\x07")
    view = seen(alerts=[alert], epoch=events.Epoch(step=1, t=100.0, text="\x1b]0;x\x07"))
    lines = list(Lines(Path("/r")).new(view))
    assert any("a\\x1b[2J" in line for line in lines)
    for line in lines:
        assert "\x1b" not in line
        assert "\x07" not in line
        assert "\n" not in line


def test_the_summary_ends_with_the_command_to_type_next() -> None:
    done = View(run="r", state="done", step=10, steps=10)
    assert list(summary(done))[-1].endswith("bitwatch run --resume r --set train.steps=20")
    failed = View(run="r", state="failed", cause="rank 1 was killed", step=3, steps=10)
    assert "rank 1 was killed" in "\n".join(summary(failed))
    assert next_command(failed) == "bitwatch logs r"
    assert next_command(View(run="r", state="stopped")) == "bitwatch run --resume r"


def test_of_an_end_no_speed_is_told_but_what_could_not_be_written() -> None:
    lacking = {0: events.Unwritten(error="Disk quota exceeded", lost=9)}
    ended = seen(last=step(10, tokens_per_s=2.7e3), unwritten=lacking)
    ended.state = "stopped"
    said = "\n".join(summary(ended))
    assert "5.770 bits per byte\n" in said and "bits/s" not in said
    assert "record       9 records of rank 0 could not be written (Disk quota exceeded)" in said


def test_a_narrow_terminal_gets_narrow_lines() -> None:
    long = "eight of sixteen readers idle, and every rank reads everything " * 3
    alert = events.Alert(id="x", text=long.strip(), next=long.strip())
    note = events.Note(text="step-40 is damaged", t=100.5)
    facts: dict[str, Any] = {"recent": [step(1, skipped=0)], "alerts": [alert], "notes": [note]}
    drawn = list(Lines(Path("/r"), 80).new(seen(**facts)))
    assert max(map(len, drawn)) <= 80
    assert sum("readers idle" in line for line in drawn) > 2
    assert any("damaged" in line for line in drawn)
    heading = next(line for line in drawn if "bits/byte" in line)
    row = next(line for line in drawn if "/2,000" in line)
    assert len(heading) == len(row)
    assert "gradient" not in heading
