"""What a model has written, as a terminal may see it."""

from __future__ import annotations

import io

import pytest

from bitwatch import generated
from bitwatch.record import answers


def shown(*pieces: bytes) -> str:
    """The text of bytes that come in pieces."""
    out = io.StringIO()
    page = generated.Page(out)
    for piece in pieces:
        page.write(piece)
    page.end()
    return out.getvalue()


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def test_a_character_is_shown_when_it_is_whole() -> None:
    out = io.StringIO()
    page, seen = generated.Page(out), []
    for piece in bytewise("é水\n".encode()):
        page.write(piece)
        seen.append(out.getvalue())
    assert seen == ["", "é", "é", "é", "é水", "é水\n"]


def test_what_is_no_utf_8_is_shown_as_such() -> None:
    assert shown(*bytewise(b"a\xffb\xc3(c\xe6\xb0")) == "a\ufffdb\ufffd(c\ufffd\n"


def test_no_control_character_reaches_the_terminal() -> None:
    text = "\x1b[2Jred\x07\r\x00\x7f\x9b\u202e\u2028 tab\tline\nnext"
    assert shown(*bytewise(text.encode())) == (
        "\\x1b[2Jred\\x07\\r\\x00\\x7f\\x9b\\u202e\\u2028 tab\tline\nnext\n"
    )


def test_the_model_may_finish_a_character_of_the_prompt() -> None:
    out = io.StringIO()
    page = generated.Page(out)
    page.write("café".encode()[:-1], shown=False)
    page.write("é".encode()[-1:] + b"s")
    page.end()
    assert out.getvalue() == "és\n"


def test_a_program_that_dies_is_told_with_its_last_words() -> None:
    (ended,) = generated._ask("trainer.nothing", [], b"")
    assert isinstance(ended, answers.Ended)
    assert ended.code == 1
    assert "No module named trainer.nothing" in ended.text


def test_answers_come_back_as_they_were() -> None:
    for answer in (answers.Said("é"), answers.Wrote(bytes(range(256))), answers.Ended("x", 2)):
        line = answers.encode(answer)
        assert line.count(b"\n") == 1
        assert answers.decode(line) == answer


@pytest.mark.parametrize("temperature", [-1.0, 101.0, float("nan"), float("inf")])
def test_a_temperature_that_means_nothing_is_refused(temperature: float) -> None:
    with pytest.raises(generated.ConfigError, match="--temperature: must be from 0 to 100"):
        generated.generate("any", "", "auto", {"temperature": temperature})
