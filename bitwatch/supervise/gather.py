"""Facts about a model, its data and the GPUs, asked of the trainer in processes of its own.

Torch and datasets take seconds to import and may hang or crash: that must not happen here.
The two halves run beside each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bitwatch import config as configuration
from bitwatch.config import Config
from bitwatch.plan.facts import FactError, Facts, merge
from bitwatch.supervise import launch

LIMIT_S = 180.0  # a hub that answers slowly; one that does not is noticed in seconds
HALVES = (("model", "devices"), ("data",))


def gather(config: Config) -> Facts:
    """Never raises: what could not be learnt is an error inside the facts."""
    with tempfile.TemporaryDirectory(prefix="bitwatch-") as folder:
        path = Path(folder) / "config.toml"
        path.write_text(configuration.dump(config))
        halves = [_start(path, parts) for parts in HALVES]
        return merge(*(_read(process) for process in halves))


def _start(path: Path, parts: tuple[str, ...]) -> subprocess.Popen[bytes]:
    asked = [word for part in parts for word in ("--part", part)]
    environment = launch.clean_environment(dict(os.environ))
    environment.setdefault("OMP_NUM_THREADS", "1")
    environment["BITWATCH_PARENT"] = str(os.getpid())  # with which it ends
    return subprocess.Popen(
        [sys.executable, "-m", "trainer.inspect", str(path), *asked],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _read(process: subprocess.Popen[bytes]) -> Facts:
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        text = f"looking at the model and the data took longer than {LIMIT_S:.0f} s"
        return Facts(error=FactError(kind="failed", text=text))
    try:
        return msgspec.json.decode(out, type=Facts)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        lines = err.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"exit code {process.returncode}"
        return Facts(error=FactError(kind="failed", text=f"looking at the run failed: {why}"))
