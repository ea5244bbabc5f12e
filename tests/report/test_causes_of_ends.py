"""What ended a training, told apart from what it survived and from what others say after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.report.model import Report
from tests.report.incident import errors, everything, finding, ids, report, write
from tests.report.test_attempts import ERROR, NCCL, OOM, steps

TRACEBACK = 'Traceback (most recent call last):\n  File "/x/train.py", line 3, in load\n    go()\n'
RETRIED = f"{TRACEBACK}ConnectionError: the hub does not answer\n"
BARE = "ValueError: is raised when a function gets an argument of the right type\n"
ASIDE = "Exception ignored in: <function __del__>\n"
DONE = "Training finished\n"
LOST = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/x/train.py", line 3, in f\n'
    "[rank0]: RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed "
    "by peer [127.0.0.1]:40838\n"
)
TORCHRUN = " 1 torch/distributed/elastic/multiprocessing/api.py:"
KILLED = (
    f"E0824 07:20:00.100000{TORCHRUN}869] failed (exitcode: -9) local_rank: 2 (pid: 102) of "
    "binary: /usr/bin/python\n"
)
CLOSING = f"W0824 07:20:00.100000{TORCHRUN}897] Sending process 100 closing signal SIGTERM\n"
STOPPED = (
    f"{TRACEBACK}torch.distributed.elastic.multiprocessing.api.SignalException: Process 99 got "
    "signal: 15\n"
)
REPORT = """\
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 100)
  traceback : Signal 15 (SIGTERM) received by PID 100
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  rank      : 6 (local_rank: 2)
  exitcode  : -9 (pid: 102)
  traceback : Signal 9 (SIGKILL) received by PID 102
