"""A checkpoint's model as one safetensors file and its description, to be used elsewhere.

    python -m trainer.export --checkpoints FOLDER [--step N] TO

Answers as `bitwatch.record.answers` says.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import bitwatch
from bitwatch.record import answers
from trainer import answering
from trainer.failures import Failed, NotFound

if TYPE_CHECKING:
    from trainer.weights import Weights


def export(weights: Weights, folder: Path) -> int:
    """Writes the whole of `folder` beside it and renames it; the bytes of the tensors.

    Raises NotFound when something is there already, Failed when it cannot be written.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    from trainer import checkpoint
    from trainer.model import count_parameters
    from trainer.weights import ARCHITECTURE, CONFIG, TENSORS, Exported

    free(folder)
    made = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        made.mkdir(parents=True)
        save_file(weights.model.state_dict(), made / TENSORS)
        tensors = checkpoint.hash_of(made / TENSORS)
        shape = weights.model.shape
        about = Exported(
            architecture=ARCHITECTURE,
            model=shape,
            parameters=count_parameters(weights.model),
            step=weights.step,
            bits="most significant bit first" + (", then even parity" if shape.parity else ""),
            parity=shape.parity,
            dtype="float32",
            bitwatch=bitwatch.__version__,
            torch=str(torch.__version__),
            files={TENSORS: tensors},
        )
        (made / CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(about)) + b"\n")
        shutil.copymode(made / CONFIG, made / TENSORS)  # what the umask says
        for name in (TENSORS, CONFIG):
            with open(made / name, "rb") as file:
                os.fsync(file.fileno())
        # An empty folder gives way; one that was filled meanwhile does not.
        os.rename(made, folder)
    except OSError as error:
        raise Failed(f"{folder}: cannot be written: {error.strerror}") from None
    except SafetensorError as error:
        raise Failed(f"{folder / TENSORS}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return tensors.bytes


def free(folder: Path) -> None:
    """Raises NotFound unless `folder` is not there, or is an empty folder."""
    if folder.is_dir():
        if any(folder.iterdir()):
            raise NotFound(f"{folder}: is not empty; name a folder that does not exist yet")
    elif folder.exists() or folder.is_symlink():
        raise NotFound(f"{folder}: is there and no folder; name one that does not exist yet")


def main() -> None:
    parser = answering.parser("trainer.export")
    parser.add_argument("to", type=Path)
    parsed = parser.parse_args()

    def work(tell: answering.Tell) -> str:
        from trainer import weights

        weights.need_safetensors()
        folder = parsed.to.resolve()
        free(folder)
        found = weights.of_checkpoints(
            parsed.checkpoints, parsed.step, lambda text: tell(answers.Said(text))
        )
        size = export(found, folder)
        return f"wrote the model of step {found.step} to {folder}: {size:,} bytes of float32"

    answering.answer(parsed, work)


if __name__ == "__main__":
    main()
