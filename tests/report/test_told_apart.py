"""What looks like a defect and is none: parts of a model, epochs, neighbours, living processes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bitwatch.report import attempts, conclude, files
from bitwatch.report.facts import Gathered, ListingSeen
from tests.report.incident import at, everything, finding, ids, report, write

TIME = "2025-08-24 07:{}:00,000 [INFO] "
TARGET = TIME.format("14") + "Target: {} parameters\n"
LATER = TIME.format("16") + "Target: {} parameters\n"
BUILT = TIME.format("15") + "{} parameters: {}\n"
DONE = TIME.format("40") + "Training finished in 3 s\n"
HEADER = "UID          PID    PPID  C STIME TTY          TIME CMD\n"
TORCHRUN = (
    "u          13000       1  0 07:14 pts/0    00:00:01 python torchrun --nproc_per_node=4 t.py\n"
)
RANK = "u          {}   13000  0 07:{} ?        00:00:00 python t.py --data x\n"
WHOLE = "1,208,606,722"


def steps(*numbers: int, text: str = "step {} loss 2.5\n") -> str:
    return "".join(text.format(number) for number in numbers)


def test_a_number_of_something_else_is_no_target(tmp_path: Path) -> None:
    for other in ("100,000 steps", "10,000,000,000 tokens", "100 M samples", "85.5%"):
        log = f"Target: {other}\nNumber of parameters: {WHOLE}\n" + steps(1, 2) + DONE
        made = report(write(tmp_path, "train.log", log))
        assert made.findings == [] and f"{WHOLE} parameters, as counted" in everything(made), other
    for same in (WHOLE, f"{WHOLE}, on 4 GPUs", "1,208,606,722 params (1.21B) in all", "1.21B"):
        made = report(write(tmp_path, "train.log", f"Target: {same}\n"))
        assert "The attempt (1,2" in everything(made), same


def test_parts_of_a_model_are_no_other_model(tmp_path: Path) -> None:
    parts = [("Embedding", "4,096"), ("Encoder", "604,303,361"), ("layer 7", "50,358,272")]
    named = "".join(BUILT.format(*part) for part in parts)
    whole = BUILT.format("Model", WHOLE)
    for log in (named, named + whole, whole + BUILT.format("Trainable", "300,000")):
        made = report(write(tmp_path, "train.log", TARGET.format(WHOLE) + log + DONE))
        assert made.findings == [], log
    several = "".join(BUILT.format("Number of", f"{n},000,000") for n in (100, 300, 200))
    made = report(write(tmp_path, "train.log", TARGET.format(WHOLE) + several))
    assert "has 300,000,000 parameters" in finding(made, "parameters-differ").title


def test_a_rounded_target_is_met_and_not_changed_by_an_exact_one(tmp_path: Path) -> None:
    log = TARGET.format("1.21B") + BUILT.format("Model", WHOLE) + LATER.format(WHOLE) + DONE
    made = report(write(tmp_path, "train.log", log))
    assert "built the model that was asked for" in everything(made)
    assert not {"parameters-differ", "target-lowered"} & set(ids(made))
    other = TARGET.format("1.21B") + BUILT.format("Model", "679,962,626")
    made = report(write(tmp_path, "train.log", other))
    assert finding(made, "parameters-differ").severity == "warning"


def test_what_may_be_a_living_process_is_not_to_be_ended(tmp_path: Path) -> None:
    says = TIME.format("15") + "[WARNING] falling back to a smaller model\n"
    log = TARGET.format(WHOLE) + says + LATER.format("679,962,626") + steps(1, 2)
    log = log.replace("07:14:00,000", "07:14:00,709")
    path, listed = write(tmp_path, "train.log", log), at("08:00:00")
    ps = HEADER + TORCHRUN + RANK.format(13803, 14)
    made = report(path, write(tmp_path, "ps.txt", ps, listed))
    left = finding(made, "leftovers")
    assert "started with attempt 1 are still there" in left.title and left.severity == "info"
    assert "may have gone on with attempt 2" in left.why and "within 1 m 00 s of" in left.why
    assert "by their pid" not in left.next and "End nothing before" in left.next
    assert not any(said.startswith("Who or what changed") for said in made.verdict.unknown)
    # With ranks of the second attempt the old ones are left over, and torchrun may still live.
    made = report(path, write(tmp_path, "ps.txt", ps + RANK.format(14000, 16), listed))
    over, alive = sorted(
        (one for one in made.findings if one.id == "leftovers"), key=lambda one: one.severity
    )[::-1]
    assert over.title.endswith("is left over (rank): process 13803")
    assert alive.title.endswith("is still there (agent): process 13000")


def test_two_logs_are_one_training_only_with_a_reason(tmp_path: Path) -> None:
    alice = TARGET.format(WHOLE) + steps(1, 2)
    bob = write(tmp_path, "bob.log", LATER.format("124,439,808") + steps(1, 2))
    finished = write(tmp_path, "alice.log", alice + TIME.format("15") + "Training finished\n")
    assert "target-lowered" not in ids(report(finished, bob))
    stopped = write(tmp_path, "alice.log", alice + TIME.format("15") + "Learning on\n")
    assert "target-lowered" not in ids(report(stopped, bob))
    ps = write(tmp_path, "ps.txt", HEADER + RANK.format(13803, 14))
    assert "target-lowered" in ids(report(stopped, bob, ps))
    rotated = write(tmp_path, "bob.log.1", alice + TIME.format("15") + "Training finished\n")
    assert "target-lowered" in ids(report(rotated, bob))


def test_steps_that_each_epoch_counts_anew_are_no_attempts(tmp_path: Path) -> None:
    epoch = steps(*range(0, 100, 10))
    log = "Starting training\n" + epoch + steps(0, 10, text="validation step {} loss 2.6\n") + epoch
    made = report(write(tmp_path, "train.log", log + epoch + DONE))
    assert "attempts" not in ids(made)
    assert any("epochs and evaluations that count their own" in s for s in made.verdict.unknown)
    for sign in ("Target: 1,000 parameters\n", "Number of parameters: 123,000\n"):
        made = report(write(tmp_path, "train.log", epoch + sign + epoch))
        assert finding(made, "attempts").title == "2 attempts, not one", sign
    timed = TIME.format("{}") + "step 0 loss 2.5\n"
    dated = "".join(timed.format(minute).replace("step 0", f"step {step}")
                    for minute, step in (("10", 0), ("11", 1), ("12", 2), ("30", 0)))  # fmt: skip
    (story,) = attempts.stories(files.gather([write(tmp_path, "train.log", dated)]).logs)
    assert [attempt.begins.number for attempt in story.attempts] == [1, 4]


def test_a_folder_whose_name_begins_alike_is_another(tmp_path: Path) -> None:
    (tmp_path / "runA").mkdir()
    (tmp_path / "runA" / "notes.md").write_text("x")
    (tmp_path / "runA2").mkdir()
    write(tmp_path / "runA2", "train.log", steps(1, 2) + DONE)
    write(tmp_path / "runA2", "results.json", "{}")
    write(tmp_path / "runA2", "model.pt", "x")
    made = report(str(tmp_path / "runA"), str(tmp_path / "runA2"))
    assert "absence-contradicted" not in ids(made)


def test_an_hour_that_comes_twice_is_the_end_of_summer_time(tmp_path: Path) -> None:
    lines = [f"2025-10-26 0{h}:{m:02}:00,000 [INFO] step {s} loss 2.0\n" for s, (h, m) in
             enumerate([(1, 58), (1, 59), (1, 0), (1, 1)])]  # fmt: skip
    made = report(write(tmp_path, "train.log", "".join(lines), at("03:00:00") + 70 * 86400))
    clock = finding(made, "clocks-disagree")
    assert clock.severity == "info" and "when summer time ends" in clock.why


def test_thousands_of_attempts_and_impossible_numbers_take_no_time(tmp_path: Path) -> None:
    log = "".join(
        f"Target: {10**9 + 1000 * n:,} parameters\nModel has {10**6 + n:,} parameters\n"
        "step 1 loss 2.0\n"
        for n in range(1000)
    )
    began = time.process_time()
    made = report(write(tmp_path, "many.log", log))
    hardware = "Hardware: 1000000x NVIDIA L4 GPUs\n"
    workers = "Too many dataloader workers: 999999 (max is dataset.num_shards=2). Stopping 2.\n"
    odd = report(write(tmp_path, "odd.log", f"Target: {WHOLE} parameters\n" + hardware + workers))
    assert time.process_time() - began < 30  # it was minutes
    assert "more attempts followed" in everything(made)
    assert "1,000,000 ranks" not in everything(odd)


OWN = """\
[[line]]
name = "ours"
what = "target"
pattern = 'we want (?P<parameters>[\\d,]+) of them'
sample = "we want 1,000 of them"

