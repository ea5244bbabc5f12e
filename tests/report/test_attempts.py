"""Where the attempts of a log begin, and how they ended, told from real lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bitwatch.report import attempts, files
from bitwatch.report.facts import Story
from tests.report.incident import LISTED, at, everything, finding, ids, report, write

STEP = "step: {0}  loss: {1:.4f}  grad_norm: 1.2  memory: 10.1GiB(44%)  tps: 1,200  tflops: 10.1  mfu: 12.3%\n"
OOM = (
    "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a "
    "total capacity of 22.03 GiB of which 1.00 GiB is free.\n"
)
NCCL = (
    "[rank0]:[E824 07:30:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)
ERROR = (
    "[rank3]: Traceback (most recent call last):\n"
    '[rank3]:   File "train.py", line 12, in step\n'
    "[rank3]: ValueError: a row without text\n"
)


def steps(first: int, last: int, loss: float = 3.0) -> str:
    return "".join(STEP.format(number, loss) for number in range(first, last + 1))


def told(folder: Path, text: str) -> Story:
    (story,) = attempts.stories(files.gather([write(folder, "train.log", text)]).logs)
    return story


def test_a_step_number_that_falls_back_begins_an_attempt(tmp_path: Path) -> None:
    story = told(tmp_path, steps(1, 40) + steps(21, 60))
    assert [attempt.begins.number for attempt in story.attempts] == [1, 41]
    assert story.attempts[1].why == "its step number falls back"
    last = [attempt.last_step for attempt in story.attempts]
    assert [said.values["step"] for said in last if said] == [40, 60]


def test_ranks_that_print_the_same_lines_are_one_attempt(tmp_path: Path) -> None:
    target = "2025-08-24 07:14:0{},000 [INFO] Target: 1,000 parameters\n"
    text = "".join(target.format(rank) for rank in range(4))
    text += "".join(STEP.format(number, 3.0) * 4 for number in range(1, 20))
    assert len(told(tmp_path, text).attempts) == 1


def test_two_trainings_in_one_log_are_said_to_be_mixed_and_not_compared(tmp_path: Path) -> None:
    lines = ["2025-08-24 07:14:00,000 [INFO] Target: 2,000 parameters\n"]
    lines.append("2025-08-24 07:15:00,000 [INFO] Target: 1,000 parameters\n")
    lines += [STEP.format(n + offset, 3.0) for n in range(20) for offset in (1, 500)]
    made = report(write(tmp_path, "both.log", "".join(lines)))
    assert "two-trainings" in ids(made)
    assert "target-lowered" not in ids(made)
    assert "Two trainings write into one log" in everything(made)


def test_the_first_error_is_the_cause_and_a_later_time_out_its_echo(tmp_path: Path) -> None:
    made = report(write(tmp_path, "train.log", steps(1, 5) + ERROR + NCCL))
    cause = finding(made, "exception")
    assert cause.title.startswith("Rank 3 failed in the attempt with ValueError")
    assert "a row without text" in cause.title
    assert "is an echo" in finding(made, "timeout").title
    assert finding(made, "timeout").severity == "info"
    assert "code" in finding(made, "class-of-cause").title


def test_a_time_out_alone_has_a_cause_that_cannot_be_told(tmp_path: Path) -> None:
    made = report(write(tmp_path, "train.log", steps(1, 5) + NCCL))
    alone = finding(made, "timeout")
    assert alone.severity == "error" and alone.title.startswith("Rank 0 waited in allreduce")
    assert "No earlier error is in the evidence" in alone.why
    assert "cannot be told" in finding(made, "class-of-cause").title


def test_out_of_memory_is_a_matter_of_configuration(tmp_path: Path) -> None:
    made = report(write(tmp_path, "train.log", steps(1, 5) + OOM))
    assert "GPU 1 ran out of memory" in finding(made, "out-of-memory").title
    assert "2,048 MiB" in finding(made, "out-of-memory").title
    assert finding(made, "class-of-cause").title == "Class of what is wrong: configuration"
    assert "silent-end" not in ids(made)


def test_an_attempt_killed_from_outside_is_not_blamed_on_anything(tmp_path: Path) -> None:
    failed = (
        "E0824 07:20:00.000000 123 torch/distributed/elastic/multiprocessing/api.py:869] failed "
        "(exitcode: -9) local_rank: 1 (pid: 42) of binary: /usr/bin/python\n"
    )
    made = report(write(tmp_path, "train.log", steps(1, 5) + failed))
    died = finding(made, "rank-died")
    assert "SIGKILL comes from outside" in died.why and "pid 42" in died.title
    assert "from outside" in finding(made, "class-of-cause").title


def test_a_loss_that_is_no_number_is_found_where_it_begins(tmp_path: Path) -> None:
    text = steps(1, 5) + steps(6, 9, float("nan"))
    made = report(write(tmp_path, "train.log", text))
    assert [one.line for one in finding(made, "loss-not-finite").evidence] == [6]
    assert "at step 6" in finding(made, "loss-not-finite").title


def test_a_log_that_is_still_written_may_go_on(tmp_path: Path) -> None:
    young = report(write(tmp_path, "train.log", steps(1, 5), modified=None))
    assert finding(young, "silent-end").severity == "info"
    assert "may well go on" in finding(young, "silent-end").why
    old = report(write(tmp_path, "train.log", steps(1, 5), time.time() - 7200))
    assert finding(old, "silent-end").severity == "warning"
    assert "its last step is 5" in finding(old, "silent-end").title


def test_a_training_that_finished_is_not_asked_for_a_cause(tmp_path: Path) -> None:
    text = "{'loss': 2.3, 'grad_norm': 1.2, 'learning_rate': 4.5e-05, 'epoch': 0.1}\n"
    text += "{'train_runtime': 12.3, 'train_samples_per_second': 10.0, 'epoch': 0.2}\n"
    made = report(write(tmp_path, "train.log", text))
    assert made.findings == []
    assert made.verdict.shown[0].endswith("is in the log; it says itself that it finished.")


@pytest.mark.parametrize("zone", [0, 7200])
def test_clocks_that_disagree_are_said(zone: int, tmp_path: Path) -> None:
    line = "2025-08-24 07:14:00,709 [INFO] Target: 1,000 parameters\n"
    made = report(write(tmp_path, "a.log", line, at("07:14:00") - zone))
    assert ("clocks-disagree" in ids(made)) == bool(zone)
    if zone:
        assert "as in another time zone" in finding(made, "clocks-disagree").why
        back = line.replace("07:14", "06:14")
        made = report(write(tmp_path, "b.log", line + back))
        assert "the time goes back from line 1 to 2" in finding(made, "clocks-disagree").why


def test_a_process_that_began_behind_its_listing_is_a_clock_that_disagrees(tmp_path: Path) -> None:
    row = "13803  Sun Aug 24 09:14:02 2025 python -c from multiprocessing.spawn import spawn_main\n"
    made = report(write(tmp_path, "ps", row, LISTED))
    assert "process 13803 began after the listing" in finding(made, "clocks-disagree").why
