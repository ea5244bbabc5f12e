"""What is offered instead of a plan, what it costs, and what is never offered."""

from __future__ import annotations

from typing import Any

import pytest

from bitwatch import config as configuration
from bitwatch.plan import faults, preflight
from bitwatch.plan.facts import CacheFacts, DataFacts, Facts, Shard
from tests.plan.situations import GIB, config, files, ids, incident, plan


def test_the_incident_is_offered_every_way_out() -> None:
    made = incident()
    assert ids(made.problems) == ["workers-exceed-shards", "every-rank-reads-everything"]
    assert made.problems[0].next == (
        "Use --sharding indexed or reshard, or start only the workers that read "
        "(--set data.workers=2)."
    )
    assert made.problems[1].next == "Use --sharding indexed or reshard."
    indexed, reshard, fewer, more = made.corrections
    assert (indexed.id, indexed.recommended, indexed.resume) == ("indexed", True, "new-epoch")
    assert indexed.prepare_s == pytest.approx(2 + 540.6 / 50, abs=0.1)
    assert indexed.prepare_bytes == 1802 * (300_000 + 9 * 1000)
    assert indexed.data.steps_per_rank == [indexed.data.steps_per_epoch] * 4
    assert (reshard.id, reshard.recommended, reshard.resume) == ("reshard", False, "new-epoch")
    assert (reshard.num_shards, reshard.prepare_s, reshard.prepare_bytes) == (1802, 0, 0)
    assert (more.id, more.changes, more.num_shards) == ("more-files", {}, 16)
    for correction in (indexed, reshard, more):
        assert (correction.readers_busy, correction.readers_idle) == (16, 0)
        assert (correction.workers_per_rank, correction.copies) == (4, 1)
        assert correction.read_amplification == correction.data.read_amplification == 1
    assert (fewer.id, fewer.workers_per_rank) == ("fewer-workers", 2)
    assert (fewer.readers_busy, fewer.readers_idle, fewer.read_amplification) == (8, 0, 4)
    assert "Not recommended: every rank still reads everything." in fewer.why


SITUATIONS = [
    ((), (901, 901), 100 * GIB, "parquet"),
    ((), (901, 901), 0, "parquet"),
    (("parallel.ranks=2", "data.workers=3"), (5, 9, 2), 100 * GIB, "parquet"),
    (("parallel.ranks=2", "data.workers=2"), (8, 8), 0, "parquet"),
    (("data.sharding=reshard",), (3, 3), 100 * GIB, "parquet"),
    (("data.sharding=reshard",), (1, 1), 0, "json"),
    (("data.sharding=indexed",), (20, 20), 0, "parquet"),
    (("data.shuffle=5",), (2, 2, 2, 2), 100 * GIB, "parquet"),
    (("data.sharding=ask", "data.workers=9"), (2, 2, 2, 2), 0, "text"),
]


@pytest.mark.parametrize(("changes", "groups", "free", "format"), SITUATIONS)
def test_taking_a_correction_does_what_it_says(
    changes: tuple[str, ...], groups: tuple[int, ...], free: int, format: str
) -> None:
    """Each that can be launched: the same plan, with fewer faults, and no other first."""
    base = ("parallel.ranks=4", "data.workers=4", "train.batch=16", "train.micro_batch=4")
    settings = config("as-is", *base, *changes)
    shards = files(*groups)
    if format != "parquet":
        for shard in shards:
            shard.group_rows = shard.group_bytes = None
    before = plan(settings, shards, free, format)
    facts = DataFacts(
        format=format,
        num_shards=len(shards),
        shards=shards,
        cache=CacheFacts(folder="/cache", free_bytes=free),
    )
    offered = [correction for correction in before.corrections if correction.changes]
    assert offered or format == "json"  # of which only more files can be made
    for correction in offered:
        taken = configuration.changed(settings, correction.changes)
        after = plan(taken, shards, free, format)
        assert after.data == correction.data
        assert (after.data.readers_busy, after.data.readers_idle) == (
            correction.readers_busy,
            correction.readers_idle,
        )
        assert faults.fewer(
            faults.of(taken, facts, after.data), faults.of(settings, facts, before.data)
        )
        assert "error" not in [problem.severity for problem in after.problems]


