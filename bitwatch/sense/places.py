"""What the frames of a rank mean: where it waits, in words. Pure.

The innermost frame that a rule knows decides; what lies around it says for what. A place that no
rule knows is told by its own function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bitwatch.record.waits import Wait
from bitwatch.sense.stacks import Frame, Look, Thread

FRAMES_TOLD = 12  # of the main thread, in the evidence
INNERMOST = 3  # of them that are told whatever they are
TELLING = re.compile(r"/torch/|/trainer/|-packages/")
DIRECTORIES = 3  # of a file's path, that tell it from others

C10D = re.compile(r"/torch/distributed/(distributed_c10d|c10d_logger)\.py$")
STARTS = ("init_process_group", "new_group", "split_group")
FSDP = re.compile(r"/torch/distributed/fsdp/")
# What versions of torch call the same collective, of which one name is told.
GATHERS = ("all_gather_single", "all_gather_into_tensor", "_all_gather_base")
SCATTERS = ("reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base")
ONE_NAME = dict.fromkeys(GATHERS, "all_gather") | dict.fromkeys(SCATTERS, "reduce_scatter")
OF_FSDP = {"all_gather": "FSDP's all-gather", "reduce_scatter": "FSDP's reduce-scatter"}
IMPORT = re.compile(r"<frozen importlib\._bootstrap")
BACKWARD = re.compile(r"/torch/autograd/graph\.py$")


class Rule(NamedTuple):
    """Of a frame whose file and function both match."""

    file: re.Pattern[str]
    function: re.Pattern[str]
    kind: str
    where: str


def _rule(file: str, function: str, kind: str, where: str) -> Rule:
    return Rule(re.compile(file), re.compile(function), kind, where)


RULES = (
    _rule(r"/torch/utils/data/dataloader\.py$", "_(try_)?get_data|_next_data|_reset", "data", "DataLoader queue.get"),
    _rule(r"/torch/utils/data/dataloader\.py$", "__init__|_get_iterator", "data", "the start of its dataloader workers"),
    _rule(r"/torch/utils/data/dataloader\.py$", "_shutdown_workers|__del__", "data", "the end of its dataloader workers"),
    _rule(r"/trainer/agreement\.py$", "heard", "collective", "the ranks' agreement (all_reduce)"),
    _rule(r"/trainer/parallel\.py$", "meet", "collective", "the ranks' last meeting (monitored_barrier)"),
    _rule(r"/torch/distributed/(rendezvous|elastic/.*)\.py$", ".*", "collective", "the start of the other ranks"),
    _rule(r"/torch/distributed/_functional_collectives\.py$", "wait_tensor", "collective", "a collective (wait_tensor)"),
    # Before and after its collectives, which are frames of c10d, it copies.
    _rule(r"/_fully_shard/_fsdp_\w+\.py$", ".*", "busy", "FSDP's copies of weights and gradients"),
    _rule(r"/torch/_dynamo/(convert_frame|output_graph|symbolic_convert)\.py$", ".*", "compile", "torch.compile"),
    _rule(r"/torch/_inductor/compile_fx\.py$", ".*compile.*", "compile", "torch.compile"),
    _rule(r"/torch/_inductor/(codecache|async_compile|graph|scheduler|compile_worker/.*|codegen/.*)\.py$", ".*", "compile", "torch.compile"),
    _rule(r"/triton/compiler/", ".*", "compile", "the compiler of Triton"),
    _rule(r"/trainer/(saving|checkpoint|weights)\.py$", ".*", "checkpoint", "a checkpoint"),
    _rule(r"/torch/distributed/checkpoint/", ".*", "checkpoint", "a checkpoint"),
    _rule(r"/torch/cuda/.*\.py$", "synchronize|wait", "busy", "what its GPU computes"),
    _rule(r"/trainer/parallel\.py$", "read", "busy", "what its GPU computes"),
    _rule(r"/trainer/data/|-packages/datasets/", ".*", "data", "its own read of the text"),
)  # fmt: skip
AROUND = (
    (re.compile(r"/trainer/saving\.py$|/torch/distributed/checkpoint/"), ", for a checkpoint"),
    (re.compile(r"/trainer/evaluate\.py$"), ", in an evaluation"),
)


def wait_of(look: Look, since_s: float | None = None) -> Wait:
    """Where this rank was when it was looked at."""
    rank = look.target.rank
    if look.threads:
        kind, where = place(look.threads, look.works)
        return Wait(rank, kind, where, since_s, _telling(look.threads[0].frames))
    evidence = [f"wchan {look.wchan}"] if look.wchan else []
    if look.why:
        evidence.append(look.why)
    if not look.state:
        return Wait(rank, "ended", "", since_s, [look.why])
    if look.state in "Tt":
        return Wait(rank, "stopped", "", since_s, evidence)
    if look.state == "D":
        return Wait(rank, "kernel", look.wchan, since_s, evidence)
    if look.works:
        return Wait(rank, "busy", "", since_s, evidence)
    return Wait(rank, "unknown", look.wchan, since_s, evidence)


def _telling(frames: Sequence[Frame]) -> list[str]:
    """The innermost ones, and of the others those that are not Python's own: a wait for a pipe
    alone is ten frames of its library."""
    few = [
        frame
        for at, frame in enumerate(frames)
        if at < INNERMOST or TELLING.search(frame.file) or frame.function == "<module>"
    ]
    return [short(frame) for frame in few[:FRAMES_TOLD]]


def place(threads: Sequence[Thread], works: bool) -> tuple[str, str]:
    """kind and name of the main thread's place. `works`: it uses a processor."""
    frames = threads[0].frames
    found = _known(frames)
    if found is None and frames and BACKWARD.search(frames[0].file):
        # On a GPU another thread computes the gradients, and waits in the hooks of FSDP.
        others = (_known(thread.frames) for thread in threads[1:])
        found = next((other for other in others if other and other[0] == "collective"), None)
    if found is not None:
        return found
    if not frames:
        return "unknown", ""
    return ("busy" if works else "other"), short(frames[0])