[[line]]
name = "ours"
what = "step"
pattern = 'batch (?P<step>\\d+) cost (?P<loss>[\\d.]+)'
sample = "batch 12 cost 3.21"
"""


def test_a_report_hears_the_dialects_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(files, "FLOOD_LINES", 1000)
    (tmp_path / "bitwatch").mkdir()
    own = tmp_path / "bitwatch" / "dialects.toml"
    own.write_text(OWN)
    quiet = "a line of nothing\n" * 3000
    log = f"we want {WHOLE} of them\n" + quiet + steps(1, 2, text="batch {} cost 2.5\n")
    path = write(tmp_path, "train.log", log)
    made = report(path)
    assert f"({WHOLE} parameters)" in everything(made) and "its last step is 2" in everything(made)
    assert any("2 own dialects heard" in note for note in made.notes)
    assert not any("says so much" in note for note in made.notes)
    flood = steps(*range(5000), text="batch {} cost 2.5\n")
    made = report(write(tmp_path, "flood.log", flood + log + quiet))
    assert f"({WHOLE} parameters)" in everything(made)
    assert any("says so much" in note for note in made.notes)
    own.write_text(OWN.replace("ours", "", 1))
    made = report(path)
    assert any("line 1: name: is empty" in note for note in made.notes)
    own.unlink()
    assert made.findings == [] and not any("own dialect" in note for note in report(path).notes)


def test_a_listing_without_processes_joins_nothing_and_breaks_nothing() -> None:
    assert conclude.conclude(Gathered(listings=[ListingSeen(path="ps")])).findings == []
