"""Alerts about readers: what is so by their own word, what it costs, and what to do."""

from __future__ import annotations

from typing import Any

from bitwatch.record import events
from bitwatch.record.view import ProcessRow, View
from bitwatch.supervise.watch import alerts
from bitwatch.text import clock
from tests.supervise.test_watch_waits import run_of

NOW = 1_700_000_000.0
PROBLEMS = ("workers-exceed-shards", "every-rank-reads-everything", "uneven-batches")


def plan(*problems: str, **data: Any) -> dict[str, Any]:
    return {
        "data": {"mode": "as-is"} | data,
        "problems": [
            {"id": one, "severity": "warning", "text": f"planned {one}", "next": "do something"}
            for one in problems
        ],
        "corrections": [
            {
                "id": "indexed",
                "recommended": True,
                "resume": "new-epoch",
                "changes": {"data.sharding": "indexed"},
                "data": {
                    "mode": "indexed",
                    "readers_idle": 0,
                    "copies": 1,
                    "read_amplification": 1,
                    "imbalance_percent": 0.0,
                },
            }
        ],
    }


def readers(*states: str, shards: tuple[Any, ...] = (0, 1)) -> list[events.Reader]:
    """Of two workers a rank; worker k of each rank has shards[k]."""
    return [
        events.Reader(
            rank=i // 2,
            worker=i % 2,
            pid=100 + i,
            state=state,  # type: ignore[arg-type]
            shards=[] if state == "idle" else [shards[i % 2]],
            rows=0 if state == "idle" else 1,
            t=NOW - 1,
            moved=NOW - 1,
        )
        for i, state in enumerate(states)
    ]


def running(*states: str, **fields: Any) -> View:
    found = View(
        run="2026-01-01-x-1",
        state="running",
        attempt=1,
        ranks=len(states) // 2,
        workers=2,
        readers=readers(*states),
        sampled=NOW,
    )
    found.processes = [row(one.pid, "worker", one.rank) for one in found.readers]
    found.processes += [row(50 + rank, "rank", rank) for rank in range(found.ranks)]
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def row(pid: int, role: str, rank: int, state: str = "S") -> ProcessRow:
    return ProcessRow(pid=pid, starttime=0, ppid=1, role=role, state=state, rank=rank)


def by_id(view: View, now: float = NOW) -> dict[str, events.Alert]:
    found = alerts(view, now)
    assert len({alert.id for alert in found}) == len(found)
    return {alert.id: alert for alert in found}


# ---------------------------------------------------------------------------------------
# Who reads what


def test_idle_readers_are_seen_from_their_own_accounts() -> None:
    idle = running("reading", "idle", "reading", "idle")
    idle.readers[2].shards = [1]
    (alert,) = alerts(idle, NOW)
    assert alert.id == "idle-reader"
    assert "2 of 4 readers have nothing to read: rank 0 worker 1, rank 1 worker 1" in alert.text
    assert "do their work too" in alert.text and "does not hang" in alert.text
    assert alert.evidence == [
        "rank 0 worker 1: given no shard (pid 101)",
        "rank 1 worker 1: given no shard (pid 103)",
    ]
    assert alert.next == "use fewer workers per rank, or write the text into more files"


def test_workers_of_an_index_are_idle_only_where_the_plan_says_so() -> None:
    """After a resume the rest of an epoch may be too few steps for all of them."""
    view = running("reading", "idle", "reading", "idle", plan={"data": {"mode": "indexed"}})
    for reader in view.readers:
        reader.shards = [] if reader.state == "idle" else ["index"]
    assert alerts(view, NOW) == []
    view.plan["data"]["readers_idle"] = 0
    assert alerts(view, NOW) == []
    view.plan["data"]["readers_idle"] = 2
    (alert,) = alerts(view, NOW)
    assert (alert.id, alert.next) == ("idle-reader", "use fewer workers per rank (data.workers)")
    assert alert.evidence[0] == "rank 0 worker 1: given no step (pid 101)"


def test_a_thousand_idle_readers_are_counted_and_not_listed() -> None:
    (alert,) = alerts(running(*["idle"] * 2000), NOW)
    assert alert.text.startswith("2000 of 2000 readers") and "and 1996 more" in alert.text
    assert len(alert.evidence) == 17 and alert.evidence[-1] == "and 1984 more"


