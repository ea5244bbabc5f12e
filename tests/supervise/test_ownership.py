"""The table of proofs: what is ours, what only may be, and what is never touched."""

from __future__ import annotations

from typing import Any

import pytest

from bitwatch.record import events
from bitwatch.sense.processes import Stat
from bitwatch.supervise.ownership import Class, RunFacts, Seen, Verdict, judge

ME, OTHER = 1000, 1001
HERE = "/runs/r"


def seen(pid: int, ppid: int = 1, session: int | None = None, **facts: Any) -> Seen:
    stat = Stat(
        pid=pid,
        name="python",
        state=facts.pop("state", "S"),
        ppid=ppid,
        session=pid if session is None else session,
        terminal=facts.pop("terminal", 0),
        cpu_ticks=0,
        threads=1,
        starttime=facts.pop("starttime", pid * 10),
        rss_mib=1.0,
    )
    return Seen(stat, facts.pop("user", ME), **facts)


def start(pid: int, role: str, attempt: int = 1, **facts: Any) -> events.ProcessStart:
    return events.ProcessStart(
        pid=pid, starttime=pid * 10, role=role, attempt=attempt, rank=0, **facts
    )


def run(*starts: events.ProcessStart, **facts: Any) -> RunFacts:
    exits = {(e.pid, e.starttime): e for e in facts.pop("exits", ())}
    recorded = {(s.pid, s.starttime): s for s in starts}
    return RunFacts("r", HERE, recorded, exits, **facts)


def tagged(pid: int, looks: str = "", attempt: int = 1, **facts: Any) -> Seen:
    facts = {"run": "r", "directory": HERE, **facts}
    return seen(pid, looks=looks, attempt=attempt, **facts)


def judged(
    *processes: Seen, runs: tuple[RunFacts, ...] = (), spared: Any = ()
) -> dict[int, Verdict]:
    found = judge(processes, runs, ME, set(spared))
    return {verdict.seen.stat.pid: verdict for verdict in found}


def classes(*processes: Seen, **facts: Any) -> dict[int, Class]:
    return {pid: verdict.class_ for pid, verdict in judged(*processes, **facts).items()}


def test_what_is_recorded_of_an_ended_attempt_is_ours_and_of_a_live_one_untouched() -> None:
    starts = [start(10, "agent"), start(11, "rank"), start(12, "worker"), start(20, "rank", 2)]
    everything = [seen(start.pid) for start in starts]
    assert classes(*everything, runs=(run(*starts),)) == dict.fromkeys((10, 11, 12, 20), "own")
    live = run(*starts, live=2, supervised=True)
    found = judged(*everything, runs=(live,))
    assert {pid: v.class_ for pid, v in found.items()} == {
        10: "own",
        11: "own",
        12: "own",
        20: "live",
    }
    assert (found[11].proof, found[11].role, found[11].run) == ("recorded", "rank", "r")
    assert found[11].why == "recorded in attempt 1"


def test_a_live_supervisor_and_all_below_it_are_untouched() -> None:
    record = run(start(5, "supervisor"), start(11, "rank"), live=2, supervised=True)
    found = classes(seen(5), seen(7, ppid=5), seen(8, ppid=7), seen(11, ppid=5), runs=(record,))
    assert found == {5: "live", 7: "live", 8: "live", 11: "own"}


def test_below_a_role_in_its_session_is_ours_and_in_another_a_person_decides() -> None:
    record = run(start(11, "rank"))
    child = seen(30, ppid=11, session=11)
    grandchild = seen(31, ppid=30, session=11)
    daemon = seen(32, ppid=11, session=32)
    found = judged(seen(11), child, grandchild, daemon, runs=(record,))
    assert [found[pid].class_ for pid in (30, 31, 32)] == ["own", "own", "confirm"]
    assert {found[pid].proof for pid in (30, 31, 32)} == {"descends"}
    assert "session of its own" in found[32].why


def test_an_orphan_of_a_dead_leader_is_ours_only_if_it_began_while_the_leader_lived() -> None:
    ended = events.ProcessExit(pid=11, starttime=110, role="rank", m=5.0)  # tick 500
    record = run(start(11, "rank"), exits=[ended])
    inside, after, before = (
        seen(pid, session=11, starttime=at) for pid, at in ((40, 400), (41, 501), (42, 109))
    )
    assert classes(inside, after, before, runs=(record,)) == {40: "own"}
    never_said = run(start(11, "rank"))
    assert classes(inside, runs=(never_said,)) == {}
    unseen = events.ProcessExit(pid=11, starttime=110, role="rank", m=0.0)
    assert classes(inside, runs=(run(start(11, "rank"), exits=[unseen]),)) == {}


