"""A plan as a person reads it, in a terminal of the usual width."""

from __future__ import annotations

from bitwatch import config as configuration
from bitwatch import planned
from bitwatch.plan import preflight
from bitwatch.plan.facts import CacheFacts, DataFacts, Facts, Shard

WIDTH = 80


def lines(*changes: str, rows: tuple[int, ...] = (900, 900)) -> list[str]:
    wanted = ("data.sharding=as-is", *changes)
    config = configuration.load(configuration.bundled("configs/demo.toml"), wanted)
    shards = [
        Shard(
            name=f"/home/somebody/corpora/of/novels/train-{i:05}-of-{len(rows):05}.parquet",
            rows=size,
            row_groups=size // 10,
            text_bytes=300 * size,
            group_rows=[10] * (size // 10),
            group_bytes=[3000] * (size // 10),
        )
        for i, size in enumerate(rows)
    ]
    cache = CacheFacts(folder="/cache", free_bytes=1 << 40)
    data = DataFacts(format="parquet", num_shards=len(shards), shards=shards, cache=cache)
    plan = preflight.make_plan(config, Facts(data=data))
    return list(planned.lines(config, plan, WIDTH))


def test_everything_fits_but_the_line_that_is_copied() -> None:
    shown = lines("parallel.ranks=4", "data.workers=4", "train.batch=16")
    long = [line for line in shown if len(line) > WIDTH]
    assert [line.split()[:4] for line in long] == [["from", "datasets", "import", "load_dataset;"]]
    table = [line.split() for line in shown[shown.index("") :]]
    effects = {row[0]: row[1:] for row in table if len(row) > 6 and "of" in row}
    assert effects["as"][2:] == ["8", "of", "16", "8", "4x", "1,054"]  # it is
    assert ["*", "indexed", "16", "of", "16", "0", "1x", "1,054"] in [row[:8] for row in table]
    assert effects["reshard"][:6] == ["16", "of", "16", "0", "1x", "1,054"]
    assert effects["fewer-workers"][:5] == ["8", "of", "8", "0", "4x"]
    assert effects["more-files"][-3:] == ["by", "hand", "new-epoch"]
    assert "* indexed: --sharding indexed" in shown
    assert "  fewer-workers: --set data.workers=2" in shown


def test_steps_are_told_for_each_rank_where_they_differ() -> None:
    shown = "\n".join(lines("data.workers=1", rows=(900, 300)))
    assert "an epoch is about 703 steps (each rank alone 2,109 / 703)" in shown
    assert "each rank alone" not in "\n".join(lines("data.workers=1"))


def test_row_groups_that_nobody_looked_at_are_not_counted() -> None:
    config = configuration.load(
        configuration.bundled("configs/demo.toml"), ["data.sharding=reshard"]
    )
    shards = [Shard(name=f"{i}.parquet") for i in range(2)]
    data = DataFacts(format="parquet", num_shards=2, shards=shards)
    drawn = list(planned.lines(config, preflight.make_plan(config, Facts(data=data)), None))
    row = next(line for line in drawn if "2 workers" in line)
    assert row.endswith("2 shards · 2 ranks x 2 workers = 4 readers · reshard")