def test_the_plans_warnings_have_the_accounts_as_evidence_and_one_command_as_remedy() -> None:
    view = running("reading", "idle", "reading", "idle", plan=plan(*PROBLEMS, num_shards=1))
    view.rank_epochs = {0: events.Epoch(epoch=0, unread=1200, share=3100)}
    found = by_id(view)
    assert set(found) == set(PROBLEMS)  # idle readers are said once
    exceed, everything, uneven = (found[one] for one in PROBLEMS)
    assert exceed.text == "planned workers-exceed-shards"
    assert exceed.evidence[0] == "planned before the launch of attempt 1"
    assert exceed.evidence[1:] == [
        "as they say themselves: 2 of 4 were given no shard",
        "rank 0 worker 1: given no shard (pid 101)",
        "rank 1 worker 1: given no shard (pid 103)",
    ]
    assert everything.evidence[1:] == ["shard 0: given to each of ranks 0 to 1"]
    assert uneven.evidence[1:] == ["rank 0: 1,200 of 3,100 sequences unread in epoch 0"]
    for alert in found.values():
        assert alert.next == (
            "key R on the screen relaunches it with sharding indexed; or, once it is stopped: "
            "bitwatch run --resume 2026-01-01-x-1 --new-epoch --sharding indexed"
        )


def test_a_correction_that_cannot_be_launched_or_taken_is_not_offered() -> None:
    for change in ({"changes": {}}, {"resume": "refused"}, {"recommended": False}):
        view = running("reading", "idle", plan=plan("uneven-batches"))
        view.plan["corrections"][0] |= change
        assert by_id(view)["uneven-batches"].next == "do something"
    fewer = running("reading", "idle", plan=plan())
    fewer.plan["corrections"][0] |= {"changes": {"data.workers": 1}, "resume": "exact"}
    assert by_id(fewer)["idle-reader"].next == (
        "key R on the screen relaunches it with workers 1; or, once it is stopped: "
        "bitwatch run --resume 2026-01-01-x-1 --set data.workers=1"
    )


def test_a_correction_is_no_remedy_for_what_it_does_not_end() -> None:
    """Fewer workers: nobody is idle any more, and all the rest is as it was."""
    fewer = {
        "id": "fewer-workers",
        "changes": {"data.workers": 1},
        "resume": "exact",
        "data": {
            "mode": "as-is",
            "readers_idle": 0,
            "copies": 1,
            "read_amplification": 2,
            "imbalance_percent": 40.0,
        },
    }
    view = running("reading", "idle", "reading", "idle", plan=plan(*PROBLEMS, num_shards=1))
    view.plan["corrections"][0] |= fewer
    said = {alert.id: alert.next for alert in alerts(view, NOW)}
    ended = {name for name, words in said.items() if words.startswith("key R on the screen")}
    assert ended == {"workers-exceed-shards"}
    assert said["every-rank-reads-everything"] == said["uneven-batches"] == "do something"
    starved = run_of(1.5)
    starved.plan = view.plan | {"problems": []}
    assert by_id(starved)["data-starved"].next.startswith("use --sharding indexed")
    # By an estimate the ranks are even, and an epoch has told otherwise.
    fewer["data"]["imbalance_percent"] = None  # type: ignore[index]
    view.plan["problems"] = []
    view.rank_epochs = {0: events.Epoch(epoch=0, unread=1200, share=3100)}
    assert by_id(view)["uneven-batches"].next == "write the text into files of equal size"


def test_two_ranks_on_all_shards_are_seen_without_any_plan() -> None:
    (alert,) = alerts(running("reading", "reading", "reading", "done"), NOW)
    assert alert.id == "every-rank-reads-everything"
    assert "2 shards cannot be dealt out evenly to 2 ranks" in alert.text
    assert "2 times the reading" in alert.text and "no text is trained on twice" in alert.text
    assert alert.evidence[0] == "shard 0: given to each of ranks 0 to 1"
    assert alert.next.startswith("write the text into files of equal size, 2 of them")


def test_ranks_with_shards_of_their_own_or_one_index_do_not_read_everything() -> None:
    own = running("reading", "reading", "reading", "reading")
    for reader in own.readers[2:]:
        reader.shards = [reader.worker + 2]
    assert alerts(own, NOW) == []
    for reader in own.readers:
        reader.shards = ["index"]
    assert alerts(own, NOW) == []
    # From one epoch to the next: rank 1's old shard is rank 0's new one, and not all there is.
    turning = running("reading", "reading", "reading", "reading")
    for reader in turning.readers:
        reader.shards = [[1], [3]][reader.worker]
    assert alerts(turning, NOW) == []


