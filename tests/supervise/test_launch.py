"""What the agent and everything below it inherit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch.record import rundir
from bitwatch.supervise import launch

DEMO = configuration.load(configuration.bundled("configs/demo.toml"))


def test_the_tags_of_an_outer_run_are_not_passed_on() -> None:
    outer = {
        "BITWATCH_RUN": "outer",
        "BITWATCH_AGENT": "7",
        "RANK": "3",
        "MASTER_PORT": "1",
        "PATH": "/bin",
    }
    assert launch.clean_environment(outer) == {"PATH": "/bin", "PYTHONSAFEPATH": "1"}


@pytest.mark.parametrize(("given", "kept"), [("/a::/b", "/a:/b"), ("", None), (":", None)])
def test_an_empty_entry_would_mean_the_current_directory(given: str, kept: str | None) -> None:
    assert launch.clean_environment({"PYTHONPATH": given}).get("PYTHONPATH") == kept


def test_the_agent_is_tagged_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run = rundir.create(tmp_path, "demo")
    environment = launch.agent_environment(run, 3, DEMO, on_cpu=True, grace_s=155.5)
    assert environment["BITWATCH_RUN"] == run.id
    assert environment["BITWATCH_ATTEMPT"] == "3"
    assert environment["BITWATCH_DIR"] == str(run.path)
    assert environment["SPT_NOENV"] == "1"
    assert environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert int(environment["OMP_NUM_THREADS"]) >= 1
    assert environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "155"
    on_gpus = launch.agent_environment(run, 3, DEMO, on_cpu=False, grace_s=40.0)
    assert "GLOO_SOCKET_IFNAME" not in on_gpus


@pytest.mark.parametrize("value", [None, "", "1,3"])
def test_the_gpus_that_the_ranks_may_see_are_recorded_as_they_inherit_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if value is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    run = rundir.create(tmp_path, "demo")
    inherited = launch.agent_environment(run, 1, DEMO, on_cpu=False, grace_s=40.0)
    assert inherited.get("CUDA_VISIBLE_DEVICES") == value
    assert launch.started(run, 1, DEMO, False, 40.0).visible_devices == value


def test_the_trainer_is_the_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trainer.py").write_text("raise SystemExit('the wrong trainer')")
    monkeypatch.chdir(tmp_path)
    script = launch.trainer_script()
    assert script.name == "train.py"
    assert script.exists()
    assert tmp_path not in script.parents
