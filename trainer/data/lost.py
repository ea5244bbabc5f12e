"""Which reader was lost. PyTorch tells a pid and the words of a signal, or not even these; the
reader's own account tells who that was and what it read."""

from __future__ import annotations

import re
import signal
import time

from bitwatch.record import events, readers
from bitwatch.record.follow import newest_accounts
from bitwatch.record.journal import JournalReader
from bitwatch.record.rundir import RunDir

# What torch.utils.data and its signal handler say (2.11 to 2.13).
PIDS = re.compile(r"DataLoader worker \(pid(?:\(s\))? (\d+(?:, \d+)*)\)")
SIGNAL = re.compile(r"killed by signal: ([^.\n]+)")
STATUS = re.compile(r"with exit code (\d+)")
ENDS_BYTES = 64 << 10  # of an account: who it is stands at its beginning, what it did at its end


def worker(error: BaseException, run: RunDir, attempt: int, rank: int) -> str:
    """ "worker 1 of rank 0 (pid 123), reading shard 1, was killed by SIGKILL at 03:12:44", by an
    error that a lost dataloader worker has raised in its rank; empty for any other error."""
    said = " ".join(_chain(error))
    pids = PIDS.search(said)
    if pids is None:
        return ""
    lost = [int(pid) for pid in pids[1].split(", ")]
    accounts = {account.pid: account for account in _accounts(run, attempt, rank)}
    who = " and ".join(_who(pid, rank, accounts.get(pid)) for pid in lost)
    return f"{who}, {_how(said)} at {time.strftime('%H:%M:%S')}"


def _chain(error: BaseException | None) -> list[str]:
    """The error's text and those that it was raised for: only one of them names the signal."""
    texts: list[str] = []
    while error is not None and len(texts) < 10:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return texts


def _who(pid: int, rank: int, account: events.Reader | None) -> str:
    if account is None:
        return f"a worker of rank {rank} (pid {pid})"
    doing = readers.doing(account)
    return f"worker {account.worker} of rank {rank} (pid {pid}){f', {doing}' if doing else ''}"


def _how(said: str) -> str:
    if (found := SIGNAL.search(said)) is not None:
        names = {signal.strsignal(number): number.name for number in signal.Signals}
        name = names.get(found[1].strip(), found[1].strip())
        full = " (/dev/shm may be full)" if name == "SIGBUS" else ""
        return f"was killed by {name}{full}"
    if (found := STATUS.search(said)) is not None:
        return f"ended with exit code {found[1]}"
    return "ended before its time"


def _accounts(run: RunDir, attempt: int, rank: int) -> list[events.Reader]:
    """The last word of each reader of this rank's training text, older epochs first."""
    folder = run.attempt(attempt) / "readers"
    names = [path.name for path in folder.glob(f"{rank}-train-*.jsonl")]
    found = []
    for name in newest_accounts(names):
        records = JournalReader(folder / name, ENDS_BYTES).read()
        found += [record for record in records if isinstance(record, events.Reader)][-1:]
    return found
