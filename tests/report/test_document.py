"""The example of docs/report.md is what the command says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.report import make
from bitwatch.report.lines import Face
from tests.report import incident

DOCUMENT = Path(__file__).parents[2] / "docs" / "report.md"
WIDTH = 92


def test_the_example_is_real_to_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    incident.write(tmp_path, "massive_scale_training.log", incident.LOG)
    incident.write(tmp_path, "ps.txt", incident.PS)
    monkeypatch.chdir(tmp_path)
    made = make.make(tmp_path / "home", ["ps.txt", "massive_scale_training.log"])
    said = list(Face(WIDTH).lines(made))
    _, _, example = DOCUMENT.read_text().partition("    report    massive_scale")
    lines = [line[4:] for line in f"    report    massive_scale{example}".splitlines()]
    until = lines.index("[...]")
    begins = lines.index("findings")
    assert lines[:begins] == said[:begins]
    at = begins
    for line in lines[begins:until]:
        assert line in said[at:], f"docs/report.md: {line!r} is not what the command says"
        at = said.index(line, at)
