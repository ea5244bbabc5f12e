"""Which mode "auto" takes and why, what each would do, and what is offered instead."""

from __future__ import annotations

from typing import Any

import pytest

from bitwatch import config as configuration
from bitwatch.plan import preflight
from bitwatch.plan.facts import CacheFacts, DataFacts, Facts, ModelFacts, Parameter, Shard
from bitwatch.plan.result import Plan

GIB = 2**30


def config(sharding: str, *changes: str) -> configuration.Config:
    wanted = (f"data.sharding={sharding}", *changes)
    return configuration.load(configuration.bundled("configs/demo.toml"), wanted)


def files(*groups: int, rows: int = 100, text_bytes: int = 100_000) -> list[Shard]:
    """A file of so many equal row groups for each number."""
    return [
        Shard(
            name=f"/text/{i}.parquet",
            rows=rows * number,
            row_groups=number,
            text_bytes=text_bytes * number,
            group_rows=[rows] * number,
            group_bytes=[text_bytes] * number,
        )
        for i, number in enumerate(groups)
    ]


def plan(
    settings: configuration.Config,
    shards: list[Shard],
    free: int | None = 100 * GIB,
    format: str = "parquet",
) -> Plan:
    cache = CacheFacts(folder="/cache", free_bytes=free)
    data = DataFacts(format=format, num_shards=len(shards), shards=shards, cache=cache)
    model = ModelFacts(parameters=[Parameter(name="w", shape=[100])])
    return preflight.make_plan(settings, Facts(model=model, data=data))


def ids(found: list[Any]) -> list[str]:
    return [one.id for one in found]


@pytest.mark.parametrize("sharding", ["auto", "ask"])
def test_text_that_fits_on_the_disk_is_indexed(sharding: str) -> None:
    made = plan(config(sharding), files(8, 8))
    data = made.data
    assert (data.mode, data.split, data.copies, data.read_amplification) == (
        "indexed",
        "none",
        1,
        1,
    )
    assert data.mode_reason == ("2 shards would leave 2 of 4 readers idle; the text is 1.5 MiB")
    assert (data.readers_busy, data.readers_idle, data.imbalance_percent) == (4, 0, 0.0)
    assert data.steps_per_epoch == 1_600_000 // 32 // 8
    assert data.estimated and sum(data.rows_per_rank or []) == data.rows == 1600
    assert (made.verdict, made.problems, made.corrections) == ("ok", [], [])


def test_a_full_disk_leaves_row_groups() -> None:
    made = plan(config("auto"), files(8, 8), free=1_000_000)
    assert made.data.mode == "reshard"
    assert made.data.mode_reason == (
        "2 shards would leave 2 of 4 readers idle; an index of 1.6 MiB does not fit into 976.6 KiB "
        "free in /cache; 16 row groups for 4 readers"
    )
    assert (made.data.num_shards, made.data.row_groups) == (16, 16)
    assert (made.data.readers_busy, made.data.readers_idle) == (4, 0)
    assert made.verdict == "ok" and made.corrections == []


def test_a_limit_on_the_cache_counts_like_a_disk() -> None:
    settings = config("auto")
    settings.data.cache_limit_gib = 0.001
    made = plan(settings, files(8, 8))
    assert made.data.mode == "reshard"
    assert "more than data.cache_limit_gib = 0.001 allows" in made.data.mode_reason


def test_as_is_is_what_remains() -> None:
    made = plan(config("auto"), files(2, 1), free=0)
    assert made.data.mode == "as-is"
    assert made.data.mode_reason.endswith("3 row groups cannot keep 4 readers busy")
    lines = [Shard(name=f"{i}.jsonl") for i in range(2)]
    made = plan(config("auto"), lines, format="json")
    assert made.data.mode == "as-is"
    assert made.data.mode_reason == (
        "only reading could tell how much text there is; json files have no row groups to deal out"
    )


def test_a_bound_on_the_text_is_enough_to_index_it() -> None:
    lines = [Shard(name=f"{i}.jsonl", text_bytes_at_most=GIB) for i in range(2)]
    made = plan(config("auto"), lines, format="json")
    assert made.data.mode == "indexed" and "at most 2.0 GiB" in made.data.mode_reason
    assert made.data.steps_per_epoch is None and made.data.rows_per_rank is None
    assert plan(config("auto"), lines, free=GIB, format="json").data.mode == "as-is"


def test_a_disk_that_nobody_looked_at_is_no_room() -> None:
    assert plan(config("auto"), files(8, 8), free=None).data.mode == "reshard"


@pytest.mark.parametrize("mode", ["as-is", "reshard", "indexed"])
def test_a_mode_that_is_asked_for_is_taken_without_a_word(mode: str) -> None:
    data = plan(config(mode), files(8, 8)).data
    assert (data.mode, data.mode_reason) == (mode, "")


# ---------------------------------------------------------------------------------------
# Corrections


