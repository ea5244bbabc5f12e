"""What a wish for a next attempt comes to: made, refused in a sentence, or taken away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch.attach import commands
from bitwatch.plan.facts import (
    CacheFacts,
    DataFacts,
    DeviceFacts,
    FactError,
    Facts,
    ModelFacts,
    Parameter,
)
from bitwatch.plan.facts import Shard as File
from bitwatch.plan.preflight import make_plan
from bitwatch.record import events, rundir
from bitwatch.record.journal import JournalWriter, read_all
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.supervise import begin, holding, relaunch, stopping
from tests.supervise.standins import ATTEMPT, ENDED, write


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """The demo as it is, planned from two files that leave half of its readers idle."""
    config = configuration.load(configuration.bundled("configs/demo.toml"))
    files = [File(name=f"{i}.txt", rows=9000, text_bytes=1 << 20) for i in range(2)]
    facts = Facts(
        model=ModelFacts(parameters=[Parameter(name="w", shape=[100])]),
        data=DataFacts(
            format="text",
            num_shards=2,
            shards=files,
            cache=CacheFacts(folder=str(tmp_path), free_bytes=1 << 40),
        ),
        devices=DeviceFacts(),
    )
    made = rundir.create(tmp_path, "demo")
    begin.new_attempt(made, config, make_plan(config, facts, launching=True), "cpu", facts)
    return made


def take_up(run: RunDir, state: str, cause: str = "") -> tuple[relaunch.Launch | None, list[str]]:
    """What is launched next, and what the journal says of it."""
    journal = JournalWriter(run.journal)
    launch = relaunch.take_up(run, 1, (state, cause), journal)
    journal.close()
    records = read_all(run.journal)[0] if run.journal.exists() else []
    return launch, [f"{r.name}: {r.result}" for r in records if isinstance(r, events.Action)]


def test_the_first_wish_is_heard_and_garbage_is_none(run: RunDir) -> None:
    assert relaunch.read(run, 1) is None
    assert relaunch.ask(run, 1, "indexed", "one").by == "one"
    assert relaunch.ask(run, 1, "same", "two").by == "one"
    assert relaunch.ask(run, 1, "same", "three", anew=True).by == "three"
    assert sorted(path.name for path in run.attempt(1).glob(".*")) == []
    run.relaunch(1).write_bytes(b"\xff{")
    assert relaunch.read(run, 1) is None


def test_the_next_attempt_has_the_correction_and_says_so(run: RunDir) -> None:
    relaunch.ask(run, 1, "indexed", "somebody")
    launch, said = take_up(run, "stopped")
    assert said == []
    why = "2 of 4 readers idle: 2 shards for 2 ranks x 2 workers"
    cause = f"relaunch of attempt 1: data.sharding = indexed instead of as-is ({why})"
    assert launch == relaunch.Launch(2, "somebody", cause, 1, "indexed")
    plan = json.loads(run.plan(2).read_bytes())
    assert (plan["data"]["mode"], plan["data"]["readers_idle"]) == ("indexed", 0)
    assert (plan["resume"], plan["device"]) == ("exact", "cpu")  # there is no place to lose yet
    assert configuration.load(run.config(2)).data.sharding == "indexed"
    assert relaunch.facts_of(run, 2) == relaunch.facts_of(run, 1)


@pytest.mark.parametrize(
    ("state", "cause", "says"),
    [
        ("failed", "rank 1: no room", "without a checkpoint of its own (failed: rank 1: no room)"),
        ("stopped", "by force", "without a checkpoint of its own (stopped: by force)"),
        ("lost", "", "without a checkpoint of its own (lost)"),
        ("done", "", "relaunch-cancelled: the run was done before"),
    ],
)
def test_what_ended_otherwise_is_not_relaunched(
    run: RunDir, state: str, cause: str, says: str
) -> None:
    relaunch.ask(run, 1, "indexed", "somebody")
    launch, (said,) = take_up(run, state, cause)
    assert launch is None
    assert says in said
    assert run.attempts() == [1]


def test_without_a_wish_or_after_a_stop_nothing_follows(run: RunDir) -> None:
    assert take_up(run, "stopped") == (None, [])
    relaunch.ask(run, 1, "indexed", "somebody")
    stopping.ask(run, 1, "somebody else")
    assert take_up(run, "stopped") == (None, [])


def test_a_stop_after_the_next_attempt_was_made_takes_it_away(run: RunDir) -> None:
    relaunch.ask(run, 1, "indexed", "somebody")
    relaunch.stop_for(run, 1, "somebody")
    launch, _ = take_up(run, "stopped")
    assert launch is not None
    journal = JournalWriter(run.journal)
    assert relaunch.still_wished(run, launch, journal)
    stopping.ask(run, 1, "somebody else")
    assert not relaunch.still_wished(run, launch, journal)
    journal.close()
    assert run.attempts() == [1]
    (said,) = [r for r in read_all(run.journal)[0] if isinstance(r, events.Action)]
    assert (said.by, said.result) == ("somebody else", "stopped instead; somebody had asked")


def test_a_wish_without_a_stop_is_none(run: RunDir) -> None:
    relaunch.ask(run, 1, "indexed", "somebody")
    run.stop(1).mkdir()  # so that no stop can be written
    with pytest.raises(OSError):
        relaunch.stop_for(run, 1, "somebody")
    assert relaunch.read(run, 1) is None


def test_an_attempt_for_which_there_is_no_room_leaves_nothing_behind(run: RunDir) -> None:
    """A limit on the size of files does what a full disk does."""
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from bitwatch.record import rundir\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n"
        "    rundir.new_attempt(rundir.RunDir(Path(sys.argv[1])))\n"
        "except rundir.RunDirError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", program, str(run.path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "attempts/2: File too large" in out
    assert run.attempts() == [1]


def test_facts_with_a_gap_are_not_kept() -> None:
    whole = Facts(model=ModelFacts(), data=DataFacts(), devices=DeviceFacts())
    gap = FactError(kind="unreachable", text="nobody answers")
    assert not relaunch.has_gaps(whole)
    assert relaunch.has_gaps(Facts(error=gap))
    assert relaunch.has_gaps(Facts(model=ModelFacts(), data=DataFacts(error=gap)))


def test_an_exact_correction_of_an_attempt_that_began_a_new_epoch_can_be_taken(
    run: RunDir,
) -> None:
    """Its checkpoint may still be of the attempt before, with another order of the text."""
    saved = run.checkpoints() / "step-5"
    saved.mkdir(parents=True)
    model = {"d_model": 128, "heads": 2, "layers": 4, "feedforward": 512, "context": 256}
    text = {"epoch": 0, "position": 40, "order": {"data.sharding": "reshard"}}
    manifest = {"config": {"model": model}, "counters": {"text": text}}
    (saved / "manifest.json").write_text(json.dumps(manifest))
    plan = json.loads(run.plan(1).read_bytes())
    for correction in plan["corrections"]:
        correction["resume"] = "exact"
    rundir.write_whole(run.plan(1), json.dumps(plan).encode())
    with pytest.raises(RunDirError, match="the place in the text would be lost"):
        relaunch.following(run, 1, "indexed")
    rundir.write_whole(run.plan(1), json.dumps({**plan, "resume": "new-epoch"}).encode())
    assert relaunch.following(run, 1, "indexed").plan.resume == "new-epoch"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("no-such", "no correction 'no-such' that can be launched"),
        ("more-files", "no correction 'more-files' that can be launched"),
        ("back", "attempt 1 is no relaunch"),
    ],
)
def test_what_is_not_offered_is_refused(run: RunDir, wanted: str, says: str) -> None:
    with pytest.raises(RunDirError, match=says):
        relaunch.following(run, 1, wanted)


def test_a_plan_with_an_error_is_never_launched(run: RunDir) -> None:
    changed = configuration.load(run.config(1), ["model.expected_parameters=7"])
    rundir.write_whole(run.config(1), configuration.dump(changed).encode())
    with pytest.raises(RunDirError, match="has 100 parameters, not the 7"):
        relaunch.following(run, 1, "indexed")
    relaunch.ask(run, 1, "indexed", "somebody")
    launch, (said,) = take_up(run, "stopped")
    assert launch is None and said.startswith("relaunch-failed: The model has 100 parameters")


def test_a_checkpoint_of_another_model_is_never_gone_on_from(run: RunDir) -> None:
    saved = run.checkpoints() / "step-5"
    saved.mkdir(parents=True)
    model = {"d_model": 64, "heads": 2, "layers": 4, "feedforward": 512, "context": 256}
    text = {"epoch": 0, "position": 40, "order": {"data.sharding": "as-is"}}
    manifest = {"config": {"model": model}, "counters": {"text": text}}
    (saved / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunDirError, match=r"another model: model.d_model was 64 and is 128"):
        relaunch.following(run, 1, "indexed")
    model["d_model"] = 128
    (saved / "manifest.json").write_text(json.dumps(manifest))
    assert relaunch.following(run, 1, "indexed").plan.resume == "new-epoch"


def test_a_relaunch_while_somebody_writes_into_the_record_is_no_stop(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds the lock for that is no supervisor, which would find the wish; what is said of
    who has it instead is true."""
    write(run, ATTEMPT, ENDED)
    asked: list[tuple[str, relaunch.Wish | None]] = []

    def start(run: RunDir, attempt: int, how: str, by: str, cause: str) -> None:
        asked.append((how, relaunch.read(run, attempt)))
        begin.rundir.Lock(run)  # held already

    monkeypatch.setattr(begin, "start_supervisor", start)
    lock = rundir.Lock(run)
    with pytest.raises(RunDirError, match=f"not relaunched now .*{os.getpid()}.*; ask again"):
        commands.relaunch(run, 1, "indexed")
    ((how, wish),) = asked
    assert how == "relaunch" and wish and wish.correction == "indexed"
    assert not run.stop(1).exists()
    monkeypatch.setattr(holding, "task_of_supervisor", lambda run: (1, "relaunch") if asked else 0)
    asked.clear()
    assert commands.relaunch(run, 1, "indexed") == "attempt 1 is being relaunched already"
    asked.clear()
    write(run, events.AttemptStarted(attempt=2))
    assert commands.relaunch(run, 1, "indexed") == "attempt 1 is over; attempt 2 came next"
    lock.release()