def test_another_process_with_a_recorded_pid_proves_nothing() -> None:
    record = run(start(11, "rank"))
    other = seen(11, starttime=999)
    child = seen(30, ppid=11, session=11)
    assert classes(other, child, runs=(record,)) == {}
    reborn = run(start(11, "rank"), exits=[events.ProcessExit(pid=11, starttime=110, m=9.0)])
    assert classes(seen(11), child, seen(31, ppid=11), runs=(reborn,)) == {}


def test_a_tag_needs_the_command_line_of_a_role_and_no_terminal() -> None:
    record = run(start(11, "rank"))
    found = judged(
        tagged(50, "worker"),
        tagged(51, "worker"),
        tagged(52, "worker", terminal=34816),
        tagged(53),
        runs=(record,),
    )
    assert [found[pid].class_ for pid in (50, 51, 52, 53)] == ["own", "own", "confirm", "confirm"]
    assert "has a terminal" in found[52].why
    assert "nothing that a training starts" in found[53].why


def test_a_tag_of_a_live_attempt_is_untouched_and_of_an_earlier_one_not() -> None:
    live = run(start(20, "rank", 2), live=2, supervised=True)
    found = classes(
        tagged(50, "worker", attempt=2), tagged(51, "worker"), tagged(52, attempt=2), runs=(live,)
    )
    assert found == {50: "live", 51: "own", 52: "live"}
    between = run(start(20, "rank", 2), supervised=True)  # its supervisor ends or begins an attempt
    assert classes(tagged(51, "worker"), runs=(between,)) == {51: "live"}


def test_a_tag_without_a_number_or_with_one_yet_to_come_is_not_of_an_earlier_attempt() -> None:
    live = run(start(20, "rank", 2), live=2, supervised=True)
    found = classes(tagged(50, "worker", attempt=0), tagged(51, "worker", attempt=3), runs=(live,))
    assert found == {50: "live", 51: "live"}
    over = run(start(20, "rank", 2))
    assert classes(tagged(50, "worker", attempt=0), runs=(over,)) == {50: "own"}


def test_without_its_supervisor_a_live_attempt_is_as_untouched() -> None:
    """Its sensor, a daemon that it started, and what only its tag tells of."""
    starts = [start(10, "agent"), start(11, "rank"), start(13, "sensor")]
    everything = [*(seen(each.pid) for each in starts), seen(30, ppid=11), tagged(50, "worker")]
    found = classes(*everything, runs=(run(*starts, live=1),))
    assert set(found) == {10, 11, 13, 30, 50}
    assert set(found.values()) == {"live"}


def test_every_role_of_the_record_is_ours_and_what_has_none_is_not() -> None:
    roles = ["sensor", "agent", "prepare", "rank", "worker", "resource tracker", "compile worker"]
    starts = [start(pid, role) for pid, role in enumerate(roles, start=10)]
    found = judged(*(seen(each.pid) for each in starts), runs=(run(*starts),))
    assert [found[each.pid].class_ for each in starts] == ["own"] * len(roles)
    assert [found[each.pid].role for each in starts] == roles
    # Recorded because it was below the supervisor, and that is all that is known of it.
    assert classes(seen(30), runs=(run(start(30, "other")),)) == {}
    recorded = run(start(30, "other"), start(31, "other"))
    assert classes(tagged(30), tagged(31, "rank"), runs=(recorded,)) == {30: "confirm", 31: "own"}


def test_below_a_leftover_in_a_session_of_its_own_the_command_line_of_a_role_is_proof() -> None:
    """A compile worker that nobody recorded; with a terminal a person may have started it."""
    record = run(start(11, "rank"))
    found = classes(
        seen(11),
        tagged(30, "compile worker", ppid=11),
        tagged(31, "worker", ppid=11, terminal=34816),
        tagged(32, ppid=11),
        seen(33, ppid=11, looks="worker"),
        runs=(record,),
    )
    assert found == {11: "own", 30: "own", 31: "confirm", 32: "confirm", 33: "confirm"}
    # Below what lives it is untouched, whatever its tag says.
    live = run(start(11, "rank", 2), live=2, supervised=True)
    assert classes(seen(11), tagged(30, "worker", ppid=11), runs=(live,)) == {
        11: "live",
        30: "live",
    }


def test_a_process_that_only_holds_a_gpu_is_not_even_a_suspect() -> None:
    gpu = ("/dev/nvidia0",)
    assert classes(seen(60, gpu_files=gpu)) == {}
    kept = seen(61, ppid=70, session=70, looks="rank", gpu_files=gpu)
    assert classes(kept, seen(70)) == {61: "suspect"}


