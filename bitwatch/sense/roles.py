"""What a command line says a process is for. Only Python at work on a program that we or its
libraries start has a role: a search or an editor that names one has none.

A forked worker has the command line of the rank that it is a copy of. The name that PyTorch
gives it tells them apart; other copies only their parent does.
"""

from __future__ import annotations

import re

READER_NAME = "pt_data_worker"  # as a dataloader worker calls its thread, in torch >= 2.6

# Of a command line with spaces between its words it cannot be told where a path with spaces
# ends. Python's own may have some, the installed packages' too; any other program's may not:
# `/bin/python /bin/black src/trainer/train.py` is no rank.
SPACED = r"/(?:(?! [-/]).)*/"
PLAIN = r"(?:[^ ]*/)?"
INSTALLED = rf"(?:{SPACED}site-packages/|{PLAIN})"
OPTION = r"(?:-[bBdEhiIOPqRsSuvVx]+|-[WX] ?[^ ]+|--check-hash-based-pycs [a-z]+) +"
PYTHON = re.compile(
    rf"(?:{SPACED}|{PLAIN})(?:python|pypy)[\d.]*[dt]*(?:-[a-z]+)? +(?:{OPTION})*", re.DOTALL
)

# What follows the options of Python, and the role that it means.
PROGRAMS = [
    (re.compile(pattern, re.DOTALL), role)
    for pattern, role in (
        (r"-m ?torch\.distributed\.(?:run|launch)(?: |$)", "agent"),
        (r"-m ?bitwatch\.supervise\.launch(?: |$)", "agent"),
        (rf"{PLAIN}torchrun(?: |$)", "agent"),
        (r"-m ?bitwatch\.supervise\.supervisor(?: |$)", "supervisor"),
        (r"-m ?bitwatch\.sense\.gpus(?: |$)", "sensor"),
        (rf"{INSTALLED}trainer/train\.py(?: |$)", "rank"),
        (rf"{INSTALLED}trainer/prepare\.py(?: |$)", "prepare"),
        (r"-c ?from multiprocess(?:ing)?\.resource_tracker import main", "resource tracker"),
        (r"-c ?from multiprocess(?:ing)?\.spawn import spawn_main", "worker"),
        (r"-c ?from multiprocess(?:ing)?\.forkserver import main", "worker"),
        (rf"{INSTALLED}torch/_inductor/compile_worker/__main__\.py(?: |$)", "compile worker"),
        (r"-m ?torch\._inductor\.compile_worker(?: |$)", "compile worker"),
    )
]


def role_of_command(command: str, name: str = "") -> str:
    """`command`: the words with spaces between them. `name`: as in its stat, where known.
    "other" is what has no role."""
    python = PYTHON.match(command)
    if python is None:
        return "other"
    if name == READER_NAME:
        return "worker"
    for program, role in PROGRAMS:
        if program.match(command, python.end()):
            return role
    return "other"
