"""`bitwatch plan`: the incident's numbers, with and without a network, before any launch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bitwatch import config as configuration
from bitwatch.plan.result import PerGpu
from bitwatch.record.rundir import RunDir
from tests.conftest import Shell


def plan(shell: Shell, *arguments: str, code: int = 0) -> dict[str, Any]:
    return json.loads(shell.run("plan", *arguments, "--json", code=code)[0])


@pytest.mark.parametrize(
    ("name", "built", "held", "flat"),
    [
        ("1b21", 1208606722, [302153729, 302153729, 302149632, 302149632], 302151681),
        ("680m", 679962626, None, 169990657),
    ],
)
def test_the_incidents_models_by_every_count(
    shell: Shell, name: str, built: int, held: list[int] | None, flat: int
) -> None:
    made = plan(shell, name, "--gpu", "L4")
    model = made["model"]
    assert (model["asked"], model["built"], model["flat_shard"]) == (built, built, flat)
    assert sum(model["held"]) == built
    assert held is None or model["held"] == held
    memory = made["memory"]
    assert (memory["fits"], memory["capacity_gib"]) == (True, 22.0)
    assert 10 < memory["per_gpu_gib"]["total"] < 22
    # What only the hub knows is null, and said to be.
    assert made["data"]["num_shards"] is None
    assert made["verdict"] == "warning"
    problem = next(p for p in made["problems"] if p["id"] == "data-unknown")
    assert "Salesforce/wikitext" in problem["text"]
    assert problem["next"]


def test_the_demo_is_the_incident_in_miniature(shell: Shell) -> None:
    made = plan(shell)
    data = made["data"]
    assert (data["num_shards"], data["ranks"], data["workers_per_rank"]) == (2, 2, 2)
    assert (data["readers"], data["readers_busy"], data["readers_idle"]) == (4, 2, 2)
    assert (data["mode"], data["split"], data["copies"]) == ("as-is", "shards", 1)
    assert sum(data["rows_per_rank"]) == data["rows"]
    assert "workers-exceed-shards" in [problem["id"] for problem in made["problems"]]
    *_, correction, by_hand = made["corrections"]
    assert [c["id"] for c in made["corrections"]] == [
        *("indexed", "reshard", "fewer-workers", "more-files")
    ]
    assert by_hand["changes"] == {} and not by_hand["recommended"]
    assert (correction["workers_per_rank"], correction["readers_idle"]) == (1, 0)
    fixed = plan(shell, "--set", f"data.workers={correction['workers_per_rank']}")
    assert fixed["data"]["readers_idle"] == 0
    assert fixed["problems"] == []
    assert fixed["verdict"] == "ok"


def test_the_incident_before_a_launch(shell: Shell) -> None:
    """WikiText's layout: 2 files of 901 row groups, which 4 ranks do not divide."""
    folder = shell.folder / "wikitext"
    folder.mkdir()
    for number in range(2):
        schema = pa.schema([("text", pa.string())])
        with pq.ParquetWriter(folder / f"train-{number:05}-of-00002.parquet", schema) as writer:
            for group in range(901):
                text = [f" = Article {number} {group} {row} of a wiki = \n" for row in range(3)]
                writer.write_table(pa.table({"text": text}, schema=schema))
    changes = [
        *(f'data.source="{folder}"', "data.validation=", "data.workers=4", "parallel.ranks=4"),
        *("train.batch=16", "train.micro_batch=4"),
    ]
    words = [word for change in changes for word in ("--set", change)]
    made = plan(shell, str(shell.config), *words)
    data = made["data"]
    assert (data["mode"], data["num_shards"], data["row_groups"]) == ("as-is", 2, 1802)
    assert (data["readers"], data["readers_busy"], data["readers_idle"]) == (16, 8, 8)
    assert (data["copies"], data["read_amplification"]) == (1, 4)
    assert [p["id"] for p in made["problems"]] == [
        *("workers-exceed-shards", "every-rank-reads-everything")
    ]
    assert made["problems"][0]["text"].startswith(
        "8 of 16 readers idle and every rank reads everything: 2 shards for 4 ranks x 4 workers."
    )
    (first, *others) = made["corrections"]
    assert first["recommended"] and not any(other["recommended"] for other in others)
    assert (first["id"], first["changes"]) == ("indexed", {"data.sharding": "indexed"})
    assert (first["readers_busy"], first["readers_idle"], first["copies"]) == (16, 0, 1)
    assert first["data"]["read_amplification"] == 1
    assert first["data"]["steps_per_rank"] == [first["data"]["steps_per_epoch"]] * 4
    assert first["data"]["steps_per_epoch"] > 100 and first["data"]["hang_risk"] is False
    assert first["prepare_bytes"] > 0 and first["prepare_s"] > 0
    # With its changes the same plan comes out, and nothing is wrong with it.
    taken = plan(shell, str(shell.config), *words, "--sharding", "indexed")
    assert taken["data"] == first["data"] and taken["verdict"] == "ok"
    # The remedies that were given at the time are answered, and stand nowhere else.
    assert [one["id"] for one in made["refused"]] == ["workers-by-shards", "shard-more"]
    assert "gives 0 workers here" in made["refused"][0]["why"]
    del made["refused"]
    assert "world_size" not in json.dumps(made)


