"""What a line of a log says: the words that dialects translate into. Knows no dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Value = float | int | str

What = Literal[
    "step",  # one step, or one line of progress
    "evaluation",
    "checkpoint",
    "target",  # how many parameters are wanted
    "built",  # how many parameters there are, as somebody counted them
    "configuration",
    "hardware",
    "begins",  # a training, or a training loop, begins
    "done",  # it says itself that it has finished
    "restart",  # of its ranks, by torchrun or alike
    "workers-exceed-shards",
    "failure",  # torchrun's own report: which rank failed first, and how
    "exception",  # the last line of a Python traceback
    "out-of-memory",
    "timeout",  # of a collective
    "signal",  # a process was ended by one, as a launcher says
    "warning",
    "error",
]

# The values that each of them may have, beside the line itself. All are optional but those of
# `target` and `built`. Any of them may have `rank`, where the line's prefix names who printed it.
#
# step: step, steps, epoch (a float), loss, learning_rate, grad_norm, step_s, tokens_per_s,
#       samples_per_s, tokens, mfu (0 to 1), eta_s; a loss may be nan or inf
# evaluation: step, epoch, loss, perplexity, bits_per_byte
# checkpoint: step, path, seconds          begins: step          done: runtime_s
# target, built: parameters; built also `shard` (1: the line says that it is one rank's part)
# configuration: the keys that it names     hardware: gpus (how many), name
# restart: attempt, restarts_left           workers-exceed-shards: workers, shards, stopped
# failure: rank, local_rank, pid, exit_code, signal (a name), host, time, message, and in the
#       report at the end `first` (1: the root cause, 0: one that followed)
# exception: type, message, where (file:line of the innermost frame), called_from (of the
#       innermost one outside the libraries, if that is another), after (the type of the exception
#       during which it happened), aside (1: of a thread, or of a program that is ending, which
#       no such exception ends)
# out-of-memory: gpu, wanted_mib, free_mib, where ("cuda" or "host"), pid, name; at the end of a
#       traceback, as a timeout or signal there, with the values of an exception, whose `where`
#       does not replace "cuda" or "host"
# timeout: backend ("nccl" or "gloo"), operation, rank, seconds, sequence
# signal: pid, signal (a name), rank
# error, warning: message, type, backend


class Line(NamedTuple):
    """One line of a log, fit to be shown: without colours and control characters, cut where it
    is very long. `number` counts from 1 in its file; 0 where the beginning was not read. `t` is
    the wall-clock time that it bears (local time, as loggers write it), None without one."""

    text: str
    number: int = 0
    t: float | None = None
    source: str = ""  # the file


class Said(NamedTuple):
    what: What
    line: Line
    dialect: str
    values: Mapping[str, Value] = {}
