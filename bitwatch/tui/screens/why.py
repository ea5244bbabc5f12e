"""What is wrong, how one knows, and what to do: the alerts with their evidence."""

from __future__ import annotations

from textual.content import Content

from bitwatch.attach.offer import offers
from bitwatch.record.afterwards import SUPERVISOR_GONE
from bitwatch.record.events import Alert
from bitwatch.record.stops import lost_nothing
from bitwatch.record.view import View
from bitwatch.text import clock
from bitwatch.tui import keys, model
from bitwatch.tui.alert_rows import THEN
from bitwatch.tui.draw import plain
from bitwatch.tui.screens.dialog import Block, Page
from bitwatch.tui.widgets.alerts import SHAPES, by_severity

COLOURS = {"error": "$bad", "warning": "$warning", "info": "$accent"}
EVIDENCE = 12  # lines of it that are shown
EMPTY = Block(Content(""))


class Why(Page):
    BINDINGS = [keys.closing("why")]

    def __init__(self, view: View) -> None:
        super().__init__("Why", text(view))


def text(view: View) -> list[Block]:
    blocks = _model(view)
    without = len(blocks)
    if view.cause:
        evidence, following = _of_the_end(view)
        colour = "$quiet" if lost_nothing(view.state, view.cause) else "$bad"
        blocks += _said(f"{view.state}: {plain(view.cause)}", colour, evidence, following)
    if view.note and not any(alert.id == SUPERVISOR_GONE for alert in view.alerts):
        blocks += _said(plain(view.note), "$warning", [], "")
    for alert in by_severity(view.alerts):
        blocks += [EMPTY, *about(alert, EVIDENCE)]
    if len(blocks) == without:
        blocks += [EMPTY] if blocks else []
        now = " now" if _broke(view) else ""
        blocks.append(Block(Content(f"Nothing is wrong{now} that bitwatch knows of.")))
    if view.before is not None and _broke(view):
        ended = view.before
        said = f"attempt {view.attempt - 1} {ended.state} at {clock(ended.t)}"
        blocks += _said(f"{said}: {plain(ended.cause)}" if ended.cause else said, "$quiet", [], "")
    if view.past_alerts:
        words = "a has all alerts of this run, also those that are over"
        blocks += [EMPTY, Block(Content.styled(words, "$quiet"))]
    return blocks[1:] if blocks[0] is EMPTY else blocks


def _of_the_end(view: View) -> tuple[list[str], str]:
    """Of a run that has failed or is lost: what its last error had for evidence, and what to do."""
    if view.state not in ("failed", "lost"):
        return [], ""
    errors = [
        alert
        for alert in view.past_alerts
        if alert.attempt == view.attempt and alert.severity == "error" and alert.evidence
    ]
    evidence = [plain(line) for line in errors[-1].evidence[:EVIDENCE]] if errors else []
    words = [f"key {keys.get('logs').name} shows its last lines"] if keys.get("logs").name else []
    if (again := keys.get("relaunch").name) and offers(view):
        how = "goes on from its newest checkpoint" if view.checkpoints else "starts it anew"
        words.insert(0, f"key {again} {how}")
    if view.run and not view.foreign and not view.gone:
        words.append(f"bitwatch report {plain(view.run)} says what happened")
    return evidence, "; ".join(words)


def _broke(view: View) -> bool:
    """Whether the attempt before this one did not end as somebody wished."""
    return view.before is not None and view.before.state in ("failed", "lost")


def _model(view: View) -> list[Block]:
    """What was asked for, built and held, to the last digit."""
    sentences = model.paragraph(view)
    if not sentences:
        return []
    blocks = [Block(Content.styled("Model", "bold $quiet"))]
    for words, role in sentences:
        style = {"bad": "bold $bad", "text": "$foreground"}.get(role, "$quiet")
        blocks.append(Block(Content.styled(words, style), 2))
    return blocks


def about(alert: Alert, most: int = 0, over: bool = False) -> list[Block]:
    """All that is known of one: its sentence, the evidence (at most so many lines), and what to
    do, or what was to be done while it lasted."""
    title = f"{SHAPES[alert.severity]} {plain(alert.text or alert.id)}"
    evidence = [plain(line) for line in (alert.evidence[:most] if most else alert.evidence)]
    if len(alert.evidence) > len(evidence):
        evidence.append(
            f"and {len(alert.evidence) - len(evidence)} more: "
            f"{keys.name('alerts')}, then {keys.name('alerts-open')}"
        )
    following = plain(keys.in_words(alert.next))
    return _said(title, COLOURS[alert.severity], evidence, following, over)[1:]


def _said(
    title: str, colour: str, evidence: list[str], following: str, over: bool = False
) -> list[Block]:
    blocks = [EMPTY, Block(Content.styled(title, f"bold {colour}"))]
    if evidence:
        blocks.append(Block(Content.styled("evidence", "$quiet"), 2))
        blocks += [Block(Content(line), 4) for line in evidence]
    if following:
        blocks.append(Block(Content.styled(THEN if over else "next", "$quiet"), 2))
        blocks.append(Block(Content.styled(following, "$quiet" if over else "$accent"), 4))
    return blocks
