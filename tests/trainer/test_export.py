"""A model out of a run: read by one process from checkpoints, exported, and read again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import checkpoint, optim, parallel, saving, weights
from trainer import model as modelling
from trainer.export import export
from trainer.failures import Failed, NotFound

WINDOW = (torch.arange(128) % 3 % 2).byte().view(2, 64)


@pytest.fixture(scope="module")
def save(place: parallel.Place, small: Callable[..., Any]) -> Callable[[Path, int], dict[str, Any]]:
    """Saves a model of its own as a step into a folder; returns its weights."""

    def saved(folder: Path, step: int) -> dict[str, Any]:
        config = small(checkpoint={"keep": 9})
        with torch.device("meta"):
            model = modelling.build_model(config.model)
        parallel.shard(model, place, config.parallel, seed=step)
        for parameter in model.parameters():
            torch.nn.init.normal_(parallel.local_part(parameter.detach()))
        optimizer = optim.build(model, config.train)
        saver = saving.Saver(folder, place, config)
        saver.begin(model, optimizer, checkpoint.Counters(step=step))
        saver.wait()
        return {name: parallel.local_part(t) for name, t in model.state_dict().items()}

    return saved


def refuse(text: str) -> None:
    raise AssertionError(text)


def damage(path: Path) -> str:
    """Flips a bit of the file with the tensors; its name."""
    (victim,) = path.glob("*.distcp")
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    return victim.name


# ---------------------------------------------------------------------------------------
# From checkpoints


def test_the_newest_or_the_asked_one_is_read_bitwise(
    save: Callable[..., Any], tmp_path: Path
) -> None:
    saved = {step: save(tmp_path, step) for step in (1, 2)}
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for asked, step in ((None, 2), (2, 2), (1, 1)):
        found = weights.of_checkpoints(tmp_path, asked, refuse)
        assert found.step == step
        state = found.model.state_dict()
        assert state.keys() == saved[step].keys()
        assert all(torch.equal(state[name], saved[step][name]) for name in state)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    with pytest.raises(NotFound, match="no whole checkpoint of step 3, only of 1, 2"):
        weights.of_checkpoints(tmp_path, 3, refuse)


def test_a_damaged_one_is_named_and_never_read(save: Callable[..., Any], tmp_path: Path) -> None:
    save(tmp_path, 1)
    save(tmp_path, 2)
    save(tmp_path, 3)
    (tmp_path / "step-3" / checkpoint.MANIFEST).unlink()  # a save that is under way
    name = damage(tmp_path / "step-2")
    said: list[str] = []
    assert weights.of_checkpoints(tmp_path, None, said.append).step == 1
    assert said == [f"step-2 is damaged ({name} has changed); step-1 is taken"]
    with pytest.raises(Failed, match=f"step-2 is damaged .{name} has changed") as refused:
        weights.of_checkpoints(tmp_path, 2, refuse)
    assert not isinstance(refused.value, NotFound)
    damage(tmp_path / "step-1")
    with pytest.raises(Failed, match=r"step-2 is damaged.*step-1 is damaged.*no other"):
        weights.of_checkpoints(tmp_path, None, refuse)
    # One that a resume has found damaged before is still one that was damaged.
    for step in (1, 2):
        manifest = tmp_path / f"step-{step}" / checkpoint.MANIFEST
        manifest.rename(manifest.with_name(checkpoint.DAMAGED))
    with pytest.raises(Failed, match="step-1, step-2 was found damaged"):
        weights.of_checkpoints(tmp_path, None, refuse)


def test_a_run_that_removes_what_is_read_is_looked_at_again(
    save: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)
    verified = checkpoint.verified

    def while_the_run_goes_on(path: Path) -> Any:
        if path.name == "step-1":
            save(tmp_path, 2)
            saving.prune(tmp_path, 1)
        return verified(path)

    monkeypatch.setattr(checkpoint, "verified", while_the_run_goes_on)
    assert weights.of_checkpoints(tmp_path, None, refuse).step == 2


def test_nothing_to_read_is_a_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(NotFound, match="no whole checkpoint yet"):
            weights.of_checkpoints(folder, None, refuse)


# ---------------------------------------------------------------------------------------
# Exported


@pytest.fixture(scope="module")
def found(save: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> weights.Weights:
    folder = tmp_path_factory.mktemp("checkpoints")
    save(folder, 7)
    return weights.of_checkpoints(folder, None, refuse)


def test_an_export_says_the_same_logits_bitwise(found: weights.Weights, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "model"
    size = export(found, folder)
    assert sorted(os.listdir(folder)) == ["config.json", "model.safetensors"]
    assert os.listdir(folder.parent) == ["model"]
    assert size == (folder / "model.safetensors").stat().st_size
    back = weights.of_export(folder)
    assert back.step == 7
    assert torch.equal(back.model(WINDOW), found.model(WINDOW))
    about = json.loads((folder / "config.json").read_text())
    assert about["architecture"] == "BitTransformerLM"
    assert about["parameters"] == modelling.count_parameters(found.model)
    assert (about["step"], about["dtype"], about["parity"]) == (7, "float32", False)
    assert about["model"]["d_model"] == 16
    assert about["bits"] == "most significant bit first"
    with pytest.raises(NotFound, match="holds the model of step 7 only"):
        weights.of_export(folder, step=8)


def test_nothing_that_is_there_is_overwritten(found: weights.Weights, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    for name in ("file", "full"):
        with pytest.raises(NotFound, match=f"{name}: is "):
            export(found, tmp_path / name)
    (tmp_path / "empty").mkdir()
    export(found, tmp_path / "empty")
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "full"]
    assert os.listdir(tmp_path / "full") == ["file"]


def test_an_export_that_fails_leaves_nothing(
    found: weights.Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else fills the folder while the tensors are written."""
    folder, hashed = tmp_path / "model", checkpoint.hash_of

    def meanwhile(path: Path) -> Any:
        folder.mkdir()
        (folder / "other").write_text("mine")
        return hashed(path)

    monkeypatch.setattr(checkpoint, "hash_of", meanwhile)
    with pytest.raises(Failed, match="model: cannot be written: Directory not empty"):
        export(found, folder)
    assert os.listdir(tmp_path) == ["model"]
    assert os.listdir(folder) == ["other"]


