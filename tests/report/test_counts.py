"""What a printed number of parameters is held to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.plan import parameters
from bitwatch.report import standard_model
from bitwatch.report.standard_model import Shape
from tests.report.incident import everything, finding, ids, report, write

TARGET = "2025-08-24 07:14:00,709 [INFO] Target: {} parameters\n"
GPUS = "2025-08-24 07:14:00,710 [INFO] Hardware: {}x NVIDIA L4 GPUs\n"
BUILT = "2025-08-24 07:14:09,037 [INFO] ✅ Model created with {} parameters ({})\n"


@pytest.mark.parametrize("count", ["302,151,681", "302,153,729", "302,149,632"])
def test_a_right_run_of_1_21_billion_is_not_called_lowered_or_differing(
    count: str, tmp_path: Path
) -> None:
    log = TARGET.format("1,208,606,722") + GPUS.format(4) + BUILT.format(count, "0.30B")
    made = report(write(tmp_path, "right.log", log))
    assert finding(made, "count-is-shard").severity == "info"
    assert not {"target-lowered", "parameters-differ"} & set(ids(made))
    assert not any(one.severity == "error" for one in made.findings)


def test_the_whole_count_is_what_was_asked_for(tmp_path: Path) -> None:
    log = TARGET.format("679,962,626") + GPUS.format(4) + BUILT.format("679,962,626", "0.68B")
    made = report(write(tmp_path, "whole.log", log))
    assert not {"target-lowered", "parameters-differ", "count-is-shard"} & set(ids(made))
    assert any("built the model that was asked for" in said for said in made.verdict.shown)


def test_without_a_number_of_ranks_the_one_that_fits_is_named(tmp_path: Path) -> None:
    log = TARGET.format("679,962,626") + BUILT.format("84,995,329", "0.08B")
    share = finding(report(write(tmp_path, "log", log)), "count-is-shard")
    assert "on 8 ranks" in share.title and "does not say; 8 fit" in share.why


def test_a_count_that_fits_nothing_is_another_model(tmp_path: Path) -> None:
    log = TARGET.format("679,962,626") + GPUS.format(4) + BUILT.format("169,990,600", "0.17B")
    made = report(write(tmp_path, "log", log))
    differs = finding(made, "parameters-differ")
    assert differs.severity == "error" and [one.line for one in differs.evidence] == [1, 3]
    assert "architecture" in finding(made, "class-of-cause").title


def test_a_raised_target_is_no_lowered_one(tmp_path: Path) -> None:
    later = TARGET.format("1,208,606,722").replace("07:14", "08:14")
    made = report(write(tmp_path, "log", TARGET.format("679,962,626") + later))
    assert "target-lowered" not in ids(made)
    assert "from 679,962,626 to 1,208,606,722" in finding(made, "target-raised").title


def test_a_log_that_says_itself_why_the_target_changed_is_quoted(tmp_path: Path) -> None:
    says = "2025-08-24 07:15:01,000 [WARNING] Out of room, falling back to a smaller model\n"
    later = TARGET.format("679,962,626").replace("07:14", "07:15")
    made = report(write(tmp_path, "log", TARGET.format("1,208,606,722") + says + later))
    lowered = finding(made, "target-lowered")
    assert "the log says how" in lowered.title and "falling back to a smaller model" in lowered.why
    assert [one.line for one in lowered.evidence] == [1, 2, 3]
    assert "by whom" not in everything(made)


def test_the_shapes_agree_with_the_incidents_formula() -> None:
    shape = Shape(2048, 24, 8192)
    assert shape.built() == 1_208_606_722
    assert parameters.held(shape.tensors(), 4) == [302_153_729] * 2 + [302_149_632] * 2
    assert standard_model.shape_of(None, 679_962_626) == Shape(1536, 24, 6144)
    assert standard_model.shape_of(None, 679_962_627) is None
