"""How far the shards are read in this epoch, and which ranks are apart. Pure."""

from __future__ import annotations

from bitwatch.record.view import View
from bitwatch.tui.draw import Line, bar, fit, plain
from bitwatch.tui.readings import shard_progress, uneven

BAR_MAX = 32


def lines(view: View, width: int, height: int) -> list[Line]:
    """In columns, below an empty line; as many as there is room for."""
    found = _bars(view, width, height - 2) if height >= 2 else []
    if (apart := _apart(view)) is not None and height >= len(found) + 2:
        found.append(apart.cut(width))
    return [Line(), *found] if found else []


def _apart(view: View) -> Line | None:
    """The foremost rank and the one that is least far, when they are worth comparing."""
    found = uneven(view)
    if found is None:
        return None
    (first, most), (last, least) = found
    line = (
        Line("rank ", "quiet").add(str(first)).add(" has read ", "quiet").add(f"{100 * most:.0f}")
    )
    line.add(" % of its text, rank ", "quiet").add(str(last)).add(" only ", "quiet")
    return line.add(f"{100 * least:.0f} %", "strong warning")


def _bars(view: View, width: int, height: int) -> list[Line]:
    shares = shard_progress(view)
    if not shares:
        return []
    name = max(len(plain(shard)) for shard in shares) + 6
    a_line = max(1, min(len(shares), (width + 3) // (name + 6 + 12 + 3)))
    bar_width = (width + 3) // a_line - 3 - name - 1 - 6
    if bar_width < 6:
        return []
    if -(-len(shares) // a_line) > height:
        mean = sum(shares.values()) / len(shares)
        line = Line("of their shards ", "quiet").join(bar(mean, min(BAR_MAX, width - 22), "fine"))
        return [line.add(f"{100 * mean:.0f}".rjust(4)).add(" %", "quiet")]
    found: list[Line] = []
    for at, (shard, share) in enumerate(shares.items()):
        if at % a_line == 0:
            found.append(Line())
        else:
            found[-1].add("   ")
        found[-1].add("shard ", "quiet").add(fit(plain(shard), name - 6)).add(" ")
        found[-1].join(bar(share, min(bar_width, BAR_MAX), "fine" if share < 1 else "quiet"))
        found[-1].add(fit(f"{100 * share:.0f}", 4, right=True)).add(" %", "quiet")
    return found
