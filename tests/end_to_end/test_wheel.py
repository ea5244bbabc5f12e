"""What `pip install .` gives: everything that a run needs, from any directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bitwatch.config import HERE

ROOT = HERE.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT],
        check=True,
        cwd=folder,
    )
    (wheel,) = folder.glob("bitwatch-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def test_configurations_themes_and_text_are_inside(unpacked: Path) -> None:
    for name in ("demo", "1b21", "680m"):
        assert (unpacked / f"bitwatch/configs/{name}.toml").read_text().startswith("#")
    assert (unpacked / "bitwatch/themes/dark.toml").exists()
    assert (unpacked / "bitwatch/tui/bitwatch.tcss").exists()
    assert len(list((unpacked / "trainer/demo_text").glob("*.parquet"))) == 3
    size = sum(file.stat().st_size for file in (unpacked / "trainer/demo_text").glob("*.parquet"))
    assert size < 2_000_000
    (metadata,) = unpacked.glob("bitwatch-*.dist-info")
    assert "bitwatch = bitwatch.cli:main" in (metadata / "entry_points.txt").read_text()
    assert "Apache License" in (metadata / "licenses" / "LICENSE").read_text()
    assert not (unpacked / "tests").exists()


def test_the_demo_is_planned_from_any_directory(unpacked: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "BITWATCH_HOME": str(tmp_path)}
    where = "import bitwatch.config as c; print(c.bundled('configs/demo.toml'))"
    found = subprocess.run(
        [sys.executable, "-c", where],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert found.stdout.decode().strip().startswith(str(unpacked))
    done = subprocess.run(
        [sys.executable, "-m", "bitwatch", "plan", "--json"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["data"]["num_shards"] == 2