def test_of_a_run_whose_folder_is_gone_the_tag_still_counts() -> None:
    found = judged(tagged(50, "worker", gone=True), tagged(51, gone=True))
    assert [found[pid].class_ for pid in (50, 51)] == ["own", "confirm"]
    assert "whose folder is gone" in found[50].why
    supervisor = seen(5, looks="supervisor", command=f"python -m supervisor {HERE} 1 launch")
    assert classes(tagged(50, "worker", gone=True), supervisor) == {50: "live"}
    # A run in another folder of runs is judged there, by its own record.
    assert classes(tagged(52, "agent", ppid=70), seen(70)) == {}


def test_a_training_that_we_only_watched_needs_a_confirmation() -> None:
    watched = run(start(11, "rank"), foreign=True)
    found = judged(seen(11), seen(30, ppid=11, session=11), runs=(watched,))
    assert {pid: verdict.class_ for pid, verdict in found.items()} == {11: "confirm", 30: "confirm"}
    assert "recorded while watching" in found[11].why
    assert found[30].why == "in the session of rank 11 of attempt 1"
    alive = watched._replace(live=2)  # its processes may be of any attempt that its log tells of
    assert classes(seen(11), seen(30, ppid=11, session=30), runs=(alive,)) == {
        11: "live",
        30: "live",
    }


def test_what_only_looks_like_a_leftover_is_a_suspect_with_its_evidence() -> None:
    orphan = seen(60, looks="worker", session=59, gpu_files=("/dev/nvidia0",))
    kept = seen(61, ppid=70, session=70, looks="worker")
    parent = seen(70, ppid=1, looks="")
    found = judged(orphan, kept, parent)
    assert set(found) == {60}
    assert found[60].class_ == "suspect"
    for words in ("its parent is gone", "leader of its session is dead", "holds /dev/nvidia0"):
        assert words in found[60].why


def test_never_ourselves_our_ancestors_another_user_or_another_namespace() -> None:
    record = run(*(start(pid, "rank") for pid in (11, 12, 13)))
    found = judged(
        seen(11),
        seen(12, user=OTHER),
        seen(13, here=False),
        tagged(14, "worker", user=OTHER),
        seen(15, looks="worker", user=OTHER),
        runs=(record,),
        spared=[11],
    )
    assert {verdict.class_ for verdict in found.values()} == {"never"}
    assert "another user (1001)" in found[12].why
    assert "another pid namespace" in found[13].why
    assert "this program" in found[11].why


def test_in_the_session_in_which_we_work_a_person_decides_whether_its_leader_lives_or_not() -> None:
    record = run(start(11, "agent"), start(12, "rank"))
    beside = seen(40, session=11, starttime=400), seen(41, session=12, starttime=400)
    us = seen(50, session=11, starttime=410)
    found = judged(seen(11), seen(12), *beside, us, runs=(record,), spared=[11, 50])
    assert [found[pid].class_ for pid in (40, 41, 50)] == ["confirm", "own", "never"]
    assert found[40].why.endswith(", in which this program itself works")
    ended = events.ProcessExit(pid=11, starttime=110, role="agent", m=5.0)  # tick 500
    record = run(start(11, "agent"), start(12, "rank"), exits=[ended])
    found = judged(seen(12), *beside, us, runs=(record,), spared=[50])
    assert [found[pid].class_ for pid in (40, 41, 50)] == ["confirm", "own", "never"]


@pytest.mark.parametrize("turned", [False, True])
def test_what_two_runs_have_recorded_belongs_to_the_one_that_lives(turned: bool) -> None:
    """A run that was begun inside another: the outer one has seen its processes too."""
    told = [start(11, "rank"), start(12, "compile worker"), start(13, "worker")]
    outer = run(
        *(start(each.pid, "other" if each.pid == 11 else "compile worker") for each in told)
    )
    inner = run(*told, live=1, supervised=True)._replace(id="inner", directory="/runs/inner")
    processes = [seen(each.pid, session=11) for each in told]
    runs = (inner, outer) if turned else (outer, inner)
    found = judged(*processes, runs=runs)
    assert {verdict.class_ for verdict in found.values()} == {"live"}
    assert {verdict.run for verdict in found.values()} == {"inner"}
    # When neither lives, who knows more of it tells; an exit tells of somebody else.
    over = inner._replace(live=0, supervised=False)
    ended = outer._replace(exits={(13, 130): events.ProcessExit(pid=13, starttime=130)})
    runs = (over, ended) if turned else (ended, over)
    found = judged(*processes, runs=runs)
    assert found[11].role == "rank" and found[11].run == found[13].run == "inner"


def test_an_innocent_is_not_even_mentioned() -> None:
    record = run(start(11, "rank"))
    assert classes(seen(80), seen(81, ppid=80, session=80), runs=(record,)) == {}
