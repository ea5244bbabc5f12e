"""Several words in one report: which of them are runs, and what evidence of different kinds
says about the same thing: a listing of processes that a record knows, a log that is a run's."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bitwatch.record import rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.report import recorded
from bitwatch.report.facts import Gathered, ListingSeen, ProcessSeen
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.recorded import Named, Recorded, of_folder
from bitwatch.report.words import moment
from bitwatch.text import counted

NEAR_S = 3.0  # a listing tells a start in whole seconds, a record when it was seen
SHOWN = 8
MOST_RUNS = 20  # found in folders: a home may have hundreds


def sort_out(home: Path, words: Sequence[str]) -> tuple[list[RunDir], list[str]]:
    """Runs, each once, and paths that are none. What exists as a path is one, whatever runs
    there are; a run's own folder is the run. Raises RunDirError for a word that is neither."""
    runs: list[RunDir] = []
    paths: list[str] = []
    for word in words:
        run = of_folder(word) if _is_there(word) else _named(home, word)
        if run is None:
            paths.append(word)
        else:
            runs.append(run)
    return _each_once(runs), paths


def _each_once(runs: Sequence[RunDir]) -> list[RunDir]:
    """In the order of their ids: that of the words makes no difference."""
    found = {run.path.resolve(): run for run in runs}
    return sorted(found.values(), key=lambda run: (run.id, run.path))


def _is_there(word: str) -> bool:
    try:
        return bool(word) and os.path.lexists(word)
    except ValueError:  # no name of a file
        return False


def _named(home: Path, word: str) -> RunDir:
    if os.sep in word or word in ("", ".", ".."):
        raise RunDirError(f"{word or 'the empty word'}: there is no such file or folder")
    try:
        return rundir.find(home, word)
    except RunDirError as error:
        if "no such run" not in str(error):
            raise
        raise RunDirError(
            f"{word}: there is no such file, folder or run; `bitwatch ls` lists the runs"
        ) from None


def add_runs(
    gathered: Gathered, named: Sequence[RunDir], folders: Sequence[str], *, alone: bool
) -> list[Recorded]:
    """Reads each run that was named, and those whose folders were found below a named one.
    The names of a run's files are relative to its folder; they have its id before them unless
    it is `alone` in the report."""
    runs = _each_once([*named, *(RunDir(Path(folder).absolute()) for folder in folders)])
    if len(runs) > max(MOST_RUNS, len(named)):
        kept = {run.path.resolve() for run in named}
        kept |= {run.path.resolve() for run in runs[-MOST_RUNS:]}
        gathered.notes.append(
            f"{counted(len(runs), 'run')} lie in the folders that were named: all but the newest "
            f"{MOST_RUNS} were left out; name a run to be told of it"
        )
        runs = [run for run in runs if run.path.resolve() in kept]
    alone = alone and len(runs) == 1
    return [recorded.add(gathered, run, prefix="" if alone else f"{run.id}/") for run in runs]


def cross(gathered: Gathered, runs: Sequence[Recorded]) -> None:
    """Findings that need two kinds of evidence. For after all has been read."""
    for run in runs:
        gathered.findings += _listed(gathered, run)
    gathered.findings += _logs_of_runs(gathered, runs)


def _listed(gathered: Gathered, run: Recorded) -> Iterator[Finding]:
    """Processes of listings that the run's record names: the same pid, begun at the same time."""
    by_pid: dict[int, list[Named]] = {}
    for process in run.processes:
        by_pid.setdefault(process.pid, []).append(process)
    for listing in gathered.listings:
        pairs = [
            (seen, known)
            for seen in gathered.processes
            if seen.source == listing.path and (known := _same(seen, by_pid)) is not None
        ]
        if pairs:
            yield _known(run, listing, pairs)


def _same(seen: ProcessSeen, by_pid: dict[int, list[Named]]) -> Named | None:
    """Without its start nothing is claimed: pids come again."""
    for known in by_pid.get(seen.pid, ()):
        if seen.started is None or known.started is None:
            continue
        if abs(seen.started - known.started) <= NEAR_S:
            return known
    return None


def _known(
    run: Recorded, listing: ListingSeen, pairs: Sequence[tuple[ProcessSeen, Named]]
) -> Finding:
    ended = _ended_before(run, listing.taken)
    left = [pair for pair in pairs if pair[1].attempt in ended]
    many = counted(len(pairs), "process")
    evidence = []
    for seen, known in (left or list(pairs))[:SHOWN]:
        of = "" if known.rank is None else f" of rank {known.rank}"
        text = f"process {seen.pid}, began {moment(seen.started)}: {known.role}{of}, "
        text += f"attempt {known.attempt} of {run.run.id}"
        evidence.append(Evidence(source=seen.source, line=seen.line, text=text, t=seen.started))
    if left:
        some = counted(len(left), "process")
        return Finding(
            id="leftovers",
            severity="error",
            title=f"{listing.path} shows {some} of attempts of run {run.run.id} that had ended",
            evidence=evidence,
            why=f"Pid and start time are those of its record, and the listing was made "
            f"{moment(listing.taken)}, after the end of their attempts.",
            next=f"bitwatch clean {run.run.id} ends what lives of them now, and nothing else",
        )
    return Finding(
        id="on-record",
        severity="info",
        title=f"{many} of {listing.path} {'is' if len(pairs) == 1 else 'are'} of run {run.run.id}",
        evidence=evidence,
        why="Pid and start time are those of its record.",
        next=f"bitwatch report {run.run.id}",
    )


def _ended_before(run: Recorded, taken: float | None) -> set[int]:
    """Attempts of which the record says that they were over when the listing was made."""
    if taken is None:
        return set()
    attempts = run.record.state.journal.attempts
    return {n for n, attempt in attempts.items() if attempt.ended and attempt.ended.t < taken}


def _logs_of_runs(gathered: Gathered, runs: Sequence[Recorded]) -> Iterator[Finding]:
    """Logs whose run is on record: that one knows more than its log says."""
    by_path = {run.run.path.resolve(): run for run in runs}
    watched: dict[str, str] = {}
    for run in runs:
        try:
            logs = run.run.identity().logs
        except RunDirError:
            continue
        watched |= {os.path.realpath(log): run.run.id for log in logs}
    for log in gathered.logs:
        real = os.path.realpath(log.path)
        folder = next((p for p in Path(real).parents if (p / "run.json").is_file()), None)
        id_ = watched.get(real) or (folder.name if folder else "")
        if not id_:
            continue
        here = (folder is not None and folder in by_path) or real in watched
        yield Finding(
            id="on-record",
            severity="info",
            title=f"{log.path} is a log of run {id_}, which is on record",
            evidence=[Evidence(source=log.path, text="in the folder of that run, or named by it")],
            why="What its record says was written by the run itself and needs no reading of prose.",
            next="its record is part of this report" if here else f"bitwatch report {folder}",
        )
