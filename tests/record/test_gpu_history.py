"""Histories of GPUs: the same in any order of files, bounded, and read backwards for a screen."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from bitwatch.attach.follow import Reading
from bitwatch.record import codec, events, gpu_past, rundir
from bitwatch.record.follow import GLANCE_BYTES, Follower
from bitwatch.record.gpu_history import ALL, RECENT_S, GpuHistory, Recent
from bitwatch.record.state import JOURNAL, SAMPLES, RunState, fold
from tests.tui.recorded import write

T = 1_800_000_000.0


def gpus(t: float, busy: float = 90.0, **fields: object) -> events.Gpus:
    cards = [
        events.Gpu(
            index=index, uuid=f"GPU-{index}", utilization_percent=busy - index,
            memory_used_mib=1000.0 + index, memory_total_mib=23034.0,
        )
        for index in (0, 1)
    ]  # fmt: skip
    return events.Gpus(gpus=cards, t=t, m=0.0, **fields)  # type: ignore[arg-type]


def minute(t: float, busy: float = 80.0) -> events.Minute:
    return events.Minute(
        cpu_percent=400.0, rss_mib=8000.0, gpu_memory_mib=[900.0, 901.0],
        gpu_utilization_percent=[busy, None], t=t, m=0.0,
    )  # fmt: skip


def ranks(t: float, count: int = 2, padding: str = "") -> events.Processes:
    rows = [
        events.Process(
            pid=100 + rank, starttime=9, ppid=1, role="rank" if rank < 2 else "worker", state="R",
            rank=rank, cpu_percent=90.0 + rank, rss_mib=400.0, command=padding,
        )
        for rank in range(count)
    ]  # fmt: skip
    return events.Processes(processes=rows, t=t, m=0.0)


def drained(history: GpuHistory) -> GpuHistory:
    while history.absorb():
        pass
    return history.picture()


def test_samples_and_aggregates_make_the_same_history_in_any_order() -> None:
    told = [(SAMPLES, gpus(T + second, 50 + second % 40)) for second in range(0, 900, 2)]
    told += [(SAMPLES, ranks(T + second)) for second in range(0, 900, 20)]
    told += [(JOURNAL, minute(T - 3600 + 60 * at, at)) for at in range(60)]
    states = []
    for seed in range(3):
        random.Random(seed).shuffle(told)
        state = RunState()
        for source, record in told:
            fold(state, source, [record])
        seen = drained(state.gpu_history)
        seen.version = 0
        states.append(seen)
    assert states[0] == states[1] == states[2]
    recent = states[0].recent["GPU-1"]
    assert recent.times == [T + second for second in range(298, 900, 2)]
    assert recent.memory_mib == [1001.0] * len(recent.times)
    assert states[0].whole[0].busy.starts[0] <= T - 3600 < states[0].whole[0].busy.starts[1]
    assert min(states[0].whole[1].busy.starts) >= T - 1, "of GPU 1 the aggregates know no load"
    assert states[0].recent["rank 1"].busy[-1] == 91.0
    assert states[0].whole[ALL].memory_mib.last == (int(T) + 880, 800.0)


def test_a_lost_gpu_and_a_driver_that_does_not_answer_add_nothing() -> None:
    history = GpuHistory()
    history.take_gpus(gpus(T))
    history.take_gpus(gpus(T + 1, note="NVML does not answer"))
    record = gpus(T + 2)
    record.gpus[0].lost = True
    record.gpus[0].error = "GPU is lost"
    history.take_gpus(record)
    history.take_gpus(gpus(T + 3, note="driver 550.54"))
    assert history.answered and history.answered.t == T + 3
    assert history.recent["GPU-0"].times == [T, T + 3]
    assert history.recent["GPU-1"].times == [T, T + 2, T + 3]


def test_what_is_kept_does_not_grow_with_the_run() -> None:
    recent = Recent()
    for at in range(10_000):
        recent.add(T + at / 10, 1.0, None)
    assert len(recent.times) == len(recent.busy) == len(recent.memory_mib) <= 1200
    history = GpuHistory()
    for at in range(30_000):
        history.take_minute(minute(T + 60 * at))
    assert len(history.backlog) <= 4097
    assert {len(one.busy.starts) for one in drained(history).whole.values()} <= set(range(513))


def test_a_picture_stays_as_it_was_and_is_made_once() -> None:
    history = GpuHistory()
    history.take_gpus(gpus(T))
    first = history.picture()
    assert history.picture() is first
    history.take_gpus(gpus(T + 1))
    assert history.picture() is not first
    assert first.recent["GPU-0"].times == [T] and first.whole[0].busy.counts == [1]


def _run(home: Path) -> rundir.RunDir:
    run = rundir.create(home, "long")
    rundir.new_attempt(run)
    write(run.journal, [events.AttemptStarted(t=T - 7000, m=0.0)])
    return run


def _follow(run: rundir.RunDir) -> Follower:
    follower = Follower(run, newest_first=True)
    follower.poll()
    pieces = 0
    while follower.gpu_past and not follower.gpu_past.done:
        follower.gpu_past.piece()
        pieces += 1
        assert pieces < 5000
    return follower


def test_ten_minutes_are_read_back_over_lines_of_processes_and_the_turn_of_an_hour(
    tmp_path: Path,
) -> None:
    run = _run(tmp_path)
    padding = "x" * 300  # lines of processes longer than the end that is read first
    early: list[events.Record] = []
    for second in range(1200):
        early.append(gpus(T + second))
        if second % 4 == 0:
            early.append(ranks(T + second, 240, padding))
    write(run.samples / "2027-01-15T07.jsonl", early)
    late: list[events.Record] = []
    for second in range(1200, 1300):
        late += [gpus(T + second), ranks(T + second, 240, padding)]
    write(run.samples / "2027-01-15T08.jsonl", late)
    follower = _follow(run)
    recent = follower.state.gpu_history.recent["GPU-0"]
    assert recent.times == [T + second for second in range(1299 - int(RECENT_S), 1300)]
    assert follower.state.samples.gpus and follower.state.samples.gpus.t == T + 1299


def test_of_long_lines_of_processes_none_is_decoded_where_gpus_are(
    tmp_path: Path, monkeypatch: object
) -> None:
    run = _run(tmp_path)
    records: list[events.Record] = []
    for second in range(40):
        records += [gpus(T + second), ranks(T + second, 240, "x" * 300)]
    path = run.samples / "2027-01-15T08.jsonl"
    write(path, records)
    state = RunState()
    fold(state, SAMPLES, [gpus(T + 40)])
    past = gpu_past.GpuPast(path, (0, path.stat().st_size), state)
    while not past.done:
        past.piece()
    assert len(state.gpu_history.recent["GPU-0"].times) == 41
    assert "rank 0" not in state.gpu_history.recent


def test_without_gpus_the_ranks_are_read_back(tmp_path: Path) -> None:
    run = _run(tmp_path)
    records: list[events.Record] = [events.Gpus(source="cpu", note="no NVIDIA driver", t=T, m=0.0)]
    records += [ranks(T + second, 4, "x" * 300) for second in range(800)]
    path = run.samples / "2027-01-15T08.jsonl"
    write(path, records)
    assert path.stat().st_size > 2 * GLANCE_BYTES
    recent = _follow(run).state.gpu_history.recent["rank 1"]
    assert len(recent.times) == RECENT_S + 1 and recent.times[-1] == T + 799


def test_torn_and_foreign_lines_cost_only_themselves(tmp_path: Path) -> None:
    run = _run(tmp_path)
    path = run.samples / "2027-01-15T07.jsonl"
    whole = codec.encode(gpus(T + 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        codec.encode(gpus(T)) + b'{"kind":"gpus","gpus":[{"ind\n\xff\xfe\n\n' + whole + whole[:30]
    )
    write(run.samples / "2027-01-15T08.jsonl", [gpus(T + 2)])
    assert _follow(run).state.gpu_history.recent["GPU-0"].times == [T, T + 1, T + 2]


def test_a_week_of_aggregates_is_drawn_from_a_few_hundred_buckets(tmp_path: Path) -> None:
    run = _run(tmp_path)
    week = [minute(T - 604_800 + 60 * at, at % 100) for at in range(10_080)]
    write(run.journal, [events.AttemptStarted(t=T - 604_800, m=0.0), *week])
    write(run.samples / "2027-01-15T08.jsonl", [gpus(T)])
    history = _follow(run).state.gpu_history
    assert history.backlog == []
    series = history.picture().whole[0].busy
    assert len(series.starts) <= 512 and series.starts[0] <= T - 604_800 + 120
    assert msgspec.structs.asdict(series)["last"] == (int(T), 90.0)


def test_a_screen_gets_a_picture_of_its_own_and_more_of_it_later(tmp_path: Path) -> None:
    run = _run(tmp_path)
    early: list[events.Record] = [gpus(T + second) for second in range(600)]
    write(run.samples / "2027-01-15T07.jsonl", early)
    write(run.samples / "2027-01-15T08.jsonl", [gpus(T + 600)])
    reading = Reading(run)
    reading.poll()
    first = reading.snapshot().view.gpu_history
    assert first.recent["GPU-0"].times == [T + 600] and reading.behind
    while reading.behind:
        reading.fill(0.01)
    assert reading.poll(), "there is more to show than before"
    second = reading.snapshot().view.gpu_history
    assert len(second.recent["GPU-0"].times) == 601 and len(first.recent["GPU-0"].times) == 1
    assert second is not reading.state.gpu_history


def test_a_clock_that_is_set_back_freezes_nothing(tmp_path: Path) -> None:
    """What stands later in the file counts, and the history of before is given up."""
    run = _run(tmp_path)
    path = run.samples / "2027-01-15T08.jsonl"
    write(path, [gpus(T + second) for second in range(3)])
    follower = Follower(run)
    follower.poll()
    with path.open("ab") as file:
        for back_s in (1000.0, 999.0, 998.0):
            file.write(codec.encode(gpus(T - back_s)) + codec.encode(ranks(T - back_s)))
    follower.poll()
    samples, history = follower.state.samples, follower.state.gpu_history
    assert samples.gpus and samples.processes
    assert samples.gpus.t == samples.processes.t == T - 998
    assert history.answered == samples.gpus
    assert history.recent["GPU-0"].times == [T - 1000, T - 999, T - 998]
