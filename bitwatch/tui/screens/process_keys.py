"""What the keys of the process panel do. They act on identities that were on the screen when
they were pressed, never on "the row under the cursor now"."""

from __future__ import annotations

from textual.screen import Screen

from bitwatch.record.rundir import RunDir
from bitwatch.tui.host import Host
from bitwatch.tui.rows import Row
from bitwatch.tui.targets import Target, targets_of
from bitwatch.tui.widgets.processes import ProcessPanel
from bitwatch.tui.widgets.row_list import RowList


class ProcessKeys(Screen[None]):
    """The part of a dashboard that is about single processes."""

    run: RunDir
    host: Host
    processes: ProcessPanel

    def open_processes(self) -> None:
        """Gives the panel the focus, and the screen where it is only a line."""
        raise NotImplementedError

    def name_keys(self) -> None:
        """The footer names what does something now."""
        raise NotImplementedError

    @property
    def at_processes(self) -> bool:
        return self.focused is self.processes

    def action_tree(self) -> None:
        self.processes.as_tree = not self.processes.as_tree
        self.processes.repaint()

    def action_filter(self) -> None:
        self.open_processes()
        self.processes.edit_filter()

    def action_sort(self, step: int) -> None:
        if self.processes.size.height <= 1:
            self.open_processes()
        self.processes.sort_by(step)

    def action_reverse(self) -> None:
        self.processes.reverse()

    def action_tag(self) -> None:
        """The first press goes to the panel: what is tagged should be seen."""
        if self.at_processes:
            self.processes.tag()
            self.name_keys()
        else:
            self.open_processes()

    def action_untag(self) -> None:
        self.processes.tagged.clear()
        self.processes.repaint()
        self.name_keys()

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        self.action_details()

    def action_details(self) -> None:
        from bitwatch.tui.screens.details import Details

        if not self.at_processes:
            self.open_processes()
            return
        row = self.processes.selected()
        if row is not None:
            self.app.push_screen(Details(row))

    def left_of_watched(self) -> list[Target]:
        """What lives on of a training that bitwatch did not start, after its launcher. What is in
        no role of a training only when it is tagged."""
        tagged = self.processes.tagged
        rows = [row for row in self._of_watched() if _has_role(row) or tagged & set(row.keys)]
        return [target for target in targets_of(rows) if not target.barred]

    def _of_watched(self) -> list[Row]:
        view = self.processes.view
        rows = [row for row in self.processes.every_row() if row.group == "confirm"]
        theirs = [row for row in rows if row.other is not None and row.other.run == view.run]
        return theirs if view.foreign else []

    def ask_about_left(self) -> None:
        """The answer is about the identities that are there now."""
        from bitwatch.tui.screens.end_left import EndLeft, last_step

        targets = self.left_of_watched()
        others = len(targets_of(self._of_watched())) - len(targets)
        ranks = any(row.process.role == "rank" for row in self._of_watched())
        step = last_step(self.processes.view, self.processes.now, ranks)
        run, commands = self.run, self.host.commands

        def answered(yes: bool | None) -> None:
            if yes:
                keys = [target.key for target in targets]
                self.host.in_background(lambda: commands.end_left(run, keys))

        self.app.push_screen(EndLeft(targets, step, others), answered)

    def action_signal(self) -> None:
        """Asks which signal, for the tagged processes or the selected one. The dialog's answer
        is about these identities, whatever the rows have become meanwhile."""
        from bitwatch.tui.screens.signal import SignalDialog

        if self.processes.size.height <= 1:
            self.open_processes()
            return
        if self.processes.forget_ended():
            self.processes.repaint()
            self.name_keys()
            self.notify("the marked processes have ended", markup=False)
            return
        view = self.processes.view
        targets = targets_of(self.processes.chosen(), foreign=view.foreign)
        if not targets:
            self.notify("no process is selected", markup=False)
            return
        run, commands = self.run, self.host.commands
        keys = [target.key for target in targets if not target.barred]

        def answered(name: str | None) -> None:
            if name and keys:
                self.host.in_background(lambda: commands.signal(run, keys, name))

        training = view.state in ("running", "stalled")
        self.app.push_screen(SignalDialog(targets, training=training), answered)


def _has_role(row: Row) -> bool:
    return row.process.role not in ("", "other")
