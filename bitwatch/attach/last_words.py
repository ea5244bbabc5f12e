"""How a training ended, as far as its log says: the first failure that is no echo of another, or
that it has finished. What steps follow upon was not the end."""

from __future__ import annotations

from bitwatch.attach.said import Said
from bitwatch.record import events
from bitwatch.record.view import is_echo

FAILURES = ("out-of-memory", "exception", "timeout", "failure", "signal")
SURVIVED_BY = 2  # steps after a failure: one may be another rank's, on its way already
MOST = 200  # failures that are looked through for the first cause
STOPPED = ("KeyboardInterrupt", "SignalException")


class LastWords:
    def __init__(self) -> None:
        self._failures: list[Said] = []
        self._steps_since = 0
        self._done: Said | None = None
        self.last_line = ""

    def hear(self, said: Said) -> None:
        if said.what in ("step", "begins"):
            self._goes_on()
        elif said.what == "done":
            self._done = said
        elif said.what in FAILURES and len(self._failures) < MOST:
            self._failures.append(said)
            self._steps_since = 0

    def _goes_on(self) -> None:
        self._done = None
        self._steps_since += bool(self._failures)
        if self._steps_since >= SURVIVED_BY:
            self._failures, self._steps_since = [], 0

    def verdict(self) -> tuple[events.EndState, str] | None:
        """State and cause; None where the log does not say how it ended."""
        if self._failures:
            order = sorted(self._failures, key=_place)  # stable: the first of a kind counts
            first = order[0]
            stopped = first.what == "signal" or first.values.get("type") in STOPPED
            return ("stopped" if stopped else "failed"), cause(first)
        return ("done", "") if self._done is not None else None


def _place(said: Said) -> tuple[bool, int]:
    """An echo of another rank's end is not its cause; torchrun's report, and that it has ended
    somebody, follow upon what they are about."""
    late = {"failure": 1, "signal": 2}.get(said.what, 0)
    return is_echo(cause(said)) and said.what != "timeout", late


def cause(said: Said) -> str:
    """One failure in words."""
    values = said.values
    rank = f"rank {values['rank']}" if "rank" in values else ""
    if said.what == "out-of-memory":
        where = f"GPU {values['gpu']}" if "gpu" in values else "the machine"
        if values.get("where") == "cuda" and "gpu" not in values:
            where = "a GPU"
        wanted = f" (it wanted {values['wanted_mib']:,.0f} MiB)" if "wanted_mib" in values else ""
        return _of(rank, f"out of memory on {where}{wanted}")
    if said.what == "exception":
        message = str(values.get("message") or "")
        text = f"{values.get('type') or 'an exception'}{f': {message}' if message else ''}"
        where = f" ({values['where']})" if values.get("where") else ""
        return _of(rank, text + where)
    if said.what == "timeout":
        operation = values.get("operation") or "a collective"
        backend = f"{values['backend']}: " if values.get("backend") else ""
        after = f" after {values['seconds']:,.0f} s" if "seconds" in values else ""
        return _of(rank, f"{backend}{operation} timed out{after}")
    if said.what == "failure":
        how = f"was killed by {values['signal']}" if values.get("signal") else "failed"
        code = values.get("exit_code")
        if not values.get("signal") and code is not None:
            how = f"ended with exit code {code}"
        return f"{rank or 'a rank'} {how}, as its launcher reports"
    if said.what == "signal":
        who = f"pid {values['pid']}" if "pid" in values else "it"
        return f"its launcher ended {rank or who} by {values.get('signal') or 'a signal'}"
    return said.line.text


def _of(rank: str, text: str) -> str:
    return f"{rank}: {text}" if rank else text
