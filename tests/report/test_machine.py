"""The machine as it is: what runs, what is left, and who looks after it. Nothing is touched."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from bitwatch.record import events, kernel
from bitwatch.record.journal import JournalWriter
from bitwatch.report import machine, machine_findings
from bitwatch.report.facts import Gathered
from bitwatch.report.machine import Here
from bitwatch.report.model import Finding
from bitwatch.sense.processes import send_signal
from tests.conftest import alive
from tests.report.runs import ids, made, of, says, started
from tests.supervise.standins import (
    ENDED,
    WORKER,
    Key,
    Standins,
    rank_says,
    settled,
    start,
    supervised,
    write,
)

ORPHANS = """
import os, subprocess
if os.fork() == 0:
    child = subprocess.Popen([{command!r}, "600"], executable="/bin/sleep")
    open({told!r}, "w").write(str(child.pid)); os._exit(0)
os.wait(); print(flush=True); import time; time.sleep(600)
"""


def report(home: Path) -> Gathered:
    gathered = Gathered()
    machine.add(gathered, home)
    return gathered


def about(gathered: Gathered, id_: str, key: Key) -> str:
    """What the evidence of a finding says of a process; empty when it does not name it."""
    found = [finding for finding in gathered.findings if finding.id == id_]
    return " ".join(
        one.text for f in found for one in f.evidence if one.source == f"process {key[0]}"
    )


def test_leftovers_have_their_proof_and_their_log_and_go_on_living(
    tmp_path: Path, standins: Standins
) -> None:
    run = made(tmp_path)
    log = tmp_path / "worker.log"
    with open(log, "ab") as file:
        left = standins.start(stderr=file)
    write(run, started(), start(left), ENDED)
    found = report(tmp_path)
    finding = of(found, "leftovers")
    assert finding.severity == "error"
    assert "of 1 ended run is still there" in finding.title
    said = about(found, "leftovers", left)
    assert "worker of rank 1" in said
    assert f"run {run.id}, attempt 1" in said
    assert "(proof: recorded)" in said
    (held,) = [one for one in finding.evidence if one.source == str(log)]
    assert f"held open by process {left[0]}" in held.text
    assert any("1 process of ended runs" in said for said in found.shown)
    entries = [entry for entry in found.timeline if entry.source == f"process {left[0]}"]
    assert "of an ended attempt" in entries[0].text
    assert alive(left)


def test_a_suspect_is_shown_with_why_and_not_called_ours(
    tmp_path: Path, standins: Standins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_findings, "SHOWN", 100_000)  # more may be on the machine
    told = tmp_path / "pid"
    standins.start(ORPHANS.format(command=WORKER, told=str(told)))
    pid = int(told.read_text())
    starttime = kernel.starttime(pid)
    assert starttime is not None
    try:
        found = report(tmp_path)
        assert "nothing proves" in of(found, "suspects").why
        assert "looks like a worker" in about(found, "suspects", (pid, starttime))
        assert any("nothing proves" in likely for likely in found.likely)
        assert not any(str(pid) in shown for shown in found.shown)
        assert alive((pid, starttime))
    finally:
        send_signal(pid, starttime, signal.SIGKILL)


def test_a_run_in_trouble_and_one_that_nobody_looks_after_are_named(
    tmp_path: Path, standins: Standins
) -> None:
    orphan, cared = made(tmp_path), made(tmp_path, "cared")
    agent, rank = standins.start(), standins.start()
    settled(agent)
    write(orphan, started(), start(agent, "agent"))
    write(
        cared,
        started(),
        events.Alert(
            id="data-starved", text="rank 1 waits for data", next="look at the disk", attempt=1
        ),
    )
    own = events.ProcessStart(pid=rank[0], starttime=rank[1], role="rank", rank=0)
    rank_says(cared, 0, own, events.Step(step=40, loss=0.4))
    with supervised(cared):
        found = report(tmp_path)
        assert orphan.id in of(found, "supervisor-gone").title
        trouble = of(found, "data-starved")
        assert cared.id in trouble.title
        assert "step 40" in trouble.title
        assert trouble.next == "look at the disk"
        assert any("2 runs on record, 2 of them live" in said for said in found.shown)
        texts = {e.source: e.text for e in found.timeline if "newest word" in e.text}
        assert "step 40" in texts[f"run {cared.id}"]
    assert alive(agent) and alive(rank)


def test_an_end_that_nobody_wrote_down_is_pointed_at(tmp_path: Path) -> None:
    run = made(tmp_path)
    write(run, started())
    says(run, 0, events.Step(step=40, loss=0.4))
    before = run.journal.read_bytes()
    found = report(tmp_path)
    assert f"bitwatch report {run.id}" in of(found, "not-closed").next
    assert run.journal.read_bytes() == before


def test_a_home_that_does_not_exist_and_one_full_of_odd_things_are_looked_at(
    tmp_path: Path,
) -> None:
    nowhere = report(tmp_path / "nowhere")
    assert "No run is on record here." in nowhere.shown
    assert not (tmp_path / "nowhere").exists()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "run.json").write_bytes(b"\xff")
    JournalWriter(tmp_path / "half" / "journal.jsonl").close()
    assert "leftovers" not in ids(report(tmp_path))


@pytest.fixture
def with_gpus(tmp_path: Path, standins: Standins) -> tuple[Here, Key, Key]:
    """A GPU that a leftover and a stranger hold, and one that does not answer."""
    run = made(tmp_path)
    left, stranger = standins.start(), standins.start()
    write(run, started(), start(left, "rank"), ENDED)
    here = machine.look(tmp_path)
    held: list[tuple[int, float | None]] = [(left[0], 9000.0), (stranger[0], None), (0, 5.0)]
    here.gpus = events.Gpus(
        gpus=[
            events.Gpu(index=0, memory_used_mib=9100.0, processes=held),
            events.Gpu(index=1, error="GPU is lost"),
        ]
    )
    return here, left, stranger


def test_who_holds_a_gpu_without_training_is_named_and_a_lost_gpu_is_hardware(
    with_gpus: tuple[Here, Key, Key],
) -> None:
    here, left, stranger = with_gpus
    findings: dict[str, Finding] = {f.id: f for f in machine_findings.findings(here)}
    texts = {one.source: one.text for one in findings["gpu-held"].evidence}
    assert texts.keys() == {f"process {left[0]}", f"process {stranger[0]}"}
    assert "9,000 MiB, rank" in texts[f"process {left[0]}"]
    assert "not of ours" in texts[f"process {stranger[0]}"]
    assert "bitwatch clean" in findings["gpu-held"].next
    assert "hardware" in findings["gpu-lost"].why
