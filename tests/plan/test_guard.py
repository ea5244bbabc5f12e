"""A lowered target is told apart from a number that is one rank's share."""

from __future__ import annotations

import pytest

from bitwatch.plan import guard, parameters
from bitwatch.plan.guard import Target
from bitwatch.plan.result import ModelPlan

LARGE, SMALL = 1_208_606_722, 679_962_626
FLAT = 169_990_657  # ceil(SMALL / 4), as the incident's log has it


def target(built: int, ranks: int = 4, **facts: object) -> Target:
    return Target(where="attempt 1 of this run", built=built, ranks=ranks, **facts)  # type: ignore[arg-type]


def found(now: int, *before: Target, asked: bool = True) -> list[tuple[str, str, str]]:
    model = ModelPlan(asked=now if asked else None, built=None if asked else now)
    return [(p.id, p.severity, p.text) for p in guard.about_target(model, 4, before)]


def test_the_incidents_second_target_is_lowered_and_its_third_is_a_share() -> None:
    ((id_, severity, text),) = found(SMALL, target(LARGE, asked=LARGE))
    assert (id_, severity) == ("target-lowered", "warning")
    assert "679,962,626" in text and "1,208,606,722 of attempt 1" in text
    assert "43.7 % fewer" in text and "never lowers a target by itself" in text
    ((id_, _, text),) = found(FLAT, target(SMALL, asked=SMALL))
    assert id_ == "count-is-shard"
    assert "679,962,626 / 4 rounded up" in text and "nothing was scaled down" in text


def test_a_rule_for_each_way_of_sharding() -> None:
    held = (302_153_729, 302_153_729, 302_149_632, 302_149_632)
    large = target(LARGE, held=held)
    assert "rank 2 of 4 holds" in guard.share_of(302_149_632, large)
    assert "flat shard" in guard.share_of(parameters.flat_shard(LARGE, 4), large)
    assert guard.share_of(302_151_682, large) == ""
    assert guard.share_of(LARGE, target(LARGE, ranks=1)) == ""  # one rank holds the whole


@pytest.mark.parametrize("now", [LARGE, LARGE + 1])
def test_the_same_or_more_is_no_alert(now: int) -> None:
    assert found(now, target(LARGE, asked=LARGE)) == []


def test_a_promise_that_is_a_share_of_the_model_itself_is_an_error() -> None:
    model = ModelPlan(asked=FLAT, built=SMALL, held=[FLAT] * 4)
    (problem,) = guard.about_target(model, 4, [])
    assert (problem.id, problem.severity) == ("count-is-shard", "error")
    assert "679,962,626" in problem.next


def test_it_is_measured_against_the_largest_before_and_lasts() -> None:
    before = [target(LARGE, asked=LARGE), target(SMALL, asked=SMALL)]
    ((id_, _, text),) = found(SMALL, *before)
    assert id_ == "target-lowered" and "1,208,606,722" in text


def test_a_smaller_shape_that_nobody_promised_is_only_said() -> None:
    ((id_, severity, _),) = found(1000, target(2000), asked=False)
    assert (id_, severity) == ("target-lowered", "info")