def test_an_export_that_was_changed_is_refused(found: weights.Weights, tmp_path: Path) -> None:
    export(found, tmp_path)
    tensors, about = tmp_path / "model.safetensors", tmp_path / "config.json"
    data, told = tensors.read_bytes(), json.loads(about.read_text())
    tensors.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(Failed, match=r"model.safetensors: is damaged"):
        weights.of_export(tmp_path)
    tensors.write_bytes(data)
    for change, said in (
        ({"layers": 10**9}, "its tensors are not those"),
        ({"layers": 1}, "its tensors are not those"),
        ({"feedforward": 33}, "its tensors are not those"),
        ({"d_model": 10**40}, "no model has this shape"),
        ({"heads": 3}, "no model has this shape"),
        ({"context": 0}, "no model has this shape"),
        ({"rope": True}, "rope"),
    ):
        about.write_text(json.dumps({**told, "model": {**told["model"], **change}}))
        with pytest.raises(Failed, match=said):
            weights.of_export(tmp_path)
    about.write_text(json.dumps({**told, "architecture": "GPT"}))
    with pytest.raises(Failed, match="'GPT' is not BitTransformerLM"):
        weights.of_export(tmp_path)
    about.write_text("{}")
    with pytest.raises(Failed, match=r"config.json: is not of an exported model"):
        weights.of_export(tmp_path)
    about.unlink()
    with pytest.raises(NotFound, match=r"config.json: No such file"):
        weights.of_export(tmp_path)


def test_without_safetensors_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)  # what an import of it then finds
    with pytest.raises(NotFound, match=r"pip install 'bitwatch\[export\]'"):
        weights.of_export(tmp_path)
