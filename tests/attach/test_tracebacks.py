"""What takes several lines to be said, by one rank or by several at once."""

from __future__ import annotations

import pytest

from bitwatch.attach.dialects import Listener
from tests.attach.hearing import heard, one


def test_a_traceback_is_one_exception_with_the_place_of_its_innermost_frame() -> None:
    text = """\
Traceback (most recent call last):
  File "/x/train.py", line 10, in <module>
    main()
  File "/x/data.py", line 5, in read
    raise KeyError(name)
KeyError: 'text'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/train.py", line 12, in <module>
    raise Odd("it")
odd.Odd: it
"""
    first, second = heard(text)
    assert (first.what, first.line.number) == ("exception", 6)
    assert first.values == {"type": "KeyError", "message": "'text'", "where": "/x/data.py:5"}
    assert second.values == {
        "type": "odd.Odd",
        "message": "it",
        "where": "/x/train.py:12",
        "after": "KeyError",
    }


@pytest.mark.parametrize("prefix", ["[rank{}]: ", "[default{}]:", "default{}]:"])
def test_tracebacks_of_several_ranks_in_one_log_are_told_apart(prefix: str) -> None:
    a, b = prefix.format(0), prefix.format(3)
    text = f"""\
{a}Traceback (most recent call last):
{b}Traceback (most recent call last):
{a}  File "a.py", line 1, in f
step 12 loss 3.2
{b}  File "b.py", line 2, in g
{a}    f()
{b}    g()
{b}RuntimeError: CUDA error
{a}ValueError: wrong
"""
    step, second, first = heard(text)
    assert step.what == "step"
    assert (second.values["rank"], second.values["where"]) == (3, "b.py:2")
    assert (first.values["rank"], first.values["type"]) == (0, "ValueError")


def test_an_exception_that_is_a_time_out_or_no_memory_is_said_to_be_that_with_its_place() -> None:
    text = """\
Traceback (most recent call last):
  File "a.py", line 7, in f
    dist.all_reduce(x)
  File "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 3252, in all_reduce
    work.wait()
RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete
"""
    what, values = one(text)
    assert what == "timeout"
    assert (values["seconds"], values["backend"], values["called_from"]) == (10, "gloo", "a.py:7")
    assert values["where"].endswith("distributed_c10d.py:3252")


def test_what_torchrun_reports_of_failures_in_its_own_words() -> None:
    """Its report is made by torch itself."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

    failures = {
        1: ProcessFailure(local_rank=1, pid=999_943, exitcode=-9, error_file="<N/A>"),
        0: ProcessFailure(local_rank=0, pid=999_942, exitcode=1, error_file="<N/A>"),
    }
    failures[1].timestamp = failures[0].timestamp - 5
    text = 'Traceback (most recent call last):\n  File "x.py", line 1, in y\n    z()\n'
    text += f"{ChildFailedError.__module__}.ChildFailedError: {ChildFailedError('train.py', failures)}\nafter\n"
    exception, other, root = heard(text)
    assert exception.values["type"] == f"{ChildFailedError.__module__}.ChildFailedError"
    assert (other.what, other.values["rank"], other.values["first"]) == ("failure", 0, 0)
    assert root.what == "failure"
    assert {key: root.values[key] for key in ("rank", "local_rank", "pid", "first")} == {
        "rank": 1,
        "local_rank": 1,
        "pid": 999_943,
        "first": 1,
    }
    assert (root.values["exit_code"], root.values["signal"]) == (-9, "SIGKILL")
    assert "exitcode" in root.line.text
    sieve = Listener().sieve()
    assert len(sieve.spans(text.encode())) == len(text.splitlines())