def test_what_an_epoch_left_unread_is_said_with_the_rank_that_lost_most() -> None:
    view = running("reading", "reading")
    view.rank_epochs = {
        0: events.Epoch(epoch=1, unread=1200, share=3100),
        1: events.Epoch(epoch=1, unread=3, share=1900),
        2: events.Epoch(epoch=0, unread=900, share=1000),
        3: events.Epoch(epoch=1),
    }
    alert = by_id(view)["uneven-batches"]
    assert "epoch 1 left 39 % of rank 0's text unread (about 1,200 of 3,100" in alert.text
    assert "all took the same steps, and nothing hangs" in alert.text
    assert [line.split(":")[0] for line in alert.evidence] == ["rank 0", "rank 1"]
    view.rank_epochs = {0: events.Epoch(epoch=2, unread=100, share=3100)}
    assert alerts(view, NOW) == []


# ---------------------------------------------------------------------------------------
# Waiting for data


def test_readers_that_try_again_are_said_until_they_go_on() -> None:
    view = running("reading", "reading")
    for reader in view.readers:
        reader.error = "ConnectionError: away; try 1 of 5 in 1 s"
    (alert,) = alerts(view, NOW)
    assert (alert.id, alert.severity) == ("data-starved", "warning")
    assert "rank 0 train reader 0 and 1 more cannot reach the text" in alert.text
    assert "try 1 of 5" in alert.evidence[0]
    for reader in view.readers:
        reader.error = ""
    assert alerts(view, NOW) == []


def test_a_stuck_reader_is_named_with_its_shard_and_since_when() -> None:
    view = running("reading", "reading", "waiting", "waiting")
    view.readers[2].shards, view.readers[3].shards = [2], [3]
    stuck = view.readers[1]
    stuck.shard, stuck.moved = 1, NOW - 7
    alert = by_id(view)["data-starved"]
    since = clock(NOW - 7)
    assert alert.text.startswith(f"rank 0 worker 1 has been in one read of shard 1 since {since};")
    assert "all ranks" in alert.text
    assert alert.evidence == [
        f"rank 0 worker 1 has been in one read of shard 1 since {since} (pid 101)"
    ]
    later = by_id(view, NOW + 3)["data-starved"]  # nothing new: nothing to write
    assert (later.text, later.evidence, later.next) == (alert.text, alert.evidence, alert.next)
    assert list(by_id(view, NOW - 3)) == []


def test_a_stopped_reader_says_what_lets_it_go_on_and_more_than_one_are_counted() -> None:
    view = running("waiting", "reading", "waiting", "waiting")
    view.readers[1].moved = NOW - 9
    view.readers[2].shards, view.readers[3].shards = [2], [3]
    view.processes[0].state = "T"
    alert = by_id(view)["data-starved"]
    assert alert.text.startswith(
        "rank 0 worker 0 is stopped by a signal, at shard 0; it last moved"
    )
    assert "and 1 more reader;" in alert.text
    assert alert.next == "kill -CONT 100 lets it go on"
    assert len(alert.evidence) == 2


# ---------------------------------------------------------------------------------------
# Workers that die


def test_a_worker_that_is_gone_while_its_rank_lives_is_named() -> None:
    view = running("reading", "reading", "waiting", "waiting")
    view.readers[2].shards, view.readers[3].shards = [2], [3]
    view.readers[1].t = NOW - 3
    assert alerts(view, NOW) == []
    del view.processes[1]
    (alert,) = alerts(view, NOW)
    assert (alert.id, alert.severity) == ("worker-died", "error")
    assert alert.text.startswith(
        f"rank 0 worker 1 (pid 101) is gone, reading shard 1, last heard of at {clock(NOW - 3)}"
    )
    assert "dmesg" in alert.next and "bitwatch run --resume 2026-01-01-x-1" in alert.next


def test_workers_that_go_with_their_rank_or_at_the_end_have_not_died() -> None:
    view = running("reading", "reading")
    for reader in view.readers:
        reader.t = NOW - 3
    view.processes = view.processes[2:]  # the rank alone
    assert list(by_id(view)) == ["worker-died"]
    view.state = "stopping"
    assert alerts(view, NOW) == []
    view.state, view.step, view.steps = "running", 100, 100
    assert alerts(view, NOW) == []
    view.step, view.processes = 50, [row(7, "agent", 0)]
    assert alerts(view, NOW) == []
    view.processes.append(row(8, "rank", 0))  # an earlier attempt's says nothing of this one
    view.leftovers = [events.ProcessStart(pid=8, starttime=0, role="rank", rank=0, attempt=1)]
    assert "worker-died" not in by_id(view)
