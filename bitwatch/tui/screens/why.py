"""What is wrong, how one knows, and what to do: the alerts with their evidence."""

from __future__ import annotations

from textual.content import Content

from bitwatch.record.events import Alert
from bitwatch.record.view import View
from bitwatch.text import clock
from bitwatch.tui import keys, model
from bitwatch.tui.draw import plain
from bitwatch.tui.screens.dialog import Block, Page
from bitwatch.tui.widgets.alerts import SHAPES, by_severity

COLOURS = {"error": "$bad", "warning": "$warning", "info": "$accent"}
EVIDENCE = 12  # lines of it that are shown
HISTORY = 10  # alerts raised and cleared before
EMPTY = Block(Content(""))


class Why(Page):
    BINDINGS = [keys.closing("why")]

    def __init__(self, view: View) -> None:
        super().__init__("Why", text(view))


def text(view: View) -> list[Block]:
    blocks = _model(view)
    without = len(blocks)
    if view.cause:
        blocks += _said(f"{view.state}: {plain(view.cause)}", "$bad", [], "")
    if view.note:
        blocks += _said(plain(view.note), "$warning", [], "")
    for alert in by_severity(view.alerts):
        blocks += _alert(alert)
    if len(blocks) == without:
        blocks += [EMPTY] if blocks else []
        now = " now" if _broke(view) else ""
        blocks.append(Block(Content(f"Nothing is wrong{now} that bitwatch knows of.")))
    if view.before is not None and _broke(view):
        ended = view.before
        said = f"attempt {view.attempt - 1} {ended.state} at {clock(ended.t)}"
        blocks += _said(f"{said}: {plain(ended.cause)}" if ended.cause else said, "$quiet", [], "")
    gone = [alert for alert in view.past_alerts if alert.attempt == view.attempt]
    if gone:
        blocks += [EMPTY, Block(Content.styled("Before, in this attempt", "bold $quiet"))]
        for alert in reversed(gone[-HISTORY:]):
            word = "cleared" if alert.cleared else "raised"
            line = f"{clock(alert.t)}  {word:<9}{plain(alert.text or alert.id)}"
            blocks.append(Block(Content.styled(line, "$quiet"), 2, one_line=True))
    return blocks


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


def _alert(alert: Alert) -> list[Block]:
    title = f"{SHAPES[alert.severity]} {plain(alert.text)}"
    evidence = [plain(line) for line in alert.evidence[:EVIDENCE]]
    if len(alert.evidence) > EVIDENCE:
        evidence.append(f"and {len(alert.evidence) - EVIDENCE} more")
    return _said(title, COLOURS[alert.severity], evidence, plain(keys.in_words(alert.next)))


def _said(title: str, colour: str, evidence: list[str], following: str) -> list[Block]:
    blocks = [EMPTY, Block(Content.styled(title, f"bold {colour}"))]
    if evidence:
        blocks.append(Block(Content.styled("evidence", "$quiet"), 2))
        blocks += [Block(Content(line), 4) for line in evidence]
    if following:
        blocks.append(Block(Content.styled("next", "$quiet"), 2))
        blocks.append(Block(Content.styled(following, "$accent"), 4))
    return blocks
