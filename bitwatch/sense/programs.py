"""What a command line is to somebody who looks for trainings: a launcher of them, or a program
that has torch and trains nothing."""

from __future__ import annotations

import os
import re

from bitwatch.sense.roles import PLAIN, PYTHON, SPACED, role_of_command

INSTALLED = rf"(?:{SPACED}bin/|{PLAIN})"

# Both tables: what follows Python and its options, and what people call it.
LAUNCHERS = [
    (re.compile(pattern, re.DOTALL), name)
    for pattern, name in (
        (r"-m ?torch\.distributed\.(?:run|launch)(?: |$)", "torchrun"),
        (rf"{INSTALLED}torchrun(?: |$)", "torchrun"),
        (rf"{INSTALLED}accelerate(?:-launch| launch)(?: |$)", "accelerate launch"),
        (r"-m ?accelerate\.commands\.(?:accelerate_cli +)?launch(?: |$)", "accelerate launch"),
        (r"-m ?deepspeed\.launcher\.(?:runner|launch)(?: |$)", "deepspeed"),
        (rf"{INSTALLED}deepspeed(?: |$)", "deepspeed"),
        (rf"{INSTALLED}fabric run(?: |$)", "fabric run"),
    )
]
OTHERS = [
    (re.compile(pattern, re.DOTALL), name)
    for pattern, name in (
        (r"-m ?ipykernel(?:_launcher)?(?: |$)", "a Jupyter kernel"),
        (rf"{INSTALLED}(?:ipython3?|jupyter[a-z-]*)(?: |$)", "Jupyter"),
        (rf"(?:-m ?|{INSTALLED})(?:pip[\d.]*|uv|conda|mamba)(?: |$)", "an installation"),
        (rf"(?:-m ?|{INSTALLED})(?:pytest|py\.test)(?: |$)", "a run of tests"),
        (r"-c ?import sys;exec\(eval\(sys\.stdin", "a run of tests"),
        (rf"(?:-m ?|{INSTALLED})tensorboard(?:\.main)?(?: |$)", "TensorBoard"),
        (rf"(?:-m ?|{INSTALLED})(?:vllm|sglang)[. ]", "a server of models"),
        (rf"(?:-m ?|{INSTALLED})(?:uvicorn|gunicorn|streamlit)(?: |$)", "a web server"),
    )
]
SHELLS = frozenset(("bash", "sh", "dash", "zsh", "fish", "ksh", "tcsh", "csh", "busybox"))


def launcher(command: str) -> str:
    """The launcher of trainings that this is, empty for none."""
    return _named(LAUNCHERS, command)


def other_program(command: str) -> str:
    """What this is that may well have torch and is no training, empty for none."""
    return _named(OTHERS, command)


def is_forkserver(command: str) -> bool:
    """Whether it is one, or a worker that is a copy of it."""
    return role_of_command(command) == "worker" and ".forkserver import main" in command


def words_for(name: str, command: str) -> str:
    """What a process is, in a few words."""
    if known := launcher(command) or other_program(command):
        return known
    if name in SHELLS:
        return f"{name}, a shell"
    python = PYTHON.match(command)
    program = command[python.end() :].split(" ", 1)[0] if python else ""
    if program and not program.startswith("-"):
        return f"Python on {os.path.basename(program)}"
    return name


def _named(table: list[tuple[re.Pattern[str], str]], command: str) -> str:
    python = PYTHON.match(command)
    if python is None:
        return ""
    return next((name for program, name in table if program.match(command, python.end())), "")
