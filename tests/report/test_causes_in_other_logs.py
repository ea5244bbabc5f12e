"""What ended a training that has several logs: of ranks, of rotations, or of another training."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.incident import errors, everything, finding, ids, report, write
from tests.report.test_attempts import ERROR, NCCL, steps
from tests.report.test_causes_of_ends import DONE, LOST, RETRIED


@pytest.mark.parametrize("folder", ["rank{}", "none_x1/attempt_0/{}"])
def test_a_time_out_of_one_ranks_log_is_an_echo_of_another_ranks_error(
    folder: str, tmp_path: Path
) -> None:
    for rank in range(3):
        place = tmp_path / folder.format(rank)
        place.mkdir(parents=True)
        write(place, "stderr.log", steps(1, 5) + (NCCL if rank else ERROR))
    made = report(str(tmp_path))
    assert errors(made) == ["exception"]
    assert finding(made, "timeout").severity == "info"
    assert "No earlier error" not in everything(made)


def test_an_error_of_a_log_with_another_name_is_told_and_not_taken_for_the_cause(
    tmp_path: Path,
) -> None:
    begins = "2025-08-24 07:14:00,000 [INFO] step 1 loss 2.5\n"
    ends = "2025-08-24 07:50:00,000 [INFO] the end\n"
    for names in (("alice.log", "bob.log"), ("run1.log", "run2.log")):
        for timed in (False, True):
            texts = [begins + end + ends if timed else steps(1, 5) + end for end in (NCCL, ERROR)]
            made = report(*(write(tmp_path, *log) for log in zip(names, texts, strict=True)))
            alone = finding(made, "timeout")
            if timed and names[0] == "run1.log":
                assert alone.severity == "info" and "is an echo" in alone.title
                continue
            assert alone.severity == "error" and "No earlier error is in this log" in alone.why
            which = "Another log of that time" if timed else "Another log"
            assert f'{which} has one: "[rank3]: ValueError' in alone.why
            assert "If it is of the same training, this is its echo" in alone.why


def test_numbers_after_the_names_of_two_ranks_logs_are_no_rotations(tmp_path: Path) -> None:
    lost = LOST.replace("RuntimeError", "torch.distributed.DistBackendError")
    missing = ERROR.replace("ValueError: a row without text", "FileNotFoundError: a.parquet")
    for failed in (missing, steps(1, 5) + missing):
        ours = write(tmp_path, "out.2", failed), write(tmp_path, "out.0", steps(1, 6) + lost)
        made = report(*ours)
        assert "handled" not in ids(made)
        assert any("FileNotFoundError" in one.title for one in made.findings)
        assert "data" in finding(made, "class-of-cause").title


def test_steps_that_go_on_in_the_next_rotation_show_what_was_survived(tmp_path: Path) -> None:
    older = write(tmp_path, "train.log.1", steps(1, 30) + RETRIED)
    made = report(older, write(tmp_path, "train.log", steps(31, 60) + DONE))
    assert errors(made) == [] and "went on to step 60" in finding(made, "handled").title
    again = report(older, write(tmp_path, "train.log", steps(1, 60) + DONE))
    assert errors(again) == ["exception"] and "handled" not in ids(again)