============================================================
"""
BUS = (
    f"{TRACEBACK}RuntimeError: DataLoader worker (pid 4243) is killed by signal: Bus error. It is "
    "possible that dataloader's workers are out of shared memory.\n"
    "\nThe above exception was the direct cause of the following exception:\n\n"
    f"{TRACEBACK}RuntimeError: DataLoader worker (pid(s) 4243) exited unexpectedly\n"
)
WORKER_LOST = f"{TRACEBACK}RuntimeError: DataLoader worker (pid(s) 4243) exited unexpectedly\n"
DEEPSPEED = (
    "[2023-07-25 21:00:30,985] [INFO] [logging.py:69:log_dist] [Rank 0] step=10, skipped=2, "
    "lr=[5e-05], mom=[[0.9, 0.999]]\n"
)


def made_of(folder: Path, text: str) -> Report:
    return report(write(folder, "train.log", text))


@pytest.mark.parametrize(("end", "cause"), [(OOM, "out-of-memory"), ("Killed\n", "rank-died")])
def test_what_the_training_survived_does_not_hide_what_ended_it(
    end: str, cause: str, tmp_path: Path
) -> None:
    made = made_of(tmp_path, steps(1, 30) + RETRIED + steps(31, 60) + end)
    assert errors(made) == [cause]
    assert "went on to step 60" in finding(made, "handled").title
    assert "ConnectionError" not in finding(made, "class-of-cause").why
    assert "data" not in finding(made, "class-of-cause").title


def test_one_step_of_another_rank_does_not_make_a_failure_survived(tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 30) + ERROR + steps(31, 31))
    assert errors(made) == ["exception"] and "handled" not in ids(made)


def test_a_training_that_goes_on_after_its_word_of_an_end_has_not_finished(tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 30) + DONE + steps(31, 60) + ERROR)
    assert errors(made) == ["exception"]
    late = made_of(tmp_path, steps(1, 30) + DONE + steps(30, 30) + ASIDE + RETRIED)
    assert errors(late) == [] and "after it had finished" in finding(late, "handled").title


@pytest.mark.parametrize("raised", ["OSError: [Errno 28] No space left on device\n", OOM[9:]])
def test_a_model_that_could_not_be_saved_after_the_last_step_is_an_error(
    raised: str, tmp_path: Path
) -> None:
    runtime = "{'train_runtime': 12.3, 'train_samples_per_second': 10.0, 'epoch': 0.2}\n"
    made = made_of(tmp_path, steps(1, 30) + runtime + ASIDE + RETRIED + TRACEBACK + raised)
    (error,) = [one for one in made.findings if one.severity == "error"]
    assert error.id in ("exception", "out-of-memory") and "ConnectionError" not in error.title
    assert "the model, may be missing" in error.why
    assert "train_runtime" in error.evidence[-1].text
    kind = "hardware" if "OSError" in raised else "configuration"
    assert finding(made, "class-of-cause").title == f"Class of what is wrong: {kind}"


def test_a_failure_before_a_restart_was_not_survived(tmp_path: Path) -> None:
    restart = (
        f"I0824 07:20:00.7{TORCHRUN}943] [default] Worker group FAILED. 3/3 attempts left; will "
        "restart worker group\n"
    )
    made = made_of(tmp_path, steps(1, 30) + ERROR + restart + steps(21, 60) + DONE)
    assert "attempt 1 with ValueError" in finding(made, "exception").title


@pytest.mark.parametrize(
    "text",
    [
        steps(1, 30) + RETRIED + steps(31, 60) + DONE,
        OOM + steps(1, 30) + DONE,
        steps(1, 30) + DONE + ASIDE + RETRIED,
        steps(1, 30) + DONE + "Exception in thread Thread-3 (beat):\n" + RETRIED,
        steps(1, 30) + DONE + LOST,
        steps(1, 30) + BARE + steps(31, 32) + DONE,
    ],
)
def test_a_training_that_finished_has_no_error(text: str, tmp_path: Path) -> None:
    made = made_of(tmp_path, text)
    assert errors(made) == [] and "class-of-cause" not in ids(made)
    assert ("handled" in ids(made)) == (BARE not in text)


def test_a_line_that_only_looks_like_an_exception_is_quoted_and_is_no_cause(tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 30) + BARE)
    assert errors(made) == []
    assert "The last error in it is" in finding(made, "silent-end").why
    of_rank = made_of(tmp_path, steps(1, 30) + f"[rank2]: {BARE}")
    assert finding(of_rank, "exception").title.startswith("Rank 2 failed")
    with_report = made_of(tmp_path, steps(1, 30) + BARE + KILLED.replace("-9", "1"))
    assert "ValueError" in finding(with_report, "exception").title


def test_an_exception_before_anything_of_a_training_is_no_error_of_it(tmp_path: Path) -> None:
    made = made_of(tmp_path, RETRIED + "Starting training\n" + steps(1, 30) + OOM)
    assert errors(made) == ["out-of-memory"]
    assert "configuration" in finding(made, "class-of-cause").title


def test_a_lost_connection_is_an_echo_of_the_rank_that_failed_after_it(tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 5) + LOST + ERROR)
    assert finding(made, "exception").title.startswith("Rank 3 failed in the attempt")
    killed = made_of(tmp_path, steps(1, 5) + LOST + KILLED)
    assert errors(killed) == ["rank-died"]
    assert "from outside" in finding(killed, "class-of-cause").title
    assert "no signal" not in everything(killed)
    alone = made_of(tmp_path, steps(1, 5) + LOST)
    assert "why is not in the evidence" in finding(alone, "exception").why
    assert "cannot be told" in finding(alone, "class-of-cause").title


def test_a_time_out_that_was_printed_before_its_cause_is_its_echo(tmp_path: Path) -> None:
    missing = ERROR.replace("ValueError: a row without text", "FileNotFoundError: a.parquet")
    made = made_of(tmp_path, steps(1, 5) + NCCL + missing)
    assert errors(made) == ["exception"] and finding(made, "timeout").severity == "info"
    assert "data" in finding(made, "class-of-cause").title


def test_a_worker_that_a_bus_error_ended_is_the_cause(tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 5) + BUS)
    died = finding(made, "rank-died")
    assert died.title == "A DataLoader worker (pid 4243) ended in the attempt by SIGBUS"
    assert "/dev/shm" in died.why and "launcher" not in died.why
    assert "no signal" not in finding(made, "class-of-cause").why


def test_deepspeed_says_how_it_ended(tmp_path: Path) -> None:
    failed = (
        "[2023-07-25 21:10:00,985] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', "
        "'-u', 'train.py'] exits with return code = -9\n"
    )
    made = made_of(tmp_path, DEEPSPEED + failed)
    assert "SIGKILL" in finding(made, "rank-died").title and "silent-end" not in ids(made)
    done = "[2023-07-25 21:49:30,990] [INFO] [launch.py:347:main] Process 34 exits successfully.\n"
    assert made_of(tmp_path, DEEPSPEED + done).findings == []
    made = made_of(tmp_path, DEEPSPEED + done + failed)
    assert errors(made) == ["rank-died"], "another of its processes failed"


def test_the_last_error_of_a_silent_end_is_quoted_and_a_full_disk_is_hardware(
    tmp_path: Path,
) -> None:
    full = "2025-08-24 07:20:00,000 [ERROR] the checkpoint failed: No space left on device\n"
    made = made_of(tmp_path, steps(1, 5) + full)
    end = finding(made, "silent-end")
    assert "No space left on device" in end.why and "No error" not in end.why
    assert finding(made, "class-of-cause").title == "Class of what is wrong: hardware"
    raised = made_of(
        tmp_path, steps(1, 5) + TRACEBACK + "OSError: [Errno 28] No space left on device\n"
    )
    assert finding(raised, "class-of-cause").title == "Class of what is wrong: hardware"


def test_a_step_that_was_skipped_is_no_ruined_model(tmp_path: Path) -> None:
    inf = float("inf")
    made = made_of(tmp_path, steps(1, 2, inf) + steps(3, 5) + steps(6, 6, inf) + steps(7, 9) + DONE)
    skipped = finding(made, "loss-not-finite")
    assert skipped.severity == "warning"
    assert "at step 6, and is one again at step 7" in skipped.title
    assert "class-of-cause" not in ids(made)
    ruined = made_of(tmp_path, steps(1, 2, inf) + steps(3, 5) + steps(6, 9, float("nan")))
    assert finding(ruined, "loss-not-finite").severity == "error"
    assert "at step 6" in finding(ruined, "loss-not-finite").title


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (CLOSING + STOPPED, "by signal SIGTERM"),
        (f"{TRACEBACK}KeyboardInterrupt\n", "by Ctrl-C or SIGINT"),
        (f"{TRACEBACK}KeyboardInterrupt\n" + LOST, "by Ctrl-C or SIGINT"),
        (LOST + f"{TRACEBACK}KeyboardInterrupt\n" + WORKER_LOST, "by Ctrl-C or SIGINT"),
        (CLOSING + STOPPED + KILLED, "by signal SIGTERM"),
    ],
)
def test_a_training_that_was_stopped_has_not_failed(end: str, how: str, tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 5) + end)
    assert errors(made) == []
    assert finding(made, "stopped").title == f"The attempt was stopped {how}"
    assert finding(made, "class-of-cause").title == "Class of what is wrong: from outside"
    assert "launcher's report" not in everything(made)


def test_what_failed_before_somebody_stopped_the_rest_is_the_cause(tmp_path: Path) -> None:
    stop = f"{TRACEBACK}KeyboardInterrupt\n"
    made = made_of(tmp_path, steps(1, 5) + ERROR + stop + WORKER_LOST)
    assert errors(made) == ["exception"] and "stopped" not in ids(made)
    assert "ValueError" in finding(made, "exception").title


def test_slurms_word_about_its_time_limit_is_quoted(tmp_path: Path) -> None:
    limit = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2025-08-24T10:01:00 DUE TO TIME LIMIT ***\n"
    made = made_of(tmp_path, steps(1, 5) + CLOSING + STOPPED + limit)
    assert "DUE TO TIME LIMIT" in finding(made, "stopped").why


def test_a_closing_signal_is_no_cause_and_the_report_names_the_rank(tmp_path: Path) -> None:
    made = made_of(tmp_path, steps(1, 5) + CLOSING + KILLED + REPORT)
    assert finding(made, "rank-died").title == "Rank 6 (pid 102) ended in the attempt by SIGKILL"
    assert "launcher's report" in finding(made, "rank-died").why
    only = made_of(tmp_path, steps(1, 5) + CLOSING)
    assert errors(only) == [] and "silent-end" in ids(only)
    shell = made_of(tmp_path, steps(1, 5) + "Segmentation fault (core dumped)\n")
    assert "launcher's report" not in everything(shell)


def test_the_series_of_a_mixed_log_are_both_told(tmp_path: Path) -> None:
    lines = [steps(n + offset, n + offset) for n in range(20) for offset in (1, 500)]
    made = made_of(tmp_path, "".join(lines))
    assert "its series of steps end at 20 and 519" in finding(made, "silent-end").title
