"""The processes of the run (supervisor, agent, ranks, workers), and beside them what was left
behind, what may be somebody's, what only looks like a leftover, and who else holds a GPU.

Without the focus, and without room, workers alike share a line; with the focus every process
has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from textual import events as textual_events

from bitwatch.attach.others import Other
from bitwatch.record.view import END_STATES, ProcessRow, View
from bitwatch.text import counted
from bitwatch.tui import family
from bitwatch.tui.draw import Line, Part, centred, clip, joined, plain
from bitwatch.tui.family import Renewed, renew
from bitwatch.tui.kept import Value
from bitwatch.tui.rows import SORTS, Key, Row, arrow
from bitwatch.tui.sections import (
    OURS,
    Heading,
    Section,
    beside,
    counts,
    lines_of,
    of_it,
    sections,
)
from bitwatch.tui.widgets.columns import Columns
from bitwatch.tui.widgets.filter_line import FilterLine
from bitwatch.tui.widgets.row_list import RowList

STALE_S = 10.0
EVIDENCE_CELLS = 90
MOST_BESIDE = 10  # lines for what is not of the attempt, before the panel is asked to fill


class ProcessPanel(RowList):
    """`as_tree`, `sort` and `backwards` are switched by the dashboard's keys, which then call
    `repaint`. `others` are set before a picture is shown."""

    default_id = "processes"
    title = "Processes"
    keeps = ("as_tree", "sort", "backwards")

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.others: Sequence[Other] = ()
        self.as_tree = True
        self.sort = "pid"
        self.backwards = False
        self.filter = FilterLine()
        self._beside: list[Row] = []
        self._beside_of: object = None  # what they were made of
        self._own: dict[Key, Row] = {}
        self._own_of: View | None = None
        self._columns: Columns | None = None
        self._arranged: object = None  # for what the rows and columns are

    def restore(self, kept: dict[str, Value]) -> None:
        super().restore(kept)
        if self.sort not in SORTS:
            self.sort = "pid"

    # -- what is shown --------------------------------------------------------------------

    def remember(self, view: View) -> None:
        """Their rows are made once a picture, however often it is drawn; and of hundreds only
        those that have changed."""
        pids = [*(one.pid for one in self.others), *(one.pid for one in view.leftovers)]
        gpu = family.gpu_memory(view) if pids else {}
        of = self.others, view.leftovers, view.run, [gpu.get(pid) for pid in pids]
        if other := of != self._beside_of:
            self._beside_of, self._beside = of, beside(view, self.others, self.now)
        ours, before, self._own_of = of_it(view, self._beside), self._own_of, None
        renewed = renew(ours, self.now, self._own, before) if before is not None else None
        if renewed is None:
            self._own = family.make(ours, self.now, self._own)
        self._own_of = ours
        if renewed is None or other or not self._stands(renewed):
            self._arranged = None

    def _stands(self, renewed: Renewed) -> bool:
        """Whether the same rows stand in the same columns still, but for what these say."""
        if renewed.rows and (renewed.reshaped or not self.as_tree or self.filter.text):
            return False
        joined = any(isinstance(row, Row) and row.members for row in self._rows)
        for row in renewed.rows:
            if joined and row.process.role == "worker":
                return False
            if self._columns is not None:
                self._columns.forget(row)
        return True

    def lines(self, width: int, height: int) -> list[Line]:
        filtering = [self.filter.line(width)] if self.filter.editing else []
        height -= len(filtering)
        drawn = self._table(width, height)
        drawn += [Line() for _ in range(height - len(drawn))] if filtering else []
        return [*drawn[: max(0, height)], *filtering]

    def _table(self, width: int, height: int) -> list[Line]:
        self._head = 1 if height >= 4 else 0
        room = self._room = max(1, height - self._head)
        columns = self._arrange(width, room)
        if not self._rows:
            self._offset = 0
            return centred(self._nothing(), width, height)
        self._keep_selection()
        self._scroll_to_selection(room)
        sort = "" if self.as_tree else self.sort
        drawn = [columns.heading(sort, arrow(self.sort, self.backwards))][: self._head]
        for row in self._rows[self._offset : self._offset + room]:
            drawn.append(row.line(width) if isinstance(row, Heading) else self._line(row, columns))
        return drawn

    def _arrange(self, width: int, room: int) -> Columns:
        """The rows in their order, and their columns, anew when they would be others."""
        how = self.as_tree, self.sort, self.backwards, self.filter.text, self.has_focus
        old = self.view.supervisor == "gone" or self._is_old()
        asked = (width, room, old, *how)
        columns = self._columns
        if columns is None or self._arranged != asked:
            self._rows = self._fitting(room)
            rows = [row for row in self._rows if isinstance(row, Row)]
            columns = self._columns = Columns(rows, width, self.now, old=old)
            self._arranged = asked
        columns.now = self.now
        return columns

    def _nothing(self) -> str:
        if self.filter.text:
            return f"no process contains '{plain(self.filter.text)}'"
        over = self.view.state in END_STATES
        if self.view.foreign:
            return "no process of it is known"
        return "nothing of this run is left" if over else "no sample of processes yet"

    def summary(self, width: int) -> Line:
        view = self.view
        parts = self._numbers(9)
        processes = self._ours()
        living = msgspec.structs.replace(view, processes=processes)
        for role, number in family.counts(living).items():
            if role in ("supervisor", "agent", "rank", "worker"):
                plural = "s" if number > 1 else ""
                importance = {"rank": 8, "worker": 7}.get(role, 1)
                line = Line(str(number)).add(f" {role}{plural}", "quiet")
                parts.append(Part(importance, line))
        cpu = [row.cpu_percent for row in processes if row.cpu_percent is not None]
        if cpu:
            line = Line("cpu ", "quiet").add(f"{sum(cpu):.0f}").add(" %", "quiet")
            parts.append(Part(5, line))
            memory = sum(row.rss_mib or 0.0 for row in processes)
            line = Line("memory ", "quiet").add(f"{memory / 1024:.1f}").add(" GiB", "quiet")
            parts.append(Part(4, line))
        return joined(parts or [Part(0, Line("none", "quiet"))], width)

    def subtitle(self) -> list[Part]:
        view = self.view
        processes = self._ours()
        parts = []
        row = self.selected() if self.has_focus else None
        if row and row.other and (words := row.barred or row.other.why):
            line = Line(f"{row.process.pid} ", "quiet").add(
                clip(plain(words[: 2 * EVIDENCE_CELLS]), EVIDENCE_CELLS)
            )
            parts.append(Part(0, line))
        if processes:
            parts.append(
                Part(
                    1, Line(f"{len(processes)} {'of it' if self.view.foreign else 'ours'}", "quiet")
                )
            )
        parts += self._numbers(5, short=True)
        if self.filter.text and not self.filter.editing:
            parts.append(Part(7, Line(f"/{plain(self.filter.text)}", "accent")))
        if self.tagged and (number := sum(len(r.keys) for r in self.tagged_rows())):
            parts.append(Part(6, Line(f"{number} tagged", "accent")))
        if not self.as_tree:
            parts.append(Part(4, Line(f"by {self.sort}", "quiet")))
        if processes and view.sampled is not None and self._is_old():
            parts.append(Part(8, Line(f"{self.now - view.sampled:.0f} s old", "warning")))
        return parts

    def _is_old(self) -> bool:
        """Whether the sample is not of now."""
        return self.view.sampled is not None and self.now - self.view.sampled >= STALE_S

    def _ours(self) -> list[ProcessRow]:
        """What lives of the live attempt: what is known of the others is newer than the sample."""
        return [row.process for row in self._own.values() if row.living]

    def _numbers(self, importance: int, *, short: bool = False) -> list[Part]:
        """How many there are that are not of the attempt."""
        number = counts(self.view, self.others)
        parts = []
        if n := number["leftover"]:
            words = f"{n} leftover{'s' if n > 1 or not short else ''}"
            line = Line(words, "bad") if short else Line(f"✗ {words}", "strong bad")
            parts.append(Part(importance, line))
        if n := number["confirm"]:
            parts.append(Part(3, Line(f"{n} to ask about", "warning")))
        if n := number["suspect"]:
            parts.append(Part(2, Line(counted(n, "suspect"), "warning")))
        if n := number["gpu"]:
            parts.append(Part(1, Line(counted(n, "other GPU user"), "quiet")))
        return parts

    def caption(self) -> list[Part]:
        """How much lies outside the frame."""
        if len(self._rows) <= self._room:
            return []
        last = min(len(self._rows), self._offset + self._room)
        words = f"{self._offset + 1}–{last} of {len(self._rows)}"
        return [Part(1, Line(words, "quiet"))]

    def leftovers(self) -> int:
        return counts(self.view, self.others)["leftover"]

    def wanted(self) -> int:
        """Lines that would show everything, within reason."""
        number = counts(self.view, self.others)
        headings = sum(n > 0 for n in number.values())
        lines = sum(number.values()) + headings
        return len(self.view.processes) + min(lines, MOST_BESIDE)

    def _line(self, row: Row, columns: Columns) -> Line:
        line = columns.line(row, tagged=any(key in self.tagged for key in row.keys))
        if self.selection in row.keys and not row.context:
            return Line(ground="cursor-ground" if self.has_focus else "surface").join(line)
        return line

    # -- rows -----------------------------------------------------------------------------

    def sought(self) -> str:
        return self.filter.text

    def every_row(self) -> list[Row]:
        return [*self._own.values(), *self._beside]

    def _sections(self, collapse: int) -> list[Section]:
        return sections(
            self.view,
            self._beside,
            tree=self.as_tree,
            sort=self.sort,
            backwards=self.backwards,
            text=self.filter.text,
            collapse=collapse,
            made=self._own,
        )

    def _fitting(self, room: int) -> list[Heading | Row]:
        """Every process; or, without focus and room, as much joined as it takes, and every
        heading in sight. What a filter finds is never joined: it looks for single ones."""
        alone = self.has_focus or not self.as_tree
        joins: tuple[int, ...] = (0,) if alone or self.filter.text else (0, 1, 2)
        if len(joins) > 1 and len(self._own) > room:
            least = sum(row.process.role != "worker" for row in self._own.values())
            joins = (1, 2) if least <= room else (2,)
        for collapse in joins:
            found = self._sections(collapse)
            rows = lines_of(found)
            if len(rows) <= room:
                break
        if alone:
            return rows
        return rows if len(rows) <= room or len(found) == 1 else _shortened(found, room)

    # -- keys and mouse -------------------------------------------------------------------

    def sort_by(self, step: int) -> None:
        """The next or the previous of the columns that have something in them."""
        rows = self.every_row()
        known = {"shared": any(r.shared_mib for r in rows), "gpu": any(r.gpu_mib for r in rows)}
        columns = [name for name in SORTS if known.get(name, True)]
        at = columns.index(self.sort) if self.sort in columns else 0
        # Leaving the tree shows the column that was last sorted by.
        at += 0 if self.as_tree and self.sort != "pid" else step
        self.sort_on(columns[at % len(columns)])

    def sort_on(self, column: str) -> None:
        if column == self.sort and not self.as_tree:
            self.backwards = not self.backwards
        elif column != self.sort:
            self.backwards = False
        self.sort, self.as_tree = column, False
        self.repaint()

    def reverse(self) -> None:
        if not self.as_tree:
            self.backwards = not self.backwards
            self.repaint()

    def press_heading(self, x: int) -> None:
        column = self._columns.at(x) if self._columns else ""
        if column:
            self.sort_on(column)

    def edit_filter(self) -> None:
        self.filter.editing = True
        self.repaint()

    def clear_filter(self) -> None:
        self.filter.text = ""
        self.repaint()

    def on_key(self, event: textual_events.Key) -> None:
        if self.filter.editing and self.filter.take(event):
            event.stop()
            event.prevent_default()
            self.repaint()

    def on_paste(self, event: textual_events.Paste) -> None:
        if self.filter.editing:
            event.stop()
            self.filter.add(event.text)
            self.repaint()

    def on_blur(self) -> None:
        if self.filter.editing:
            self.filter.editing = False
            self.repaint()


def _shortened(found: list[Section], room: int) -> list[Heading | Row]:
    """What fits: our run first, without its heading, and of every other section its heading
    and what there is room for."""
    rows: list[Heading | Row] = []
    for at, (heading, members) in enumerate(found):
        least = len(found) - at - 1  # headings that follow
        if heading.group == OURS:
            rows += members[: max(0, room - least)]
        elif len(rows) < room:
            rows.append(heading)
            rows += members[: max(0, room - least - len(rows))]
    return rows
