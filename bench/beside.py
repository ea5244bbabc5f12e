"""What watching costs: bitwatch on a live run with GPUs, and nvitop beside it.

    python bench/screen.py --live [--nvitop PATH] [--json FILE]

Both look at the same stand-in for NVML (tests/nvml, compiled here) once a second, in terminals
of the same size, on the same machine in the same seconds: what one window of time takes from the
caches it takes from both. Processor time is read of the kernel's clocks, to the nanosecond, and
wall time decides nothing. nvitop is only run, as a program.
"""

from __future__ import annotations

import contextlib
import math
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import scene
from scene import Scene, cpu_s
from terminal import BITWATCH, Screen

sys.path.append(str(Path(__file__).resolve().parents[1]))
from tests.nvml.standin import NoCompiler, Standin

COLUMNS, LINES = 160, 50
GPUS = 4
SETTLED = 0.5  # of a core: a viewer that takes more is still reading the history
CALM_S = 3.0
OLD_S = 65.0  # of a training that somebody leaves open; in its first minute the ages tick
RECORDS_PER_S = 100
KEYS = ("4", "t", ".", "t", "t", "\t", "y")  # each has an effect in words
LEFT_OUT = "left out: give --nvitop PATH"


def watching(
    home: Path, steps: int, processes: int, nvitop: str | None, windows: int, seconds: float
) -> dict[str, Any]:
    """Percent of a core, as medians of windows, and the ratio in each window."""
    try:
        standin = Standin(home / "nvml", GPUS)
    except NoCompiler as error:
        print(f"without GPUs: {error}")
        standin = None
    environment = standin.environment if standin else {}
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(scene.scene(home, steps, processes, environment))
        began = time.monotonic()
        if standin:
            for gpu, rank in enumerate(live.ranks):
                standin.set(gpu, processes=f"{rank}:15000")
        who = {"supervisor": live.supervisor}
        if live.sensor:
            who["sensor"] = live.sensor
        who["viewer"] = stack.enter_context(viewer(live))
        settle(who["viewer"])
        time.sleep(max(0.0, OLD_S - (time.monotonic() - began)))
        if nvitop and standin:
            words = [nvitop, "--interval", "1", "-m", "full"]
            who["nvitop"] = stack.enter_context(
                scene.in_terminal(words, live.environment, COLUMNS, LINES)
            )
            time.sleep(CALM_S)
        left_out = LEFT_OUT if standin else "left out: it needs a GPU"
        found = figures([window(who, seconds) for _ in range(windows)], left_out)
        if standin and "nvitop" in who:
            hold_all(standin, live)
            time.sleep(2 * CALM_S)
            shares = [window(who, seconds) for _ in range(windows)]
            found |= {
                f"all hold a GPU: {name}": value for name, value in figures(shares, "").items()
            }
        found["run"] = live.run.id
        found |= {f"{name}, MiB": round(rss_mib(pid)) for name, pid in who.items()}
    return found


def hold_all(standin: Standin, live: Scene) -> None:
    """Every process of the run holds memory of a GPU: then nvitop shows as many as bitwatch."""
    below = live.processes
    for gpu in range(GPUS):
        standin.set(gpu, processes=" ".join(f"{pid}:30" for pid in below[gpu::GPUS]))


def keys(home: Path, presses: int) -> dict[str, Any]:
    """From a key to its effect while ranks write 100 records a second and the driver hangs."""
    try:
        standin = Standin(home / "nvml", GPUS)
    except NoCompiler:
        standin = None
    environment = standin.environment if standin else {}
    times: list[float] = []
    with scene.scene(home, 10_000, 100, environment, 1 / RECORDS_PER_S) as live:
        if standin:
            standin.set("*", gpu_state="hangs")
        with Screen(live.run, (COLUMNS, LINES)) as screen:
            screen.until(lambda text: "RUNNING" in text)
            screen.until(lambda _: screen.done_reading())
            time.sleep(CALM_S)
            while len(times) < presses:
                for key in KEYS:
                    time.sleep(0.03)
                    times.append(screen.press(key, sign))
            screen.leave()
    times.sort()
    hangs = "NVML hangs" if standin else "no GPU"
    what = f"key to paint, {RECORDS_PER_S} records/s, {hangs}, ms"
    return {
        f"{what} (median)": round(1000 * statistics.median(times), 1),
        f"{what} (p95)": round(1000 * times[math.ceil(0.95 * len(times)) - 1], 1),
        "keys pressed": len(times),
    }


def sign(text: str) -> object:
    """What the keys change in words: the scale of the curve, what the focus offers below, and
    by what the processes are sorted."""
    last = text.rstrip().rsplit("\n", 1)[-1]
    return " log ─" in text or " log ·" in text, "filter" in last, re.findall(r" by (\w+) ", text)


def window(who: dict[str, int], seconds: float) -> dict[str, float]:
    before, began = {name: cpu_s(pid) for name, pid in who.items()}, time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return {name: 100 * (cpu_s(pid) - before[name]) / took for name, pid in who.items()}


def figures(shares: list[dict[str, float]], left_out: str) -> dict[str, Any]:
    ours = [sum(share for name, share in each.items() if name != "nvitop") for each in shares]
    found: dict[str, Any] = {}
    for name in shares[0]:
        found[f"{name}, % of a core"] = round(statistics.median(s[name] for s in shares), 2)
    found["all of bitwatch, % of a core"] = round(statistics.median(ours), 2)
    if "nvitop" in shares[0]:
        theirs = [each["nvitop"] for each in shares]
        viewers = [each["viewer"] for each in shares]
        for name, part in (("viewer", viewers), ("all of bitwatch", ours)):
            ratios = [mine / other for mine, other in zip(part, theirs, strict=True)]
            found[f"{name} / nvitop"] = round(statistics.median(ratios), 2)
    else:
        found["nvitop"] = left_out
    return found | {"windows": len(shares)}


@contextlib.contextmanager
def viewer(live: Scene) -> Iterator[int]:
    words = [BITWATCH, "attach", live.run.id]
    with scene.in_terminal(words, live.environment, COLUMNS, LINES) as pid:
        yield pid


def settle(pid: int, limit_s: float = 120.0) -> None:
    """Until a viewer has read the history."""
    deadline = time.monotonic() + limit_s
    time.sleep(CALM_S)
    while window({"viewer": pid}, CALM_S)["viewer"] > 100 * SETTLED:
        if time.monotonic() > deadline:
            raise SystemExit("the viewer never came to rest")
    time.sleep(CALM_S)


def rss_mib(pid: int) -> float:
    words = Path(f"/proc/{pid}/status").read_text().split()
    return int(words[words.index("VmRSS:") + 1]) / 1024
