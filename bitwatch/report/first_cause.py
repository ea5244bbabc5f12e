"""Which of the things that went wrong in an attempt ended it: not what the training survived,
and not what others say because it has failed already."""

from __future__ import annotations

from bitwatch.attach.said import Line, Said
from bitwatch.record.view import is_echo as sounds_like_an_echo
from bitwatch.report.facts import Attempt, StepRun, Story, position_of

CAUSES = ("out-of-memory", "exception", "timeout", "failure", "signal")
ECHOES = (  # what other ranks and launchers say because the first one has failed
    "ChildFailedError", "DistBackendError", "DistNetworkError", "BrokenPipeError",
    "ConnectionResetError", "SystemExit",
)  # fmt: skip
CRASHES = ("SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")  # no rank does that as an echo
STOPS = ("SIGTERM", "SIGINT", "SIGHUP")


def first_cause(story: Story, attempt: Attempt) -> Said | None:
    """The first thing that went wrong and stayed so, before what others say because of it."""
    problems = standing(story, attempt)
    if not problems:
        return None
    own = [said for said in problems if not is_echo(said)]
    if own and is_stop(own[0]):
        return own[0]  # what is lost after it is lost because of it
    cause = min(problems, key=_place)
    if cause.what == "failure" and "rank" not in cause.values and "pid" in cause.values:
        return next((said for said in problems if _names_rank_of(said, cause)), cause)
    return cause


def _names_rank_of(said: Said, failure: Said) -> bool:
    """Whether it is torchrun's report at the end about the same process."""
    same = said.values.get("pid") == failure.values.get("pid")
    return said.what == "failure" and same and "rank" in said.values


def has_own_cause(story: Story, attempt: Attempt) -> bool:
    """Whether it names a cause that explains the time-outs and lost connections of others."""
    cause = first_cause(story, attempt)
    return cause is not None and cause.what != "timeout" and not is_echo(cause)


def standing(story: Story, attempt: Attempt) -> list[Said]:
    """What went wrong without the training going on, or having finished, after it."""
    last = last_step(story, attempt)
    found = [said for said in attempt.problems if _may_be_cause(said)]
    found = [said for said in found if not _went_on(story, attempt, said, last)]
    done = finished(story, attempt)
    if done is not None:
        after = [said for said in found if is_later(story, said.line, done.line)]
        broken = any(_breaks_the_end(said) for said in after)
        found = [said for said in after if broken and "aside" not in said.values]
    if not any(said.what == "failure" for said in found):
        found = [said for said in found if not _is_bare(said)]
    return found


def _breaks_the_end(said: Said) -> bool:
    """Whether it keeps a training that has finished from what it does at last, as to save."""
    if said.what == "failure":
        return True
    raised = said.what in ("exception", "out-of-memory") and bool(said.values.get("where"))
    return raised and "aside" not in said.values and not is_echo(said)


def survived(story: Story, attempt: Attempt) -> list[Said]:
    """What looks like a cause, and neither ended the training nor kept it from finishing."""
    last, done = last_step(story, attempt), finished(story, attempt)
    stands = {said.line for said in standing(story, attempt)}
    return [
        said
        for said in attempt.problems
        if _may_be_cause(said)
        and said.line not in stands
        and not _is_bare(said)
        and (done is not None or _went_on(story, attempt, said, last))
    ]


def _went_on(story: Story, attempt: Attempt, end: Said, last: Said | None) -> bool:
    """Whether steps of the same attempt follow upon it, in its log or in the next one."""
    place = _where(story, end.line)[0]
    later = last is not None and _where(story, last.line)[0] > place
    if last is not None and later and _is_known_later(story, attempt, end, last):
        return True
    shown = story.logs[place].went_on.get(end.line.number) if place >= 0 else None
    following = story.attempts[attempt.number :]
    return shown is not None and not (
        following and is_later(story, shown.line, following[0].begins)
    )


def _is_known_later(story: Story, attempt: Attempt, end: Said, last: Said) -> bool:
    """Whether a step of a later log is one: it bears a time as the end does, or its number goes
    on from the log of that end. A traceback bears no time, so its log's last one stands for it."""
    place = _where(story, end.line)[0]
    ended = end.line.t if end.line.t is not None or place < 0 else story.logs[place].ends
    if ended is not None and last.line.t is not None:
        return last.line.t >= ended
    here = [run.last for run in attempt.steps if _where(story, run.last.line)[0] <= place]
    before, now = position_of(here[-1]) if here else None, position_of(last)
    return before is not None and now is not None and now > before


def may_have_gone_on(story: Story, end: Said) -> bool:
    """Whether steps stand after it that may as well have waited in a buffer."""
    return any(
        log.path == end.line.source and end.line.number in log.buffered for log in story.logs
    )


def last_step(story: Story, attempt: Attempt) -> Said | None:
    runs: list[StepRun] = attempt.steps
    return max((run.last for run in runs), key=lambda said: _where(story, said.line), default=None)


def finished(story: Story, attempt: Attempt) -> Said | None:
    """Its own word that it has finished, if the training did not go on after that."""
    done = attempt.done
    if done is None or _went_on(story, attempt, done, last_step(story, attempt)):
        return None
    return done


def is_later(story: Story, line: Line, than: Line) -> bool:
    return _where(story, line) > _where(story, than)


def is_echo(said: Said) -> bool:
    """Whether it says only that another rank was lost, or what became of others after that."""
    if said.what == "failure":
        return said.values.get("first") == 0 or said.values.get("signal") in STOPS
    if said.what != "exception":
        return False
    return _type(said) in ECHOES or sounds_like_an_echo(said.line.text)


def is_stop(said: Said) -> bool:
    """Whether it is how Python and torchrun say that somebody has stopped them."""
    if said.what == "failure":
        return False
    return _type(said) in ("KeyboardInterrupt", "SignalException") or (
        said.what == "signal" and "SignalException" in said.line.text
    )


def _may_be_cause(said: Said) -> bool:
    """That a launcher ends the others is never a cause."""
    closing = said.what == "signal" and said.dialect == "torchrun" and not is_stop(said)
    return said.what in CAUSES and not closing


def _is_bare(said: Said) -> bool:
    """A line that looks like the end of a traceback, without one: it may be of a text that is
    trained on, unless it bears a rank or the name of a module."""
    if said.what != "exception" or is_stop(said):
        return False
    values = said.values
    return not values.get("where") and "rank" not in values and "." not in str(values.get("type"))


def _place(said: Said) -> int:
    """Of two at the same place the one that was said first counts."""
    if is_stop(said):
        return 2
    if is_echo(said):
        return 4 if said.what == "failure" else 3
    if said.what in ("exception", "out-of-memory") or _of_worker(said):
        return 0
    return 1 if said.values.get("signal") in CRASHES else 2


def _of_worker(said: Said) -> bool:
    return said.what == "signal" and said.dialect == "python"


def _type(said: Said) -> str:
    return str(said.values.get("type", "")).rpartition(".")[2]


def _where(story: Story, line: Line) -> tuple[int, int]:
    """Its place among all lines of the logs that continue each other."""
    paths = [log.path for log in story.logs]
    return (paths.index(line.source) if line.source in paths else -1, line.number)