@pytest.mark.slow
def test_a_mode_that_was_chosen_is_said_and_recorded(shell: Shell) -> None:
    out, _ = shell.run("plan", str(shell.config), "--sharding", "auto")
    assert "4 busy, 0 idle · indexed" in out
    assert 'sharding = "auto" takes indexed: 2 shards would leave 2 of 4 readers idle' in out
    out, err = shell.run("run", str(shell.config), "--sharding", "auto", "--detach")
    assert (
        'data.sharding = "auto": indexed (2 shards would leave 2 of 4 readers idle; the text is '
        "3.6 MiB)"
    ) in err
    recorded = configuration.load(RunDir(Path(shell.one()["dir"])).config(1))
    assert recorded.data.sharding == "indexed"
    shell.run("stop", out.strip(), "--now")


def test_a_plan_for_gpus_that_are_too_small_is_refused_with_what_fits(shell: Shell) -> None:
    kept = ("--set", "parallel.activation_checkpointing=none", "--set", "train.micro_batch=8")
    made = plan(shell, "1b21", "--gpu", "nvidia l4", *kept, code=3)
    assert (made["verdict"], made["memory"]["fits"]) == ("error", False)
    problem = next(p for p in made["problems"] if p["id"] == "does-not-fit")
    assert "--set parallel.activation_checkpointing=full (" in problem["next"]
    _, err = shell.run("plan", "1b21", "--gpu", "L5", code=2)
    assert "--gpu L5: is not known here; known are" in err and "H200" in err


def test_a_plan_reads_well(shell: Shell) -> None:
    out, _ = shell.run("plan", "1b21", "--gpu", "L4")
    assert "1,208,606,722 parameters built, as asked" in out
    assert "302,151,681 is what FSDP1 would print" in out
    block = out[out.index("memory ") : out.index("data ")].splitlines()
    assert [line.split()[0] for line in block[1:]] == list(PerGpu.__struct_fields__)
    assert block[-1].endswith("of 22.00 (L4): fits")
    assert max(len(line) for line in block) < 80
    assert {line.index(".") for line in block[1:]} == {block[1].index(".")}
    out, _ = shell.run("plan")
    assert "(no GPU to compare with: --gpu NAME)" in out
    assert "2 of 4 readers idle: 2 shards for 2 ranks x 2 workers." in out
    lines = out.splitlines()
    assert max(len(line) for line in lines if "load_dataset" not in line) < 260
    # With each correction beside the plan as it is, no wider than a terminal.
    table = lines[lines.index(next(line for line in lines if line.startswith("corrections"))) :][:6]
    assert [line[:15].strip(" *") for line in table] == [
        *("corrections", "as it is", "indexed", "reshard", "fewer-workers", "more-files")
    ]
    assert table[2].startswith("* indexed") and max(map(len, table)) <= 80
    assert "does not help here  dataset.shard(num_shards=world_size * 4)" in out
