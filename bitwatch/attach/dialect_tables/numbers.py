"""Numbers as logs write them: 1,208,606,722, 0.17B, 2.5e-4, nan, 2.00 GiB, 1:02:03."""

from __future__ import annotations

import re
import signal

NUMBER = r"[-+]?(?:\d+(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|NaN|inf(?:inity)?|Infinity)"
COUNT = r"\d+(?:,\d{3})+|\d+(?:\.\d+)?"
# Values that are whole numbers.
WHOLE = {"step", "steps", "tokens", "rank", "local_rank", "pid", "exit_code", "gpu", "gpus"}
WHOLE |= {
    "attempt",
    "attempts",
    "restarts_left",
    "worker",
    "workers",
    "shards",
    "stopped",
    "sequence",
}


def number(text: str) -> float:
    return float(text.replace(",", ""))


def whole(text: str) -> int:
    """12, 1,200 or 3.2e+4"""
    return int(float(text.replace(",", "")))


LONGEST_LINE = 2000
SIZES = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
WORDS = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def count(text: str) -> int:
    """1,208,606,722 or 123.59M or 0.17 billion"""
    match = re.fullmatch(rf"({COUNT})\s*([a-zA-Z]*)", text.strip())
    if not match:
        raise ValueError(text)
    unit = match[2]
    size = WORDS.get(unit.lower()) or SIZES.get(unit.upper())
    if size is None:
        raise ValueError(text)
    return round(number(match[1]) * size)


ROUNDED = re.compile(
    r"(\d[\d,]*(?:\.(\d+))?)\s*([KMBGT]|thousand|million|billion|trillion)\b", re.IGNORECASE
)


def rounded_to(line: str, number: int) -> int:
    """10,000 where a line says 0.11M for this number; 0 where it says it to the last digit."""
    for match in ROUNDED.finditer(line[:LONGEST_LINE]):
        text, decimals, unit = match.groups()
        if count(f"{text} {unit}") == number:
            return round(count(f"1 {unit}") / 10 ** len(decimals or ""))
    return 0


def mib(text: str) -> float:
    """2.00 GiB, 512 MB"""
    match = re.fullmatch(r"([\d.]+)\s*([KMGT]?)i?B?", text.strip())
    if not match:
        raise ValueError(text)
    return float(match[1]) * {"": 2**-20, "K": 2**-10, "M": 1, "G": 2**10, "T": 2**20}[match[2]]


def clock_s(text: str) -> float:
    """00:10, 1:02:03, 2 days, 1:02:03"""
    days = re.match(r"(\d+) days?, ", text)
    if days:
        return 86400.0 * int(days[1]) + clock_s(text[days.end() :])
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds


def signal_name(text: str) -> str:
    """SIGTERM, TERM and 15 are the same."""
    if text.isdigit():
        return signal.Signals(int(text)).name
    name = text.upper()
    return name if name.startswith("SIG") else "SIG" + name
