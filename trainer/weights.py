"""A trained model on one process, out of a checkpoint of any number of ranks or an export.

Needs no process group, reads only the model's part of a checkpoint into the model itself, and
writes nothing: a run that is live does not notice. What does not match its sha256 is never
loaded.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from bitwatch import config as configuration
from trainer import checkpoint
from trainer import model as modelling
from trainer.failures import Failed, NotFound, sentence

CONFIG, TENSORS = "config.json", "model.safetensors"  # of an exported folder
ARCHITECTURE = "BitTransformerLM"
LOOKS = 3  # at a folder in which a live run may remove what is being read


class Exported(msgspec.Struct, kw_only=True):
    """The config.json of an exported folder. `bits` says in which order a byte's bits come."""

    architecture: str
    model: configuration.Model
    parameters: int
    step: int
    bits: str
    parity: bool
    dtype: str
    bitwatch: str
    torch: str
    files: dict[str, checkpoint.File]


@dataclasses.dataclass(frozen=True)
class Weights:
    """A whole model, float32 on the CPU, and after how many steps it was saved."""

    model: modelling.BitTransformerLM
    step: int


# ---------------------------------------------------------------------------------------
# Out of a run's checkpoints


def of_checkpoints(folder: Path, step: int | None, say: Callable[[str], None]) -> Weights:
    """The model of a step, or of the newest checkpoint that is whole and unchanged.

    `say` is told of each newer one that was passed over. Raises NotFound when there is none
    such, Failed when there is but it is damaged.
    """
    damaged: dict[Path, str] = {}
    for _ in range(LOOKS):
        there = [
            path
            for path in checkpoint.whole(folder)
            if path not in damaged and step in (None, checkpoint.step_of(path))
        ]
        for path in reversed(there):
            try:
                weights = _of_checkpoint(path)
            except Failed as error:
                if not (path / checkpoint.MANIFEST).exists():
                    break  # a live run has written a newer one and removed this: look again
                damaged[path] = f"{path.name} is damaged ({error})"
                continue
            for text in damaged.values():
                say(f"{text}; {path.name} is taken")
            return weights
        else:
            break
    raise _nothing(folder, step, [*damaged.values()])


def _of_checkpoint(path: Path) -> Weights:
    manifest = checkpoint.verified(path)
    where = path / checkpoint.MANIFEST
    try:
        recorded = manifest.config["model"]
        known = {
            key: recorded[key] for key in configuration.Model.__struct_fields__ if key in recorded
        }
        shape = msgspec.convert(known, configuration.Model)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise Failed(f"{where}: config.model: {sentence(error)}") from None
    model = _with_room(_on_meta(shape, where))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled")  # as is meant
            # In place: only one piece of one tensor is in memory beside the model.
            dcp.load({"model": model.state_dict()}, checkpoint_id=path, no_dist=True)
    except (Exception, CheckpointException) as error:  # torch's own is no Exception
        raise Failed(checkpoint.why(error)) from None
    return Weights(model, manifest.counters.step)


def _nothing(folder: Path, step: int | None, damaged: list[str]) -> Failed:
    if damaged:
        return Failed(f"{folder}: {'; '.join(damaged)}; no other checkpoint can be taken")
    if condemned := [
        path.parent.name
        for path in sorted(folder.glob(f"step-*/{checkpoint.DAMAGED}"))
        if step is None or path.parent.name == f"step-{step}"
    ]:
        found = ", ".join(condemned)
        return Failed(f"{folder}: {found} was found damaged; no other checkpoint can be taken")
    steps = [checkpoint.step_of(path) for path in checkpoint.whole(folder)]
    if step is not None and steps:
        some = ", ".join(f"{number}" for number in steps)
        return NotFound(f"{folder}: there is no whole checkpoint of step {step}, only of {some}")
    return NotFound(
        f"{folder}: there is no whole checkpoint yet; a run writes one every checkpoint.every "
        "steps and at its end"
    )


# ---------------------------------------------------------------------------------------
# Out of an exported folder


def of_export(folder: Path, step: int | None = None) -> Weights:
    """The model of a folder that `trainer.export` wrote. Raises NotFound or Failed."""
    need_safetensors()
    from safetensors import SafetensorError, safe_open

    about = _about(folder)
    if step not in (None, about.step):
        raise NotFound(f"{folder}: holds the model of step {about.step} only, not of {step}")
    path = folder / TENSORS
    try:
        if checkpoint.hash_of(path) != about.files.get(TENSORS):
            raise Failed(f"{path}: is damaged: it does not match its sha256 in {CONFIG}")
        with safe_open(path, framework="pt") as file:
            names = file.keys()  # the file itself is no mapping
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
            # Nothing that is larger than the file is built, whatever config.json says.
            fits = about.model.layers <= len(shapes)
            model = _on_meta(about.model, folder / CONFIG) if fits else None
            if not model or shapes != {n: tuple(t.shape) for n, t in model.state_dict().items()}:
                raise Failed(f"{path}: its tensors are not those of the model in {CONFIG}")
            for name, tensor in _with_room(model).state_dict().items():
                tensor.copy_(file.get_tensor(name))
    except OSError as error:
        raise Failed(f"{path}: {error.strerror or error}") from None
    except SafetensorError as error:
        raise Failed(f"{path}: {sentence(error)}") from None
    return Weights(model, about.step)


def need_safetensors() -> None:
    """Raises NotFound where the package, which is optional, is not installed."""
    try:
        import safetensors  # noqa: F401
    except ImportError:
        raise NotFound(
            "the package safetensors is not installed; pip install 'bitwatch[export]' brings it"
        ) from None


def _about(folder: Path) -> Exported:
    path = folder / CONFIG
    try:
        about = msgspec.json.decode(path.read_bytes(), type=Exported)
    except OSError as error:
        raise NotFound(f"{path}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Failed(f"{path}: is not of an exported model: {error}") from None
    if about.architecture != ARCHITECTURE:
        raise Failed(f"{path}: architecture: {about.architecture!r} is not {ARCHITECTURE}")
    return about


# ---------------------------------------------------------------------------------------
# A model with room for them


def _on_meta(shape: configuration.Model, where: Path) -> modelling.BitTransformerLM:
    """Without memory. Raises Failed for a shape that no model has."""
    sizes = (shape.d_model, shape.heads, shape.layers, shape.feedforward)
    whole_bytes = configuration.bytes_per_sequence(shape)
    possible = min(*sizes, whole_bytes) >= 1 and shape.d_model % (2 * shape.heads) == 0
    try:
        with torch.device("meta"):
            model = modelling.build_model(shape) if possible else None
    except Exception:  # sizes beyond what torch can count
        model = None
    if model is None:
        raise Failed(f"{where}: model: no model has this shape")
    return model


def _with_room(model: modelling.BitTransformerLM) -> modelling.BitTransformerLM:
    """With memory, and not yet any values."""
    return model.to_empty(device="cpu").requires_grad_(False).eval()
