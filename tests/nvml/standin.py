"""GPUs where there are none: nvml.c, built as the library that nvidia-ml-py and nvitop load.

    standin = Standin(folder)                       # four healthy L4
    standin.set(2, temperature_c="N/A", processes="4242:512 0:100")   # one GPU's values
    standin.set("*", power_w=30)                    # those of all
    standin.set(3, gpu_state="lost")                # or "off" (the bus), "hangs", "healthy"
    standin.set("driver", count=8)                  # state="gone" | "running" | "hangs", error=15
    subprocess.Popen([...], env={**os.environ, **standin.environment})
    subprocess.Popen([...], env={**os.environ, **standin.counting})   # it writes down its calls
    standin.calls(3)                                # of GPU 3, the functions' names as called

A process that reads it sees a change at its next call. A value is a number, text, "N/A" (not
supported, as is what is left out), "error 999", or "hangs": that one call never returns. The
keys are those of nvml.c. Without pytest too: `python tests/nvml/standin.py FOLDER [COUNT]` makes
it and prints the environment to set; what is in FOLDER/gpus.txt can be edited by hand.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml.c")
LIBRARY = "libnvidia-ml.so.1"
DRIVER = {"count": 4, "version": "570.133.20", "cuda": 12080, "state": "running", "pcie_ms": 20}
L4 = {
    "gpu_state": "healthy", "name": "NVIDIA L4",
    "memory_total_mib": 23034, "memory_used_mib": 15800, "memory_reserved_mib": 512,
    "utilization_percent": 97, "memory_busy_percent": 60, "temperature_c": 71, "slowdown_c": 92,
    "shutdown_c": 97, "most_c": 85, "power_w": 71.5, "power_limit_w": 72, "fan_percent": "N/A",
    "clock_sm_mhz": 1425, "clock_sm_most_mhz": 2040, "clock_memory_mhz": 6251,
    "clock_memory_most_mhz": 6251, "reasons": "0x4", "pcie_in_mib_s": 3400, "pcie_out_mib_s": 2900,
    "pcie_generation": 4, "pcie_lanes": 16, "nvlinks": "N/A", "ecc_corrected": 0,
    "ecc_uncorrected": 0, "processes": "none", "graphics_processes": "none", "mig": "N/A",
}  # fmt: skip


class NoCompiler(Exception):
    """The tests that need it are skipped with this reason."""


class Standin:
    """The file that the library answers from. The library itself is built once a session."""

    def __init__(self, folder: Path, count: int = 4, **of_all: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file, self._calls = folder / "gpus.txt", folder / "calls.txt"
        self.environment = {
            "LD_LIBRARY_PATH": str(library()),
            "NVML_STANDIN": str(self._file),
        }
        self.counting = {**self.environment, "NVML_STANDIN_CALLS": str(self._calls)}
        self._values: dict[tuple[str, str], object] = {}
        self.set("driver", write=False, **{**DRIVER, "count": count})
        self.set("*", write=False, **{**L4, **of_all})
        for gpu in range(16):
            uuid = f"GPU-{gpu:x}b2c3d4e-5f60-7182-93a4-b5c6d7e8f90{gpu:x}"
            self.set(gpu, write=False, uuid=uuid, bus=f"00000000:{gpu + 16:02X}:00.0")
        self._write()

    def set(self, whose: int | str, *, write: bool = True, **values: object) -> None:
        """Of one GPU, of "*" all of them, or of the "driver"."""
        for key, value in values.items():
            self._values.pop((str(whose), key), None)  # a later line counts
            self._values[str(whose), key] = value
        if write:
            self._write()

    def calls(self, gpu: int | None = None) -> list[str]:
        """The functions that were called of this GPU, or of none."""
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        pairs = [line.split() for line in lines]
        return [name for name, of in pairs if of == ("-" if gpu is None else str(gpu))]

    def _write(self) -> None:
        """In whole or not at all: a reader may look at any moment."""
        lines = [f"{whose} {key} {value}" for (whose, key), value in self._values.items()]
        beside = self._file.with_suffix(".new")
        beside.write_text("\n".join(lines) + "\n")
        beside.replace(self._file)


@functools.cache
def library() -> Path:
    """The folder for LD_LIBRARY_PATH."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("no C compiler to make a stand-in for NVML")
    folder = Path(tempfile.mkdtemp(prefix="nvml-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build(compiler, folder)
    return folder


def build(compiler: str, folder: Path) -> None:
    flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.run([compiler, *flags, "-o", folder / LIBRARY, SOURCE], check=True)


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    made = Standin(where, *map(int, sys.argv[2:]))
    shutil.copy(library() / LIBRARY, where)
    made.environment["LD_LIBRARY_PATH"] = str(where)
    print(" ".join(f"{name}={value}" for name, value in made.environment.items()))
