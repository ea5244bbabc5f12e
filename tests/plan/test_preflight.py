"""What `make_plan` concludes, and the sentences in which it says it."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from bitwatch import config as configuration
from bitwatch.plan import preflight
from bitwatch.plan.facts import (
    DataFacts,
    DeviceFacts,
    FactError,
    Facts,
    Gpu,
    ModelFacts,
    Parameter,
    Shard,
    merge,
)
from bitwatch.plan.result import Plan, Problem

L4 = Gpu(name="NVIDIA L4", memory_mib=23_034)


def config(name: str = "demo", *changes: str) -> configuration.Config:
    return configuration.load(configuration.bundled(f"configs/{name}.toml"), changes)


def facts(
    shards: list[Shard] | None = None, parameters: int = 100, gpus: int = 0, **fields: Any
) -> Facts:
    return Facts(
        model=ModelFacts(parameters=[Parameter(name="w", shape=[parameters])]),
        data=DataFacts(num_shards=len(shards), shards=shards) if shards else None,
        devices=DeviceFacts(gpus=[L4] * gpus),
        **fields,
    )


def shards(*rows: int, text_bytes: int | None = 1000) -> list[Shard]:
    return [
        Shard(name=f"{i}.parquet", rows=n, row_groups=n, text_bytes=text_bytes and n * text_bytes)
        for i, n in enumerate(rows)
    ]


def problem(plan: Plan, id_: str) -> Problem:
    (found,) = [problem for problem in plan.problems if problem.id == id_]
    return found


def ids(plan: Plan) -> list[str]:
    return [problem.id for problem in plan.problems]


def test_the_incident_is_seen_before_the_launch() -> None:
    incident = [
        Shard(name=name, rows=900_675, row_groups=901, text_bytes=270_000_000)
        for name in ("0.parquet", "1.parquet")
    ]
    wanted = config("1b21", "data.sharding=as-is")
    plan = preflight.make_plan(wanted, facts(incident, 1_208_606_722, gpus=4))
    data = plan.data
    assert plan.verdict == "warning"
    assert (data.num_shards, data.row_groups, data.rows) == (2, 1802, 1_801_350)
    assert (data.ranks, data.workers_per_rank, data.readers) == (4, 4, 16)
    assert (data.readers_busy, data.readers_idle) == (8, 8)
    assert (data.mode, data.split) == ("as-is", "examples")
    assert (data.copies, data.read_amplification) == (1, 4)
    assert ids(plan) == ["workers-exceed-shards", "every-rank-reads-everything"]
    assert problem(plan, "workers-exceed-shards").text == (
        "8 of 16 readers idle and every rank reads everything: 2 shards for 4 ranks x 4 workers. "
        "Idle workers are started for nothing, and each rank decodes all data and drops 3 of 4 rows. "
        "This alone does not hang a run."
    )
    everything = problem(plan, "every-rank-reads-everything")
    assert "each rank decodes all data and drops 3 of 4 rows" in everything.text.lower()
    assert "16 files" in everything.next
    # Nobody looked at the row groups or at the disk: only what needs neither is offered.
    assert [one.id for one in plan.corrections] == ["fewer-workers", "more-files"]


def test_fewer_workers_where_the_surplus_only_idles() -> None:
    plan = preflight.make_plan(config("demo"), facts(shards(1354, 1354)))
    correction, more = plan.corrections
    assert (more.id, more.recommended) == ("more-files", False)
    assert (correction.id, correction.recommended) == ("fewer-workers", True)
    assert (correction.workers_per_rank, correction.num_shards) == (1, 2)
    assert (correction.readers_busy, correction.readers_idle, correction.copies) == (2, 0, 1)
    assert (correction.resume, correction.prepare_s) == ("new-epoch", 0)
    assert "--set data.workers=1" in problem(plan, "workers-exceed-shards").next


def test_a_good_plan_is_ok() -> None:
    settings = config("demo", "data.workers=1", "train.batch=16", "train.micro_batch=8")
    plan = preflight.make_plan(settings, facts(shards(1354, 1354)))
    assert (plan.verdict, plan.problems, plan.corrections) == ("ok", [], [])
    # 2 x 1,354 rows of 1,000 bytes; a sequence is 32 bytes, a step 16 of them.
    assert plan.data.steps_per_epoch == 1_354_000 // 32 * 2 // 16
    assert plan.data.steps_per_rank == [plan.data.steps_per_epoch] * 2
    assert plan.data.hang_risk is False and plan.data.estimated


def test_the_first_sentence_of_every_problem_fits_into_a_line() -> None:
    """It stands alone in the bar of alerts."""
    seen = set()
    for name, sizes in (("1b21", (9, 9)), ("1b21", (9,)), ("demo", (9, 2, 1)), ("demo", (1,))):
        plan = preflight.make_plan(config(name, "parallel.device=cpu"), facts(shards(*sizes)))
        for found in plan.problems:
            seen.add(found.id)
            if found.id not in ("parameters-differ",):
                first = re.split(r"(?<=[.:]) (?=[A-Z])", found.text)[0]
                assert len(first) <= 110, first
    assert seen >= {"workers-exceed-shards", "every-rank-reads-everything", "rank-without-data"}


def test_another_model_than_asked_for_is_an_error() -> None:
    plan = preflight.make_plan(config("1b21"), facts(shards(9, 9, 9, 9), 679_962_626, gpus=4))
    assert plan.verdict == "error"
    assert (plan.model.asked, plan.model.built) == (1_208_606_722, 679_962_626)
    found = problem(plan, "parameters-differ")
    assert "679,962,626 parameters, not the 1,208,606,722" in found.text
    assert "43.7 % fewer" in found.text
    assert "model.expected_parameters=679962626" in found.next


def test_a_shard_that_was_taken_for_the_model_is_named() -> None:
    wanted = config("680m", "model.expected_parameters=169990657")
    plan = preflight.make_plan(wanted, facts(shards(9, 9, 9, 9), 679_962_626, gpus=4))
    assert plan.model.flat_shard == 169_990_657
    assert "one rank's share of it (679,962,626 / 4)" in problem(plan, "parameters-differ").text


def test_an_unreachable_hub_leaves_nulls_and_a_warning() -> None:
    told = facts()
    told.data = DataFacts(
        error=FactError(kind="unreachable", text="data.source: the hub is silent", next="Wait.")
    )
    plan = preflight.make_plan(config("1b21", "parallel.device=cpu"), told)
    assert plan.data == preflight.DataPlan(ranks=4, workers_per_rank=4, readers=16)
    assert problem(plan, "data-unknown").severity == "warning"
    assert problem(plan, "data-unknown").text == (
        "data.source: the hub is silent. So shards, rows and steps per epoch are not known."
    )
    assert problem(plan, "data-unknown").next == "Wait."


def test_what_nobody_looked_at_is_not_ok() -> None:
    plan = preflight.make_plan(config(), Facts())
    assert plan.verdict == "warning"
    assert ids(plan) == ["data-unknown"]
    assert plan.model.built is None


def test_a_source_that_cannot_be_used_is_an_error() -> None:
    told = facts()
    told.data = DataFacts(error=FactError(kind="unusable", text="data.source: x", next="y."))
    plan = preflight.make_plan(config(), told)
    assert plan.verdict == "error"
    assert problem(plan, "data-unusable").text == "data.source: x."


def test_uneven_files_are_said_before_they_cost_text() -> None:
    plan = preflight.make_plan(
        config("demo", "data.workers=1"), facts(shards(1500, 989, text_bytes=1000))
    )
    found = problem(plan, "uneven-batches")
    assert found.severity == "warning"
    assert found.text.startswith(
        "Ranks get unequal amounts of text: the smallest share is 34 % below the largest. "
        "Alone they would take 11,718 / 7,726 steps an epoch. A loop without an agreed end would "
        "hang here; bitwatch's ranks end the epoch together"
    )
    assert plan.data.sequences_per_rank == [1_500_000 // 32, 989_000 // 32]
    assert plan.data.steps_per_rank == [11_718, 7_726] and plan.data.hang_risk is True
    assert plan.data.imbalance_percent == pytest.approx(34.07, abs=0.01)


def test_rows_stand_in_where_the_text_was_not_measured() -> None:
    plan = preflight.make_plan(
        config("demo", "data.workers=1"), facts(shards(1500, 989, text_bytes=None))
    )
    assert plan.data.steps_per_epoch is None and plan.data.hang_risk is None
    assert "Their rows: 1,500 / 989. A loop without an agreed end may hang" in (
        problem(plan, "uneven-batches").text
    )


def test_the_sizes_of_files_stand_in_where_neither_rows_nor_text_are_known() -> None:
    lines = [
        Shard(name=f"{i}.jsonl", text_bytes_at_most=size) for i, size in enumerate((9000, 5000))
    ]
    plan = preflight.make_plan(config("demo", "data.workers=1"), facts(lines))
    assert plan.data.imbalance_percent == pytest.approx(44, abs=1)
    assert plan.data.sequences_per_rank is None and plan.data.steps_per_rank is None
    assert "44 % below the largest" in problem(plan, "uneven-batches").text
    assert [one.id for one in plan.corrections] == ["more-files"]


def test_shards_that_nobody_can_count_into_leave_rows_unknown() -> None:
    plan = preflight.make_plan(
        config("demo", "data.workers=1"), facts([Shard(name="a.jsonl"), Shard(name="b.jsonl")])
    )
    assert (plan.verdict, plan.data.split) == ("ok", "shards")
    assert plan.data.rows is None and plan.data.rows_per_rank is None
    assert plan.data.steps_per_epoch is None and not plan.data.estimated


def test_a_shuffled_order_of_unequal_shards_is_not_guessed() -> None:
    wanted = config("demo", "data.workers=1", "data.shuffle=100")
    plan = preflight.make_plan(wanted, facts(shards(1500, 989)))
    assert plan.data.rows == 2489
    assert plan.data.rows_per_rank is None and plan.data.steps_per_epoch is None
    assert plan.data.assignment == []


def test_a_rank_without_a_row_is_an_error() -> None:
    wanted = config("1b21", "parallel.device=cpu", "data.workers=1")
    plan = preflight.make_plan(wanted, facts(shards(1, 1), 1_208_606_722))
    assert plan.data.rows_per_rank == [1, 1, 0, 0]
    found = problem(plan, "rank-without-data")
    assert found.severity == "error"
    assert "2 of 4 ranks: 2 rows in 2 shards" in found.text
    assert "parallel.ranks=2" in found.next


def test_too_little_text_for_a_step_is_said() -> None:
    plan = preflight.make_plan(config("demo", "data.workers=1"), facts(shards(3, 3, text_bytes=9)))
    assert plan.data.steps_per_epoch == 0
    assert problem(plan, "rank-without-data").severity == "warning"


def test_one_rank_reads_everything_and_that_is_right() -> None:
    wanted = config("demo", "parallel.ranks=1", "data.workers=0")
    plan = preflight.make_plan(wanted, facts(shards(10_000, 10)))
    assert plan.verdict == "ok"
    assert (plan.data.readers, plan.data.readers_busy) == (1, 1)


@pytest.mark.parametrize(
    ("device", "gpus", "launching", "severity"),
    [
        ("cuda", 4, True, None),
        ("cuda", 2, False, "error"),
        ("cuda", 0, True, "error"),
        ("cuda", 0, False, "warning"),
        ("auto", 2, True, None),
        ("cpu", 0, True, None),
    ],
)
def test_more_ranks_than_gpus(
    device: str, gpus: int, launching: bool, severity: str | None
) -> None:
    wanted = config("1b21", f"parallel.device={device}", "data.workers=1")
    told = facts(shards(*[9000] * 4), 1_208_606_722, gpus)
    plan = preflight.make_plan(wanted, told, launching=launching)
    found = {problem.id: problem.severity for problem in plan.problems}
    assert found.get("more-ranks-than-gpus") == severity


def test_parts_gathered_apart_make_one_plan() -> None:
    whole = facts(shards(1354, 1354))
    parts = [Facts(model=whole.model), Facts(data=whole.data), Facts(devices=whole.devices)]
    assert merge(*parts) == whole


def test_the_json_has_the_fields_that_others_rely_on() -> None:
    plan = msgspec.json.decode(
        preflight.to_json(preflight.make_plan(config("demo"), facts(shards(1354, 1354))))
    )
    names = {"verdict", "model", "memory", "data", "corrections", "problems", "refused"}
    assert plan.keys() >= names
    assert [one.keys() for one in plan["refused"]] == [{"id", "remedy", "why"}]
    assert plan["model"].keys() >= {"asked", "built", "held", "flat_shard"}
    assert plan["memory"].keys() >= {"per_gpu_gib", "capacity_gib", "fits"}
    parts = plan["memory"]["per_gpu_gib"]
    assert parts.keys() >= {"parameters", "gradients", "optimizer", "activations", "gathered"}
    assert parts["total"] > parts["overhead"] > 0
    assert plan["data"].keys() >= set(
        [
            "num_shards",
            "row_groups",
            "rows",
            "ranks",
            "workers_per_rank",
            "readers",
            "mode",
            "split",
            "readers_busy",
            "readers_idle",
            "copies",
            "read_amplification",
            "rows_per_rank",
            "sequences_per_rank",
            "steps_per_rank",
            "steps_per_epoch",
            "hang_risk",
            "imbalance_percent",
            "estimated",
            "assignment",
        ]
    )
    assert plan["data"]["assignment"][0] == {"rank": 0, "worker": 0, "shards": [0], "rows": 1354}
    assert plan["corrections"][0].keys() == set(
        [
            *("id", "recommended", "workers_per_rank", "num_shards", "readers_busy"),
            *("readers_idle", "copies", "read_amplification", "resume", "prepare_bytes"),
            *("prepare_s", "changes", "why", "data"),
        ]
    )
    assert plan["corrections"][0]["data"].keys() == plan["data"].keys()
    assert plan["problems"][0].keys() == {"id", "severity", "text", "next"}