def test_the_incident_is_offered_both_ways_out() -> None:
    made = plan(
        config("as-is", "parallel.ranks=4", "data.workers=4", "train.batch=16"),
        files(901, 901, rows=1000, text_bytes=300_000),
    )
    assert ids(made.problems) == ["workers-exceed-shards", "every-rank-reads-everything"]
    assert all(
        found.next.startswith("Use --sharding indexed or reshard") for found in made.problems
    )
    indexed, reshard = made.corrections
    assert (indexed.id, indexed.recommended, indexed.resume) == ("indexed", True, "new-epoch")
    assert indexed.prepare_s == pytest.approx(540.6 / 50, abs=0.1)
    assert (reshard.id, reshard.recommended, reshard.resume) == ("reshard", False, "new-epoch")
    assert (reshard.num_shards, reshard.prepare_s) == (1802, 0)
    for correction in made.corrections:
        assert (correction.readers_busy, correction.readers_idle) == (16, 0)
        assert (correction.workers_per_rank, correction.copies) == (4, 1)


def test_taking_a_correction_does_what_it_says() -> None:
    for correction in plan(config("as-is"), files(8, 8)).corrections:
        if correction.id == "fewer-workers":
            settings = config("as-is", f"data.workers={correction.workers_per_rank}")
        else:
            settings = config(correction.id)
        data = plan(settings, files(8, 8)).data
        assert correction.num_shards == data.num_shards
        assert correction.readers_busy == data.readers_busy
        assert correction.readers_idle == data.readers_idle == 0
        assert correction.copies == data.copies


def test_only_what_improves_something_is_offered() -> None:
    one_worker = ("data.workers=1",)
    assert plan(config("as-is", *one_worker), files(8, 8)).corrections == []
    uneven = plan(config("as-is", *one_worker), files(12, 4))
    assert ids(uneven.problems) == ["uneven-batches"]
    assert ids(uneven.corrections) == ["indexed", "reshard"]
    # Row groups that cannot be dealt out evenly either are no remedy for that.
    lumps = plan(config("as-is", *one_worker), files(2, 1))
    assert ids(lumps.corrections) == ["indexed"]
    shuffled = plan(config("as-is", "data.shuffle=100", *one_worker), files(8, 8))
    assert ids(shuffled.corrections) == ["indexed", "reshard"]  # a resume is exact in both


def test_what_does_not_fit_is_not_offered() -> None:
    made = plan(config("as-is"), files(8, 8), free=0)
    assert ids(made.corrections) == ["reshard", "fewer-workers"]
    assert [correction.recommended for correction in made.corrections] == [True, False]
    made = plan(config("as-is"), files(1, 1), free=0)
    assert ids(made.corrections) == ["fewer-workers"]
    assert made.corrections[0].recommended


# ---------------------------------------------------------------------------------------
# Problems of the modes


def test_fewer_row_groups_than_readers_leave_some_idle() -> None:
    made = plan(config("reshard"), files(1, 2), free=0)
    assert (made.data.readers_busy, made.data.readers_idle) == (3, 1)
    found = made.problems[0]
    assert found.id == "workers-exceed-shards"
    assert "1 of 4 readers will be idle: 3 row groups for 2 ranks x 2 workers" in found.text
    assert "--set data.workers=1" in found.next and "at least 4 row groups" in found.next
    assert ids(made.corrections) == ["fewer-workers"]


def test_a_rank_without_a_row_group_is_an_error() -> None:
    made = plan(config("reshard"), files(1))
    assert made.verdict == "error"
    assert "rank-without-data" in ids(made.problems)


def test_one_huge_row_group_is_said_to_be_uneven() -> None:
    shards = files(5)
    shards[0].group_bytes = [10_000_000, 9, 9, 9, 9]
    made = plan(config("reshard"), shards)
    assert "uneven-batches" in ids(made.problems)
    assert ids(made.corrections) == ["indexed"]


def test_reshard_of_other_files_names_indexed() -> None:
    made = plan(config("reshard"), [Shard(name="a.jsonl")], format="json")
    (found,) = made.problems
    assert (found.id, found.severity, made.verdict) == ("reshard-needs-parquet", "error", "error")
    assert "has json files" in found.text and "--sharding indexed" in found.next


def test_row_groups_that_nobody_looked_at_are_no_error() -> None:
    shards = [Shard(name=f"{i}.parquet") for i in range(2)]
    made = plan(config("reshard"), shards)
    assert ids(made.problems) == ["row-groups-unknown"]
    assert made.verdict == "warning" and made.data.readers_busy is None


def test_an_index_that_may_not_fit_is_a_warning() -> None:
    made = plan(config("indexed"), files(8, 8), free=0)
    (found,) = made.problems
    assert (found.id, found.severity) == ("index-too-large", "warning")
    assert "does not fit into 0 B free in /cache" in found.text


def test_a_file_without_rows_breaks_only_the_stream_as_it_is() -> None:
    empty = Shard(
        name="none.parquet", rows=0, row_groups=0, text_bytes=0, group_rows=[], group_bytes=[]
    )
    shards = [*files(8, 8), empty]
    made = plan(config("as-is"), shards)
    assert [f.text for f in made.problems if f.severity == "error"] == [
        "data.source: none.parquet has no rows, which breaks the stream."
    ]
    for mode in ("reshard", "indexed", "auto"):
        assert plan(config(mode), shards).verdict == "ok"
