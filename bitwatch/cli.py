"""The commands. Thin, and light to import: a command imports what it needs when it runs.

Exit codes: 0 done, detached, or stopped on request with a whole checkpoint; 1 the run failed;
2 bad usage, configuration or path, or more ranks than GPUs; 3 refused by preflight; 4 another
supervisor holds the run; 130 ended by SIGINT.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from bitwatch import __version__

FAILED, USAGE, HELD = 1, 2, 4


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bitwatch")
@click.option("--debug", is_flag=True, help="Show a traceback when bitwatch itself fails.")
def commands(debug: bool) -> None:
    """Launches a multi-GPU training, watches it, and keeps its story.

    The training goes on whatever happens to this terminal.
    """


def _settings(command: Any) -> Any:
    command = click.option(
        "--set",
        "changes",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change one key, as in train.steps=100.",
    )(command)
    return click.option("--sharding", metavar="MODE", help="Short for --set data.sharding=MODE.")(
        command
    )


@commands.command()
@click.argument("config", required=False)
@_settings
@click.option("--headless", is_flag=True, help="Lines instead of the screen.")
@click.option("--detach", is_flag=True, help="Return as soon as the run is under way.")
@click.option("--resume", metavar="RUN", help="Go on with this run from its newest checkpoint.")
@click.option(
    "--new-epoch",
    is_flag=True,
    help="With --resume: go on even where the place in the text is lost.",
)
def run(
    config: str | None,
    changes: tuple[str, ...],
    sharding: str | None,
    headless: bool,
    detach: bool,
    resume: str | None,
    new_epoch: bool,
) -> int:
    """Plan, launch and show a training.

    CONFIG is a TOML file, or the name of a bundled one; without it, the demo.
    """
    from bitwatch import config as configuration
    from bitwatch import headless as face
    from bitwatch import launching, screen
    from bitwatch.record import rundir
    from bitwatch.supervise import begin, targets
    from bitwatch.supervise.gather import gather

    if new_epoch and resume is None:
        raise click.UsageError("--new-epoch goes with --resume RUN: a new run has no place to lose")
    home = configuration.home()
    look = None if headless or detach else screen.look()
    old = launching.resumable(rundir.find(home, resume)) if resume is not None else None
    settings = launching.settings(config, changes, sharding, old)
    face.say("looking at the model and the data")
    facts, before = gather(settings), targets.earlier(home, settings.run.name, old)
    ask = screen.asking(look) if look else None
    settings, plan = launching.decided(settings, facts, before, ask)
    if old:
        launching.refuse_another_run(old, settings, new_epoch)
    if new_epoch:
        plan.resume = "new-epoch"
    signals = None if detach or look else face.Signals()
    where, attempt = launching.launch(old, home, settings, facts, plan)
    if look:
        return screen.launched(where, look)
    if signals is None:
        click.echo(where.id)
        face.say(f"under way; `bitwatch logs {where.id} -f` follows it")
        return 0
    code = face.follow(where, attempt, signals)
    begin.close_if_dead(where, "bitwatch run")
    return code


@commands.command()
@click.argument("config", required=False)
@_settings
@click.option("--gpu", metavar="NAME", help="Plan for GPUs of this kind, as in L4 or A100-80.")
@click.option("--json", "as_json", is_flag=True, help="The whole plan as JSON.")
def plan(
    config: str | None,
    changes: tuple[str, ...],
    sharding: str | None,
    gpu: str | None,
    as_json: bool,
) -> int:
    """What would happen, without launching."""
    from bitwatch import config as configuration
    from bitwatch import headless as face
    from bitwatch import launching
    from bitwatch.plan import fit, preflight
    from bitwatch.planned import lines
    from bitwatch.supervise import targets
    from bitwatch.supervise.gather import gather

    settings = launching.settings(config, changes, sharding, None)
    if gpu is not None:
        fit.asked(gpu)  # a name that is not known is said before anything is looked at
    before = targets.earlier(configuration.home(), settings.run.name, None)
    made = preflight.make_plan(settings, gather(settings), gpu=gpu, before=before)
    if as_json:
        click.echo(preflight.to_json(made), nl=False)
    else:
        for line in lines(settings, made, face.terminal_width()):
            click.echo(line)
    return launching.code_of(made)


@commands.command()
@click.argument("target", metavar="[RUN|PID|LOGFILE]", required=False)
@click.option("--replay", metavar="RUN", help="Play a run that has ended, as it happened.")
@click.option("--speed", metavar="FACTOR", help="Of --replay, how many times as fast (60).")
def attach(target: str | None, replay: str | None, speed: str | None) -> int:
    """Bring the screen back, or watch a training that bitwatch did not start.

    RUN is an id, or its beginning, of a live run or of one that has ended. PID is any process of
    a training, LOGFILE what one has printed: it is only looked at. Without any of them, the run
    that is live, or a choice.
    """
    from bitwatch import config as configuration
    from bitwatch import screen

    if replay is None and speed is not None:
        raise click.UsageError("--speed goes with --replay RUN: what is live has its own speed")
    if replay is not None and target is not None:
        raise click.UsageError("give a RUN, PID or LOGFILE, or --replay RUN, not both")
    if replay is not None:
        return screen.replay(configuration.home(), replay, speed)
    return screen.attach(configuration.home(), target)


@commands.command()
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def ls(as_json: bool) -> int:
    """The runs there are, newest first."""
    from bitwatch import config as configuration
    from bitwatch import listing

    rows = listing.rows(configuration.home())
    click.echo(listing.to_json(rows) if as_json else listing.table(rows), nl=False)
    return 0


@commands.command()
@click.argument("run_id", metavar="RUN")
@click.option("--now", is_flag=True, help="At once, without a checkpoint.")
def stop(run_id: str, now: bool) -> int:
    """Stop a run: a checkpoint, then the end."""
    from bitwatch import config as configuration
    from bitwatch.record import rundir
    from bitwatch.stop import stop_run

    return stop_run(rundir.find(configuration.home(), run_id), now)


@commands.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--all", "everything", is_flag=True, help="Of all runs; so it is without a RUN.")
@click.option("--dry-run", is_flag=True, help="Only list.")
@click.option("--yes", is_flag=True, help="End what is proven to be ours and over, unasked.")
@click.option(
    "--pid",
    "pids",
    type=int,
    multiple=True,
    help="End this one; with --yes as well as all that is ours and over.",
)
@click.option("--json", "as_json", is_flag=True, help="The whole result as JSON.")
def clean(
    run_id: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    pids: tuple[int, ...],
    as_json: bool,
) -> int:
    """Find and end what ended runs have left behind.

    Only processes that are proven to belong to a run of yours, which is over, are ended; others
    that may be ours, or only look like it, are listed, and ended when their --pid is given.
    """
    from bitwatch import cleaned
    from bitwatch import config as configuration
    from bitwatch.record import rundir

    if run_id is not None and everything:
        raise click.UsageError("give a RUN, or --all, not both")
    home = configuration.home()
    run = rundir.find(home, run_id) if run_id is not None else None
    return cleaned.clean(home, run, set(pids), act=yes, look_only=dry_run, as_json=as_json)


@commands.command()
@click.argument("run_id", metavar="RUN")
@click.option("--rank", type=int, help="Only this rank's.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run ends.")
def logs(run_id: str, rank: int | None, follow: bool) -> int:
    """What the ranks and torchrun printed in the newest attempt."""
    from bitwatch import config as configuration
    from bitwatch.logs import show
    from bitwatch.record import rundir

    return show(rundir.find(configuration.home(), run_id), rank, follow)


@commands.command()
@click.argument("words", metavar="[RUN|FILE|DIR]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="The whole report as JSON.")
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="As Markdown, for a page or a ticket."
)
def report(words: tuple[str, ...], as_json: bool, as_markdown: bool) -> int:
    """What happened, from evidence.

    FILE is a log or a listing of processes (`ps`), DIR a folder with some; RUN an id, or its
    beginning. Nothing is changed, signalled or opened but ordinary files.
    """
    from bitwatch import config as configuration
    from bitwatch import reported

    if as_json and as_markdown:
        raise click.UsageError("give --json or --markdown, not both")
    return reported.show(configuration.home(), words, as_json, as_markdown)


@commands.command()
@click.argument("source", metavar="RUN")
@click.argument("prompt", default="")
@click.option("--bytes", type=click.IntRange(1), default=400, show_default=True, help="How many.")
@click.option("--temperature", default=0.8, show_default=True, help="0 takes what is likelier.")
@click.option("--seed", type=int, help="The same seed gives the same text.")
@click.option("--step", type=click.IntRange(0), help="Of this checkpoint, not the newest.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto")
def generate(source: str, prompt: str, device: str, **options: Any) -> int:
    """Continue a text with what a run has learned, even while it goes on.

    RUN is an id, its beginning, or a folder that was exported. Without PROMPT, or with "-",
    it is read from standard input if that is no terminal.
    """
    from bitwatch import generated

    return generated.generate(source, prompt, device, options)


@commands.command()
@click.argument("run_id", metavar="RUN")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--step", type=click.IntRange(0), help="Of this checkpoint, not the newest.")
def export(run_id: str, folder: Path, step: int | None) -> int:
    """Write the model of a run to a new FOLDER, as safetensors."""
    from bitwatch import config as configuration
    from bitwatch import generated
    from bitwatch.record import rundir

    return generated.export(rundir.find(configuration.home(), run_id), folder, step)


def main(arguments: list[str] | None = None) -> NoReturn:
    """The console script: turns what can go wrong into one sentence and an exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = commands.main(words, prog_name="bitwatch", standalone_mode=False)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if "--debug" in words:
            raise
        code = _explain(error)
    sys.exit(code or 0)


def _explain(error: Exception) -> int:
    """One sentence for what went wrong; the kinds are looked up late, to stay light."""
    from bitwatch.config import ConfigError
    from bitwatch.headless import say
    from bitwatch.launching import Failure
    from bitwatch.record.rundir import LockHeld, RunDirError
    from bitwatch.text import sentence

    text = str(error)
    if isinstance(error, Failure):
        code = error.code
    elif isinstance(error, LockHeld):
        code = HELD
    elif isinstance(error, ConfigError | RunDirError):
        code = USAGE
    elif isinstance(error, OSError):
        text, code = sentence(error), FAILED
    else:
        text = f"{type(error).__name__}: {error}; --debug shows where"
        code = FAILED
    say(text)
    return code


if __name__ == "__main__":
    main()
