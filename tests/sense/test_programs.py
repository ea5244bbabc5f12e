"""Launchers, and programs that are no training, are known by their command lines."""

from __future__ import annotations

import pytest

from bitwatch.sense.programs import launcher, other_program


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/venv/bin/python /venv/bin/torchrun --nproc-per-node 4 train.py", "torchrun"),
        ("python3 -m torch.distributed.run --standalone train.py", "torchrun"),
        ("python -u -m torch.distributed.launch train.py", "torchrun"),
        ("/a b/bin/python3.11 /a b/bin/accelerate launch train.py", "accelerate launch"),
        ("python -m accelerate.commands.launch train.py", "accelerate launch"),
        ("python -m accelerate.commands.accelerate_cli launch train.py", "accelerate launch"),
        ("/venv/bin/python /venv/bin/deepspeed train.py", "deepspeed"),
        ("python -u -m deepspeed.launcher.launch --world_info=x train.py", "deepspeed"),
        ("python /venv/bin/accelerate config", ""),
        ("grep torchrun", ""),
        ("python torchrun_log.py", ""),
        ("vim /venv/bin/torchrun", ""),
    ],
)
def test_launchers_are_known_by_their_command_lines(command: str, name: str) -> None:
    assert launcher(command) == name


@pytest.mark.parametrize(
    ("command", "is_other"),
    [
        ("python -m ipykernel_launcher -f kernel.json", True),
        ("/venv/bin/python /venv/bin/jupyter-lab --no-browser", True),
        ("/venv/bin/python /venv/bin/pip install torch", True),
        ("python -m pip install torch", True),
        ("python -m pytest -q", True),
        ("python -m vllm.entrypoints.openai.api_server", True),
        ("python train.py", False),
        ("python pip_train.py", False),
        ("python -m trainer.train", False),
    ],
)
def test_programs_that_have_torch_and_do_not_train_are_known(command: str, is_other: bool) -> None:
    assert bool(other_program(command)) == is_other