def _known(frames: Sequence[Frame]) -> tuple[str, str] | None:
    for at, frame in enumerate(frames):
        if C10D.search(frame.file) and (name := _collective(frames[at:])):
            if name in STARTS:
                return "collective", f"the start of the other ranks ({name})"
            return "collective", name + _around(frames[at:])
        if IMPORT.match(frame.file):
            return "other", f"the import of {_imported(frames[:at], frames[at:])}"
        for rule in RULES:
            if rule.file.search(frame.file) and rule.function.fullmatch(frame.function):
                around = _around(frames[at:]) if rule.kind in ("collective", "data") else ""
                return rule.kind, rule.where + around
    return None


def _collective(frames: Sequence[Frame]) -> str:
    """The function that was called from outside: it stands for those that it calls itself. Empty
    where only the wrapper around one is seen: it has not begun, or is over."""
    name = ""
    for frame in frames:
        if not C10D.search(frame.file):
            break
        if frame.function != "wrapper" and not (name and frame.function.startswith("_")):
            name = frame.function
    name = ONE_NAME.get(name, name)
    if name and any(FSDP.search(frame.file) for frame in frames):
        return OF_FSDP.get(name, f"{name} (FSDP)")
    return name


def _around(frames: Sequence[Frame]) -> str:
    return next(
        (words for file, words in AROUND if any(file.search(frame.file) for frame in frames)), ""
    )


def _imported(inside: Sequence[Frame], outside: Sequence[Frame]) -> str:
    """The file whose import hangs, or the one that asks for another."""
    modules = [f for f in (*reversed(inside), *outside) if f.function == "<module>"]
    return _file(modules[0].file) if modules else "a module"


def short(frame: Frame) -> str:
    return f"{frame.function} ({_file(frame.file)}:{frame.line})"


def _file(path: str) -> str:
    return "/".join(path.split("/")[-DIRECTORIES:])
