"""More processes than there should be, GPUs in other hands, and the machine."""

from __future__ import annotations

from typing import Any

from bitwatch.record import events
from bitwatch.record.view import ProcessRow, View
from bitwatch.supervise.watch_processes import NOWHERE, Around, Growth, about_processes

NOW = 1_700_000_000.0


def row(pid: int, role: str, state: str = "S", ppid: int = 1) -> ProcessRow:
    return ProcessRow(pid=pid, starttime=pid, ppid=ppid, role=role, state=state)


def alerts(view: View, around: Around = NOWHERE, most: int | None = None) -> dict[str, Any]:
    return {alert.id: alert for alert in about_processes(view, around, most)}


def test_what_the_plan_explains_is_no_crowd() -> None:
    roles = ["supervisor", "sensor", "agent", *["rank"] * 2, *["worker"] * 4]
    view = View(state="running", ranks=2, workers=2)
    view.processes = [row(at, role, ppid=0) for at, role in enumerate(roles, 1)]
    assert alerts(view) == {}
    # Twice the workers at the seam of two epochs, trackers, torch's own, and the dead.
    more = ["worker"] * 4 + ["resource tracker"] * 2 + ["compile worker"] * 30
    view.processes += [row(100 + at, role) for at, role in enumerate(more)]
    view.processes += [row(200 + at, "worker", "Z") for at in range(50)]
    assert alerts(view) == {}
    view.processes += [row(300 + at, "other") for at in range(10)]
    alert = alerts(view)["process-count"]
    assert "more processes than the plan explains: over 19" in alert.text
    assert "10 x other" in alert.evidence and "8 x worker" in alert.evidence
    assert alerts(view, most=30) == {}
    assert "watch.max_processes allows: over 20" in alerts(view, most=20)["process-count"].text


def test_what_prepares_the_text_and_what_compiles_may_be_many() -> None:
    view = View(state="running", ranks=1, workers=1, phase="train")
    view.processes = [row(9, "prepare"), row(2, "compile worker"), row(3, "rank")]
    view.processes += [row(100 + at, "other", ppid=9) for at in range(50)]  # the pool
    view.processes += [row(200 + at, "compile worker", ppid=2) for at in range(50)]
    view.processes += [row(300 + at, "other", ppid=200 + at) for at in range(50)]  # a compiler
    assert alerts(view) == {}
    view.processes += [row(400 + at, "other", ppid=3) for at in range(50)]
    assert alerts(view)["process-count"].evidence == ["50 x other", "1 x prepare", "1 x rank"]
    for phase in ("prepare", "compile"):
        view.phase = phase
        assert alerts(view) == {}


def test_what_ended_attempts_have_left_is_no_crowd_of_this_one() -> None:
    view = View(state="running", ranks=1, workers=1)
    view.processes = [row(1, "rank")] + [row(100 + at, "worker") for at in range(30)]
    view.processes += [row(200 + at, "other", ppid=100) for at in range(30)]
    assert "process-count" in alerts(view)
    view.leftovers = [
        events.ProcessStart(pid=100 + at, starttime=100 + at, role="worker", attempt=1)
        for at in range(30)
    ]
    assert "process-count" not in alerts(view)


def crowd(workers: int) -> View:
    view = View(state="running", ranks=2, workers=8)
    view.rank_steps = {0: events.Step(step=1)}
    view.processes = [row(at, "worker") for at in range(workers)]
    view.processes += [row(100 + at, "compile worker") for at in range(30)]
    return view


def grown(*minutes: tuple[int, int]) -> int | None:
    """After minutes of the fewest and the most workers each, looked at every second."""
    growth, level = Growth(), None
    assert growth.note(View(state="running"), NOW) is None  # no step yet: nobody is counted
    for second in range(60 * len(minutes) + 1):
        fewest, most = minutes[min(second // 60, len(minutes) - 1)]
        level = growth.note(crowd(most if second % 60 == 30 else fewest), NOW + second)
    return level


def test_processes_that_become_more_and_more_are_said_before_they_are_too_many() -> None:
    assert grown((4, 8), (13, 13), (14, 16), (15, 15)) == 8
    assert grown((4, 8), (13, 13), (14, 16)) is None  # not for long enough
    assert grown((4, 8), (12, 16), (12, 16), (12, 16)) is None  # within what may be
    assert grown((4, 8), (4, 16), (4, 16), (4, 16), (4, 16)) is None  # for instants only
    assert grown((4, 8), (13, 13), (14, 14), (15, 15), (8, 15)) is None  # and fewer again
    alert = alerts(crowd(15), Around(grown_from=8))["process-count"]
    assert alert.text.startswith("processes become more and more: over 8 + 4 for minutes")
    assert alert.evidence == ["15 x worker"]


def test_a_relaunch_that_takes_long_to_its_first_step_is_no_growth() -> None:
    growth = Growth()
    for second in range(1000):  # its workers come after minutes
        view = crowd(0 if second < 400 else 16)
        view.step = 1200  # an earlier attempt's
        if second < 420:
            view.rank_steps = {}
        assert growth.note(view, NOW + second) is None


def test_a_clock_that_is_set_is_no_growth() -> None:
    growth = Growth()
    for second in range(400):
        jump = 10_000 if second > 200 else 0
        assert growth.note(crowd(8), NOW + second + jump) is None


def test_memory_of_a_gpu_in_other_hands_is_named() -> None:
    gpus = [
        events.Gpu(index=0, processes=[(10, 9000.0), (77, 3100.0), (78, 2.0)]),
        events.Gpu(index=1, processes=[(99, 5000.0)]),  # none of ours is there
    ]
    view = View(state="running", ranks=1, device="cuda", gpus=events.Gpus(gpus=gpus))
    view.processes = [row(10, "rank")]
    alert = alerts(view)["gpu-held"]
    assert alert.text == "other processes hold memory of GPU 0"
    assert alert.evidence == ["GPU 0: pid 77 holds 3,100 MiB"]
    view.leftovers = [events.ProcessStart(pid=77, starttime=77, role="rank", attempt=1)]
    alert = alerts(view)["gpu-held"]
    assert "left of an ended attempt" in alert.evidence[0] and alert.next.startswith("key c ends")
    view.processes += [row(77, "rank"), row(78, "other", ppid=77)]  # below the supervisor again
    gpus[0].processes = [(10, 9000.0), (77, 3100.0), (78, 200.0)]
    assert alerts(view)["gpu-held"].evidence == [
        "GPU 0: pid 77 holds 3,100 MiB, left of an ended attempt",
        "GPU 0: pid 78 holds 200 MiB, left of an ended attempt",
    ]
    view.gpus = events.Gpus(gpus=[events.Gpu(index=0, processes=None)])
    assert alerts(view) == {}


def test_the_machine_around_a_run() -> None:
    around = Around(shm_free_mib=12.0, session=["logind ends all (KillUserProcesses=yes)"])
    found = alerts(View(state="running", workers=1), around)
    assert "/dev/shm is almost full" in found["shm-low"].text
    assert found["shm-low"].evidence == ["12 MiB were left when it was seen"]
    assert "enable-linger" in found["session-will-kill"].next
    assert alerts(View(state="running", workers=1), Around(shm_free_mib=4000.0)) == {}
    assert "shm-low" not in alerts(View(state="running", workers=0), around)  # nothing is there
