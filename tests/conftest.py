"""What several tests share: runs in a folder of their own, and waiting for conditions."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings

from bitwatch import listing
from bitwatch.sense import processes
from tests.nvml.standin import NoCompiler, Standin

# Before torch is imported anywhere: its threads wait for each other by turning round, and with
# two tests at once on two cores a step then takes fifteen times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What hypothesis makes up is the same each time, and how long it takes says nothing: a busy machine
# makes any test slow. To look for more: --hypothesis-profile=default.
settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")

PATIENCE_S = 120.0  # against hangs only; nothing here measures time

PR_SET_SECUREBITS, SECBIT_NOROOT, SECBIT_NOROOT_LOCKED = 28, 1, 2  # prctl.h, securebits.h

TINY = """\
[run]
name = "tiny"
[model]
d_model = 32
heads = 1
layers = 1
feedforward = 64
context = 128
[data]
source = "bundled:austen"
validation = "validation"
workers = 2
sharding = "as-is"
[parallel]
ranks = 2
precision = "fp32"
device = "cpu"
[train]
steps = 60
batch = 8
micro_batch = 4
learning_rate = 1e-3
log_every = 10
eval_steps = 5
"""


def until(condition: Callable[[], Any], what: str, limit_s: float = PATIENCE_S) -> Any:
    """The first true value of `condition`; fails after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"waited {limit_s:.0f} s in vain for: {what}")


def alive(key: tuple[int, int]) -> bool:
    """Whether exactly this process (pid, starttime) is there and not a zombie."""
    stat = processes.read_stat(key[0])
    return stat is not None and stat.starttime == key[1] and stat.state not in "ZX"


def without_roots_rights() -> None:
    """For preexec_fn: from the exec on, root too needs the permissions that anybody else does.
    Without it a test of permissions would pass whatever the code does."""
    bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED
    ctypes.CDLL(None).prctl(PR_SET_SECUREBITS, bits, 0, 0, 0)


class Shell:
    """bitwatch as a person types it, with runs in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "runs"
        self.environment = {
            **os.environ,
            "BITWATCH_HOME": str(self.home),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.command = [str(Path(sys.executable).parent / "bitwatch")]
        self.config = folder / "tiny.toml"
        self.config.write_text(TINY)

    def start(self, *arguments: str, **keywords: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.command, *arguments],
            env=self.environment,
            cwd=keywords.pop("cwd", self.folder),
            stdin=subprocess.DEVNULL,
            stdout=keywords.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            text=True,
            **keywords,
        )

    def run(self, *arguments: str, code: int | None = 0, **keywords: Any) -> tuple[str, str]:
        """stdout and stderr; checks the exit code unless it is None."""
        process = self.start(*arguments, **keywords)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert code is None or process.returncode == code, (process.returncode, out, err)
        return out, err

    def ls(self) -> list[dict[str, Any]]:
        return json.loads(self.run("ls", "--json")[0])

    def one(self) -> dict[str, Any]:
        """The only run, as `ls` lists it, without the cost of a process a look."""
        (row,) = listing.rows(self.home)
        return msgspec.to_builtins(row)

    def launch(self, *changes: str) -> str:
        """Starts a detached run and returns its id."""
        words = [word for change in changes for word in ("--set", change)]
        return self.run("run", str(self.config), "--detach", *words)[0].strip()

    def reach(self, step: int) -> dict[str, Any]:
        return until(lambda: self._at(step), f"step {step}")

    def _at(self, step: int) -> dict[str, Any] | None:
        if not self.home.exists() or not listing.rows(self.home):
            return None
        row = self.one()
        assert row["state"] not in ("failed", "lost"), row
        return row if row["step"] >= step else None


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One folder of runs for a module; what still lives at the end is stopped by its id."""
    made = Shell(tmp_path_factory.mktemp("shell"))
    yield made
    for row in made.ls():
        if row["state"] not in ("done", "failed", "stopped", "lost"):
            made.run("stop", row["run"], "--now", code=None)


@pytest.fixture
def standin(tmp_path: Path) -> Standin:
    """Four healthy L4 in NVML's place, for processes with its environment."""
    try:
        made = Standin(tmp_path / "nvml")
    except NoCompiler as error:
        pytest.skip(str(error))
    made.set("driver", pcie_ms=0)
    return made


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 900 kB, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=900k", "tmpfs", str(folder)]
    if not mount or subprocess.run([mount, *options], check=False, capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
