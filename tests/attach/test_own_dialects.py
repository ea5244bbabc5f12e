"""Dialects that a user adds are heard like the others, and refused where they cannot work."""

from __future__ import annotations

from pathlib import Path

import pytest

from bitwatch.attach import own_dialects
from bitwatch.attach.dialects import Listener
from bitwatch.strict import ConfigError
from tests.attach.hearing import heard

OWN = """\
[[line]]
name = "ours"
what = "step"
pattern = 'batch (?P<step>\\d+) cost (?P<loss>[\\d.]+)'
sample = "batch 12 cost 3.21"
word = "cost"
"""


def test_a_dialect_of_the_user_is_heard_and_passes_the_sieve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert own_dialects.load() == ()
    own_dialects.path().parent.mkdir()
    own_dialects.path().write_text(OWN)
    listener = Listener(own_dialects.load())
    (said,) = heard("Batch 1 cost 9\nbatch 7 cost 2.5\n", listener)
    assert (said.dialect, dict(said.values)) == ("ours", {"step": 7, "loss": 2.5})
    assert listener.sieve().spans(b"a\nbatch 7 cost 2.5\nb\n") == [(2, 18)]
    own_dialects.path().write_text(OWN.replace('word = "cost"\n', ""))
    assert len(Listener(own_dialects.load()).sieve().spans(b"a\nb\n")) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name", "nane", "line 1: nane: unknown key; did you mean name?"),
        ('"step"', '"stop"', 'line 1: what: must be "step" or'),
        ("(?P<step>", "(?P<stepp>", "line 1: pattern: stepp: unknown value; did you mean step"),
        ("batch (", "batch ((", "line 1: pattern: is no regular expression: "),
        ("batch 12", "batch x", "line 1: sample: the pattern does not match it"),
        ("(?P<loss>", "(", "line 1: sample: shows no step"),
        ('"cost"', '"price"', 'line 1: word: "price" is not in the sample'),
        ('"step"', '"built"', 'line 1: pattern: a "built" needs a group (?P<parameters>...)'),
        ("batch (", "b" * 600 + "(", "line 1: pattern: has 6"),
        ('"ours"', '" "', "line 1: name: is empty"),
        ("[[line]]", "[line]", "line: must be"),
        ("[[line]]", "[[lines]]", "lines: unknown key; did you mean line?"),
    ],
)
def test_a_dialect_that_cannot_work_is_refused_with_its_key(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    file = tmp_path / "dialects.toml"
    file.write_text(OWN.replace(old, new, 1))
    with pytest.raises(ConfigError) as refused:
        own_dialects.read(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert words in str(refused.value)
