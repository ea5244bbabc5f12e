"""Which mode "auto" takes and why, and what is wrong with each."""

from __future__ import annotations

import pytest

from bitwatch.plan.facts import Shard
from tests.plan.situations import GIB, config, files, ids, plan


def test_text_that_fits_on_the_disk_is_indexed() -> None:
    made = plan(config("auto"), files(8, 8))
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
    assert data.steps_per_rank == [data.steps_per_epoch] * 2
    assert data.sequences_per_rank == [25_000, 25_000] and data.hang_risk is False
    assert data.estimated and sum(data.rows_per_rank or []) == data.rows == 1600
    assert (made.verdict, made.problems, made.corrections, made.refused) == ("ok", [], [], [])


def test_what_is_asked_about_is_planned_as_it_is_configured() -> None:
    """Then a person can compare it with what would be better."""
    asked, as_is = plan(config("ask"), files(8, 8)), plan(config("as-is"), files(8, 8))
    assert (asked.data, asked.problems) == (as_is.data, as_is.problems)
    assert asked.data.mode_reason == ""
    assert ids(asked.corrections) == ids(as_is.corrections)
    # What is left open must not be left open again with the changes.
    assert asked.corrections[2].changes == {"data.sharding": "as-is", "data.workers": 1}
    assert as_is.corrections[2].changes == {"data.workers": 1}


@pytest.mark.parametrize("free", [100 * GIB, 1_000_000, None])
@pytest.mark.parametrize("groups", [(8, 8), (2, 1), (12, 4), (1,), (1, 1, 1), (3, 3, 3, 3)])
@pytest.mark.parametrize("changes", [(), ("data.workers=1",), ("data.shuffle=100",)])
def test_auto_takes_the_first_correction_of_as_is(
    free: int | None, groups: tuple[int, ...], changes: tuple[str, ...]
) -> None:
    shards = files(*groups)
    as_is = plan(config("as-is", *changes), shards, free)
    auto = plan(config("auto", *changes), shards, free)
    assert auto.data.mode_reason
    wanted = next((c.data for c in as_is.corrections if c.recommended), as_is.data)
    auto.data.mode_reason = ""
    assert auto.data == wanted
    launchable = [one for one in as_is.corrections if one.changes]
    assert [one.recommended for one in launchable] == [True, False, False][: len(launchable)]


def test_a_plan_without_faults_is_left_as_it_is() -> None:
    """Also where an index would fit: it is not worth the wait to somebody whose plan works."""
    made = plan(config("auto", "data.workers=1"), files(8, 8))
    assert (made.data.mode, made.corrections, made.verdict) == ("as-is", [], "ok")
    assert made.data.mode_reason == (
        "every reader has shards of its own, and every rank about as much as the others"
    )
    unknown = plan(config("auto"), [Shard(name=f"{i}.gz") for i in range(4)], format="json").data
    assert (unknown.mode, unknown.workers_per_rank) == ("as-is", 2)
    assert unknown.mode_reason.endswith("only reading could tell whether every rank has as much")
    # What a shuffle buffer holds is lost at a resume: that is a fault.
    shuffled = plan(config("auto", "data.workers=1", "data.shuffle=100"), files(8, 8)).data
    assert shuffled.mode == "indexed"
    assert shuffled.mode_reason.startswith("what a shuffle buffer holds is lost at a resume; ")


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
    assert (made.data.mode, made.data.workers_per_rank, made.data.readers_idle) == ("as-is", 1, 0)
    assert made.data.mode_reason.endswith(
        "3 row groups cannot keep 4 readers busy; 1 worker for each rank"
    )
    lines = [Shard(name=f"{i}.jsonl") for i in range(2)]
    made = plan(config("auto"), lines, format="json")
    assert made.data.mode == "as-is"
    assert made.data.mode_reason == (
        "2 shards would leave 2 of 4 readers idle; only reading could tell how much text there is; "
        "json files have no row groups to deal out; 1 worker for each rank"
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
# Problems of the modes


def test_fewer_row_groups_than_readers_leave_some_idle() -> None:
    made = plan(config("reshard"), files(1, 2), free=0)
    assert (made.data.readers_busy, made.data.readers_idle) == (3, 1)
    found = made.problems[0]
    assert found.id == "workers-exceed-shards"
    assert "1 of 4 readers idle: 3 row groups for 2 ranks x 2 workers." in found.text
    assert "--set data.workers=1" in found.next
    assert ids(made.corrections) == ["fewer-workers", "more-files"]


def test_a_rank_without_a_row_group_is_an_error() -> None:
    made = plan(config("reshard"), files(1))
    assert made.verdict == "error"
    found = next(problem for problem in made.problems if problem.id == "rank-without-data")
    assert found.severity == "error" and "All ranks step together" in found.text
    assert found.next == "Use --sharding indexed."
    assert ids(made.corrections) == ["indexed", "more-files"]


def test_one_huge_row_group_is_said_to_be_uneven() -> None:
    shards = files(5)
    shards[0].group_bytes = [10_000_000, 9, 9, 9, 9]
    made = plan(config("reshard"), shards)
    assert "uneven-batches" in ids(made.problems)
    assert ids(made.corrections) == ["indexed", "more-files"]


def test_reshard_of_other_files_names_indexed() -> None:
    lines = Shard(name="a.jsonl", text_bytes_at_most=GIB)
    made = plan(config("reshard"), [lines], format="json")
    (found,) = made.problems
    assert (found.id, found.severity, made.verdict) == ("reshard-needs-parquet", "error", "error")
    assert "has json files" in found.text and found.next == "Use --sharding indexed."
    assert ids(made.corrections) == ["indexed"]
    (found,) = plan(config("reshard"), [lines], free=0, format="json").problems
    assert found.next == "Write the text as parquet, or use --sharding as-is."


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
    assert found.next == "Name a larger disk (data.cache), or use --sharding reshard."
    (found,) = plan(config("indexed"), [Shard(name="a.jsonl")], format="json").problems
    assert found.next == "Name a larger disk (data.cache)."


def test_a_file_without_rows_breaks_only_the_stream_as_it_is() -> None:
    empty = Shard(
        name="none.parquet", rows=0, row_groups=0, text_bytes=0, group_rows=[], group_bytes=[]
    )
    shards = [*files(8, 8), empty]
    made = plan(config("as-is"), shards)
    assert [f.text for f in made.problems if f.severity == "error"] == [
        "data.source: none.parquet has no rows, which breaks the stream."
    ]
    assert made.problems[0].next == "Use --sharding indexed or reshard, or take it out."
    for mode in ("reshard", "indexed", "auto"):
        assert plan(config(mode), shards).verdict == "ok"