@pytest.mark.parametrize(("changes", "groups", "free", "format"), SITUATIONS)
def test_seed_remedies_and_what_does_not_work_are_in_no_correction_and_no_sentence(
    changes: tuple[str, ...], groups: tuple[int, ...], free: int, format: str
) -> None:
    base = ("parallel.ranks=4", "data.workers=4", "train.batch=16", "train.micro_batch=4")
    made = plan(config("as-is", *base, *changes), files(*groups), free, format)
    words = [correction.why for correction in made.corrections]
    words += [f"{problem.text} {problem.next}" for problem in made.problems]
    for text in words:
        assert "world_size" not in text and "data.workers=0" not in text
    offered = {one.id for one in made.corrections if one.changes}
    for problem in made.problems:
        for mode in ("indexed", "reshard"):
            if f"--sharding {mode}" in problem.next or f"or {mode}" in problem.next:
                assert mode in offered


def test_a_resume_is_exact_where_nothing_that_orders_the_text_changes() -> None:
    """An index with so little text that an epoch has fewer steps than a rank has workers."""
    small = files(1, text_bytes=8 * 32 * 3)
    made = plan(config("indexed", "data.workers=6"), small)
    assert made.data.steps_per_rank == [3, 3]
    assert (made.data.readers_busy, made.data.readers_idle) == (6, 6)
    assert "6 of 12 readers idle: an epoch of 3 steps" in made.problems[0].text
    (fewer,) = made.corrections
    assert (fewer.id, fewer.changes, fewer.resume) == (
        "fewer-workers",
        {"data.workers": 3},
        "exact",
    )


def test_the_cost_of_an_index_is_what_this_machine_has_measured() -> None:
    def cost(**told: Any) -> tuple[int, float]:
        cache = CacheFacts(folder="/cache", free_bytes=100 * GIB, **told)
        data = DataFacts(format="parquet", num_shards=2, shards=files(8, 8), cache=cache)
        made = preflight.make_plan(config("as-is"), Facts(data=data)).corrections[0]
        assert made.id == "indexed"
        return made.prepare_bytes, made.prepare_s

    whole = 16 * (100_000 + 9 * 100)
    assert cost() == (whole, 2.0)
    assert cost(bytes_per_s=100_000.0) == (whole, 18.0)
    assert cost(present=True) == (0, 0.0)
    far = files(8, 8)
    for shard in far:
        shard.name = f"hf://datasets/me/novel@0{shard.name}"
    first = plan(config("as-is"), far).corrections[0]
    assert "in about 2 s and the time of the download." in first.why
    # It needs no room, either.
    there = CacheFacts(folder="/cache", free_bytes=0, present=True)
    data = DataFacts(format="parquet", num_shards=2, shards=files(8, 8), cache=there)
    assert preflight.make_plan(config("indexed"), Facts(data=data)).problems == []


def test_text_that_is_too_little_for_one_step_of_a_rank_can_be_enough_for_all() -> None:
    """Two ranks that take 4 sequences a step: one has 7, the other 3; together a whole step."""
    shards = [*files(1, text_bytes=7 * 32), *files(1, text_bytes=3 * 32)]
    made = plan(config("as-is", "data.workers=1"), shards)
    assert made.data.steps_per_rank == [1, 0]
    assert made.corrections[0].data.steps_per_rank == [1, 1]
    found = next(problem for problem in made.problems if problem.id == "rank-without-data")
    assert found.next.startswith("Use --sharding indexed, or give it more text")


def test_only_what_improves_something_is_offered() -> None:
    one_worker = ("data.workers=1",)
    assert plan(config("as-is", *one_worker), files(8, 8)).corrections == []
    uneven = plan(config("as-is", *one_worker), files(12, 4))
    assert ids(uneven.problems) == ["uneven-batches"]
    assert ids(uneven.corrections) == ["indexed", "reshard", "more-files"]
    # Row groups that cannot be dealt out evenly either are no remedy for that.
    lumps = plan(config("as-is", *one_worker), files(2, 1))
    assert ids(lumps.corrections) == ["indexed", "more-files"]
    shuffled = plan(config("as-is", "data.shuffle=100", *one_worker), files(8, 8))
    assert ids(shuffled.corrections) == ["indexed", "reshard"]  # a resume is exact in both


