"""More processes than there should be, ranks that died, GPUs in other hands, and the machine."""

from __future__ import annotations

from typing import Any

from bitwatch.record import events
from bitwatch.record.view import ProcessRow, View
from bitwatch.supervise.watch_processes import NOWHERE, Around, about_processes


def row(pid: int, role: str, state: str = "S") -> ProcessRow:
    return ProcessRow(pid=pid, starttime=pid, ppid=1, role=role, state=state)


def alerts(view: View, around: Around = NOWHERE, most: int | None = None) -> dict[str, Any]:
    return {alert.id: alert for alert in about_processes(view, around, most)}


def test_what_the_plan_explains_is_no_crowd() -> None:
    roles = ["supervisor", "sensor", "agent", *["rank"] * 2, *["worker"] * 4]
    view = View(state="running", ranks=2, workers=2)
    view.processes = [row(at, role) for at, role in enumerate(roles, 1)]
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


def test_a_rank_that_is_gone_is_said_with_what_is_known_and_the_first_one_first() -> None:
    view = View(run="r", state="running", ranks=2)
    view.exits = [
        events.ProcessExit(pid=7, starttime=1, role="rank", rank=1, t=10.0),
        events.ProcessExit(pid=6, starttime=1, role="rank", rank=0, signal=9, t=9.0),
    ]
    alert = alerts(view)["rank-died"]
    assert alert.text == "rank 0 was killed by SIGKILL; the others are ended with it"
    assert alert.evidence[1] == "pid 7: rank 1 is gone without a last word"
    view.last_words = {
        0: events.RankEnded(rank=0, state="stopped"),
        1: events.RankEnded(rank=1, state="failed", cause="no room"),
    }
    assert "rank 1 failed: no room" in alerts(view)["rank-died"].text
    view.state = "failed"  # the cause of the end says it
    assert alerts(view) == {}


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
    view.leftovers = [events.ProcessStart(pid=77, role="rank", attempt=1)]
    alert = alerts(view)["gpu-held"]
    assert "left of an ended attempt" in alert.evidence[0] and alert.next.startswith("c ends")
    view.gpus = events.Gpus(gpus=[events.Gpu(index=0, processes=None)])
    assert alerts(view) == {}


def test_the_machine_around_a_run() -> None:
    around = Around(shm_free_mib=12.0, session=["logind ends all (KillUserProcesses=yes)"])
    found = alerts(View(state="running"), around)
    assert "12 MiB are left of /dev/shm" in found["shm-low"].text
    assert "enable-linger" in found["session-will-kill"].next
    assert alerts(View(state="running"), Around(shm_free_mib=4000.0)) == {}
