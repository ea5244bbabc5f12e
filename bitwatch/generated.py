"""`bitwatch generate` and `bitwatch export`: the trainer does the work in a process of its
own, and what it answers is shown here.

A model's text is untrusted: it may hold any byte. It is decoded as UTF-8, and a control
character is shown as its escape, never sent to a terminal.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

import msgspec

from bitwatch import config as configuration
from bitwatch.config import ConfigError
from bitwatch.headless import say
from bitwatch.record import answers, rundir
from bitwatch.record.rundir import RunDir, RunDirError
from bitwatch.supervise import begin, launch
from bitwatch.text import literal_lines

PROMPT_BYTES = 1 << 20  # of its end; no window is as long
HOTTEST = 100.0  # beyond is noise
PATIENCE_S = 10.0  # for the trainer to remove what it has half made


def generate(source: str, prompt: str, device: str, options: dict[str, Any]) -> int:
    """Prints what the model of `source`, a run or an exported folder, makes of the prompt.

    `options` are those of `trainer.generate`. Raises RunDirError, ConfigError.
    """
    if not 0 <= options["temperature"] <= HOTTEST:
        text = f"--temperature: must be from 0 to {HOTTEST:g}, not {options['temperature']}"
        raise ConfigError(text)
    folder = Path(source)
    if (folder / "config.json").is_file():
        arguments = [f"--exported={folder.absolute()}"]
    else:
        run = _find(source)
        arguments = [f"--checkpoints={checkpoints(run)}"]
        if device == "auto" and begin.still_lives(run):
            device = "cpu"  # the memory of its GPUs is the run's
    arguments += [f"--device={device}"]
    arguments += [f"--{name}={value}" for name, value in options.items() if value is not None]
    given = os.fsencode(prompt)
    if prompt in ("", "-"):
        given = b"" if sys.stdin.isatty() else _end_of(sys.stdin.buffer)
    page = Page(sys.stdout)
    # A character that the prompt leaves unfinished is the model's to finish.
    page.write(given, shown=prompt not in ("", "-") and sys.stdout.isatty())
    return _show(_ask("trainer.generate", arguments, given), page)


def _find(source: str) -> RunDir:
    try:
        return rundir.find(configuration.home(), source)
    except RunDirError:
        if source and Path(source).is_dir():
            text = f"{source}: is a folder, but no exported model: it has no config.json"
            raise RunDirError(text) from None
        raise


def export(run: RunDir, folder: Path, step: int | None) -> int:
    """Writes the model of a run to `folder`. Raises RunDirError, ConfigError."""
    arguments = [f"--checkpoints={checkpoints(run)}"]
    arguments += [f"--step={step}"] if step is not None else []
    answered = _ask("trainer.export", [*arguments, "--", str(folder.absolute())], b"")
    return _show(answered, Page(sys.stdout))


def checkpoints(run: RunDir) -> Path:
    """Where the newest attempt of a run writes its checkpoints."""
    attempts = run.attempts()
    if not attempts:
        raise RunDirError(f"{run.id}: has never been launched, and has no checkpoint")
    config = configuration.load(run.config(attempts[-1]), lenient=True)
    return run.checkpoints(config.checkpoint.folder)


class Page:
    """Bytes of a model as harmless text, each character as soon as it is whole."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at_line_start = True
        with contextlib.suppress(AttributeError):  # a stream that stands in for a terminal's
            out.reconfigure(errors="replace")  # type: ignore[attr-defined]

    def write(self, data: bytes, *, final: bool = False, shown: bool = True) -> None:
        text = literal_lines(self._decoder.decode(data, final))
        if text and shown:
            self._out.write(text)
            self._out.flush()
            self._at_line_start = text.endswith("\n")

    def end(self) -> None:
        """The end of the text, and of its line."""
        self.write(b"", final=True)
        if not self._at_line_start:
            self.write(b"\n")


def _show(answered: Iterator[answers.Answer], page: Page) -> int:
    """Prints text to stdout and the rest to stderr; the exit code."""
    try:
        for answer in answered:
            match answer:
                case answers.Wrote(data):
                    page.write(data)
                case answers.Said(text):
                    say(text)
                case answers.Ended(text, code):
                    page.end()
                    say(text)
                    return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the exit does not complain
    return 0


def _ask(program: str, arguments: list[str], stdin: bytes) -> Iterator[answers.Answer]:
    """What the program answers; the last is an Ended. It ends with this process, or when
    nobody listens any more, and a signal to this terminal is not its."""
    command = [sys.executable, "-m", program, f"--parent={os.getpid()}", *arguments]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as noise:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            command,
            env=launch.clean_environment(dict(os.environ)),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=noise,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                answer = answers.decode(line)
                yield answer
                if isinstance(answer, answers.Ended):
                    return
            noise.seek(0)
            lines = noise.read().decode(errors="replace").strip().splitlines()
            code = process.wait()
            yield answers.Ended(f"{program}: {lines[-1] if lines else f'exit code {code}'}", 1)
        except msgspec.MsgspecError as error:
            yield answers.Ended(f"{program}: {error}", 1)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def _end_of(stream: BinaryIO) -> bytes:
    kept = b""
    while block := stream.read(PROMPT_BYTES):
        kept = (kept + block)[-PROMPT_BYTES:]
    return kept
