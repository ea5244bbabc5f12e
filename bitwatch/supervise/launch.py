"""Starting torchrun on the installed trainer, and what every process below it inherits.

    python -m bitwatch.supervise.launch [--when-recorded] [--prepare PROGRAM] COMMAND...

is the shim between the supervisor and torchrun: it hands its own pid down as BITWATCH_AGENT
(the ranks check it against their parent), lets PROGRAM prepare the text if there is one, and
becomes torchrun by exec. One pid is the agent from the beginning to the end: whoever adopts,
stops or cleans up need not know what it is just doing. With --when-recorded it does nothing
before its supervisor has written its pid into the record, and ends when that cannot be: a
training that no record names could neither be taken over nor be stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bitwatch import small
from bitwatch.config import Config
from bitwatch.record import events
from bitwatch.record.rundir import RunDir

WHEN_RECORDED = "--when-recorded"
TAGS = ("BITWATCH_RUN", "BITWATCH_ATTEMPT", "BITWATCH_DIR", "BITWATCH_AGENT")


def trainer_script(program: str = "train.py") -> Path:
    """A program of the installed trainer, found without importing it (torch is heavy), and
    never in the current directory."""
    spec = importlib.util.find_spec("trainer")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("the trainer package is not installed beside bitwatch")
    return Path(next(iter(spec.submodule_search_locations))) / program


def plan_of(run: RunDir, attempt: int) -> dict[str, Any]:
    """What an attempt was planned to be; nothing where that cannot be read."""
    try:
        return msgspec.json.decode(small.read(run.plan(attempt)))
    except (OSError, msgspec.MsgspecError):
        return {}


def started(
    run: RunDir, attempt: int, config: Config, on_cpu: bool, grace_s: float
) -> events.AttemptStarted:
    """What the record says of an attempt as it begins; by whom and why stands nowhere here."""
    return events.AttemptStarted(
        attempt=attempt,
        steps=config.train.steps,
        ranks=config.parallel.ranks,
        workers=config.data.workers,
        device="cpu" if on_cpu else "cuda",
        log_every=config.train.log_every,
        stall_s=config.watch.stall_s,
        start_timeout_s=config.parallel.start_timeout_s,
        checkpoints=str(run.checkpoints(config.checkpoint.folder)),
        grace_s=grace_s,
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )


def clean_environment(environment: dict[str, str]) -> dict[str, str]:
    """Without the tags of an outer run, and with no way to import from the current directory:
    a `trainer.py` or a `datasets` folder there must not be picked up."""
    kept = {key: value for key, value in environment.items() if key not in TAGS}
    for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        kept.pop(key, None)
    kept["PYTHONSAFEPATH"] = "1"
    if "PYTHONPATH" in kept:  # an empty entry means the current directory
        entries = [entry for entry in kept["PYTHONPATH"].split(os.pathsep) if entry]
        kept["PYTHONPATH"] = os.pathsep.join(entries)
        if not entries:
            del kept["PYTHONPATH"]
    return kept


def agent_environment(
    run: RunDir, attempt: int, config: Config, on_cpu: bool, grace_s: float
) -> dict[str, str]:
    environment = clean_environment(dict(os.environ))
    environment |= {
        "BITWATCH_RUN": run.id,
        "BITWATCH_ATTEMPT": str(attempt),
        "BITWATCH_DIR": str(run.path),
        "SPT_NOENV": "1",  # setproctitle would overwrite the tags otherwise
        "PYTHONUNBUFFERED": "1",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(int(grace_s)),
    }
    if not {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} & environment.keys():
        # Segments that grow instead of many of fixed sizes: less is lost between them.
        environment["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    if on_cpu:
        environment["GLOO_SOCKET_IFNAME"] = "lo"
        threads = max(1, (os.cpu_count() or 1) // config.parallel.ranks)
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    return environment


def agent_command(config: Config) -> list[str]:
    """`--standalone` takes a free port by itself; one node needs no other rendezvous."""
    indexed = config.data.sharding == "indexed"
    return [
        sys.executable,
        "-m",
        "bitwatch.supervise.launch",
        *(["--prepare", str(trainer_script("prepare.py"))] if indexed else []),
        "--standalone",
        "--local-addr=127.0.0.1",
        f"--nproc-per-node={config.parallel.ranks}",
        "--max-restarts=0",
        str(trainer_script()),
    ]


class Agent(NamedTuple):
    """An agent that waits until its supervisor says `go`. When the supervisor dies before that,
    or says `refuse`, it ends without having done anything."""

    pid: int
    pipe: int

    def go(self) -> None:
        with contextlib.suppress(OSError):  # it is dead already, and that will be noticed
            os.write(self.pipe, b"\n")
        os.close(self.pipe)

    def refuse(self) -> None:
        os.close(self.pipe)


def start_agent(run: RunDir, attempt: int, config: Config, on_cpu: bool, grace_s: float) -> Agent:
    """Starts the agent in a session of its own, its output in agent.log. `grace_s` is what it
    leaves its ranks between TERM and KILL.

    posix_spawn, not Popen: the supervisor has one reaper, and Popen would be a second.
    """
    command = agent_command(config)
    command.insert(3, WHEN_RECORDED)
    log = run.logs(attempt) / "agent.log"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            agent_environment(run, attempt, config, on_cpu, grace_s),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Agent(pid, writing)


def _wait_to_be_recorded() -> None:
    if not os.read(0, 1):
        sys.exit("the supervisor could not record this process; nothing was started")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _hold_text(run: RunDir, attempt: int) -> None:
    """Keeps what was prepared from being deleted, by whoever needs room, until the ranks hold it
    too: as long as this process lives, whatever it becomes."""
    with contextlib.suppress(OSError, ValueError, KeyError):  # the ranks say what is wrong there
        folder = json.loads(small.read(run.index(attempt)))["path"]
        lock = os.open(f"{folder}.lock", os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        os.set_inheritable(lock, True)


def main() -> None:
    os.environ["BITWATCH_AGENT"] = str(os.getpid())
    words = sys.argv[1:]
    if words[:1] == [WHEN_RECORDED]:
        _wait_to_be_recorded()
        words = words[1:]
    if words[:1] == ["--prepare"]:
        # It dies with us, and a stop it sees by itself: there is nothing to pass on to it.
        status = subprocess.run([sys.executable, words[1]], check=False).returncode
        if status:
            sys.exit(status if status > 0 else 128 - status)
        words = words[2:]
        _hold_text(RunDir(Path(os.environ["BITWATCH_DIR"])), int(os.environ["BITWATCH_ATTEMPT"]))
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *words])


if __name__ == "__main__":
    main()