def test_what_does_not_fit_is_not_offered() -> None:
    made = plan(config("as-is"), files(8, 8), free=0)
    assert ids(made.corrections) == ["reshard", "fewer-workers", "more-files"]
    assert [correction.recommended for correction in made.corrections] == [True, False, False]
    made = plan(config("as-is"), files(1, 1), free=0)
    assert ids(made.corrections) == ["fewer-workers", "more-files"]
    assert made.corrections[0].recommended
    # With an index that has no room, row groups are the way out.
    made = plan(config("indexed"), files(8, 8), free=0)
    assert ids(made.corrections) == ["reshard"]


def test_what_would_not_train_is_no_correction() -> None:
    """Fewer workers leave nobody idle here, and the launch would end in the same error."""
    base = ("parallel.ranks=4", "data.workers=4", "train.batch=16", "train.micro_batch=4")
    empty = Shard(name="none.parquet", rows=0, text_bytes=0, group_rows=[], group_bytes=[])
    broken = plan(config("as-is", *base), [*files(3, 3), empty])
    assert [one.id for one in broken.corrections if one.changes] == ["indexed"]
    found = next(one for one in broken.problems if one.id == "data-unusable")
    assert found.next == "Use --sharding indexed, or take it out."
    for shards in ([*files(3, 3), empty], files(1, rows=3)):
        made = plan(config("as-is", *base), shards, free=0)
        assert made.verdict == "error"
        assert [one.id for one in made.corrections if one.changes] == []
        auto = plan(config("auto", *base), shards, free=0)
        assert (auto.data.mode, auto.data.workers_per_rank) == ("as-is", 4)


def test_files_that_a_person_must_write_are_never_recommended() -> None:
    three = files(1, 1, 1)
    made = plan(config("as-is", "data.workers=1"), three, free=0)
    (more,) = made.corrections  # three row groups for two ranks would not be even
    assert (more.id, more.recommended, more.changes) == ("more-files", False, {})
    assert made.problems[0].next.startswith("Write the text into 2 files of equal size")
    # Fewer rows than files: one of them would have none, which breaks the stream.
    few = plan(config("as-is"), files(1, rows=3), free=0)
    assert ids(few.corrections) == ["fewer-workers"]


def test_who_reads_what_is_left_out_where_nobody_could_read_it() -> None:
    shards = files(*[1] * 4001)
    made = plan(config("as-is", "data.workers=8"), shards, free=0)
    assert sum(len(reader.shards) for reader in made.data.assignment) == 2 * 4001
    assert made.corrections[0].data.assignment == []
    assert len(preflight.to_json(made)) < 400_000
    assert plan(config("as-is"), files(*[1] * 10_001), free=0).data.assignment == []


# ---------------------------------------------------------------------------------------
# Remedies that do not work


def test_the_seeds_remedies_are_answered() -> None:
    workers, shard = incident().refused
    assert (workers.id, workers.remedy) == (
        "workers-by-shards",
        "num_workers = min(4, num_shards // world_size)",
    )
    assert "It gives 0 workers here (min(4, 2 // 4))" in workers.why
    assert "each rank then reads by itself" in workers.why
    assert "still reads everything" in workers.why
    assert (shard.id, shard.remedy) == ("shard-more", "dataset.shard(num_shards=world_size * 4)")
    assert "TypeError" in shard.why and "never adds any" in shard.why
    assert incident("data.sharding=indexed").refused == []


def test_no_workers_are_no_remedy_for_row_groups_either() -> None:
    made = plan(config("reshard", "parallel.ranks=4", "train.batch=16"), files(1, 1), free=0)
    assert made.data.read_amplification == 1
    assert made.refused[0].why == (
        "It gives 0 workers here (min(4, 2 // 4)): each rank then reads by itself between its "
        "steps, with nothing read ahead."
    )


def test_a_remedy_is_refused_only_where_it_does_not_help() -> None:
    # 4 shards over 2 ranks: 2 workers each, and nobody is idle.
    helps = plan(config("as-is", "data.workers=4"), files(1, 1, 1, 1))
    assert helps.data.readers_idle == 4
    assert ids(helps.refused) == ["shard-more"]
    # 5 shards over 2 ranks: nobody was idle, and all read everything with fewer workers, too.
    none = plan(config("as-is", "data.workers=2"), files(1, 1, 1, 1, 1))
    assert ids(none.refused) == ["workers-by-shards", "shard-more"]
    assert none.refused[0].why == (
        "It gives 2 workers here (min(4, 5 // 2)): every rank still reads everything."
    )
