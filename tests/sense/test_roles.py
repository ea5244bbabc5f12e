"""Command lines as they are, and what each means."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bitwatch.sense import processes
from bitwatch.sense.processes import Facts, role_of_command
from tests.conftest import until

PYTHON = "/opt/venv/bin/python3.11"
SITE = "/opt/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("command", "role"),
    [
        (f"{PYTHON} -m torch.distributed.run --standalone --local-addr=127.0.0.1 --nproc-per-node=2 --max-restarts=0 {SITE}/trainer/train.py", "agent"),
        (f"{PYTHON} -m bitwatch.supervise.launch --prepare {SITE}/trainer/prepare.py --standalone {SITE}/trainer/train.py", "agent"),
        ("/usr/bin/python3 /usr/local/bin/torchrun --nproc_per_node=8 train.py", "agent"),
        ("python -m torch.distributed.launch --nproc_per_node=8 train.py", "agent"),
        (f"{PYTHON} -u {SITE}/trainer/train.py", "rank"),
        ("/home/a/My Env/bin/python3 -u /home/a/My Env/lib/python3.11/site-packages/trainer/train.py", "rank"),
        ("python trainer/train.py", "rank"),
        (f"{PYTHON} {SITE}/trainer/prepare.py", "prepare"),
        (f"{PYTHON} -P -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=17, pipe_handle=22) --multiprocessing-fork", "worker"),
        (f"{PYTHON} -Wignore -X dev -X utf8=1 -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7) --multiprocessing-fork", "worker"),
        (f"{PYTHON} -c from multiprocessing.forkserver import main; main(8, 9, ['__main__'], **{{'main_path': '/x'}})", "worker"),
        ("/home/a/My Env/bin/python -c from multiprocessing.resource_tracker import main;main(16)", "resource tracker"),
        (f"{PYTHON} -s -E -c from multiprocess.resource_tracker import main;main(4)", "resource tracker"),
        (f"{PYTHON} {SITE}/torch/_inductor/compile_worker/__main__.py --pickler=torch._inductor.compile_worker.subproc_pool.SubprocPickler --kind=fork --workers=8 --parent=7 --read-fd=5 --write-fd=8 --torch-key=x", "compile worker"),
        (f"{PYTHON} -m bitwatch.supervise.supervisor /runs/a b 1 launch you first", "supervisor"),
        (f"{PYTHON} -m bitwatch.sense.gpus 1.0 4711", "sensor"),
        ("python3.13t -m bitwatch.sense.gpus 1.0 4711", "sensor"),
        # What only speaks of them
        ("", "other"),
        (PYTHON, "other"),
        ("pgrep -f multiprocessing.spawn", "other"),
        ("grep -r from multiprocessing.resource_tracker import main", "other"),
        (f"vim {SITE}/trainer/train.py", "other"),
        (f"tail -f {PYTHON} -m torch.distributed.run", "other"),
        (f"sh -c {PYTHON} -m torch.distributed.run train.py", "other"),
        (f"/usr/bin/strace -f {PYTHON} -u {SITE}/trainer/train.py", "other"),
        (f"/usr/bin/nohup {PYTHON} -u {SITE}/trainer/train.py", "other"),
        ("tmux new -d python trainer/train.py", "other"),
        ("/usr/bin/python3 /usr/bin/black src/trainer/train.py", "other"),
        ("/usr/bin/python3 -m pdb trainer/train.py", "other"),
        ("/usr/bin/python3 -m jupyter notebook", "other"),
        ("python -c print('from multiprocessing.spawn import spawn_main')", "other"),
        ("python my_trainer/train.py", "other"),
        ("python -m torch.distributed.run_everything", "other"),
        ("python -u trainer/train.pyc", "other"),
        ("pythonic -m torch.distributed.run", "other"),
    ],
)  # fmt: skip
def test_a_command_line_has_the_role_of_what_it_runs(command: str, role: str) -> None:
    assert role_of_command(command) == role


def test_a_forked_reader_is_known_by_its_name_alone() -> None:
    rank = f"{PYTHON} -u {SITE}/trainer/train.py"
    assert role_of_command(rank, "pt_data_worker") == "worker"
    assert role_of_command(rank, "python3.11") == "rank"
    assert role_of_command("cat", "pt_data_worker") == "other"


def test_the_longest_odd_command_line_is_judged_too() -> None:
    assert role_of_command("/a/b b/" * 600 + " -u" * 600 + "\n") == "other"


CHILDREN = """
import multiprocessing, sys
if __name__ == "__main__":
    contexts = [multiprocessing.get_context(method) for method in ("spawn", "forkserver")]
    events = [context.Event() for context in contexts]
    children = [c.Process(target=e.wait, daemon=True) for c, e in zip(contexts, events)]
    for child in children:
        child.start()
    print(flush=True)
    sys.stdin.read()
"""


def test_the_children_of_multiprocessing_are_what_this_python_makes_them(
    tmp_path: Path,
) -> None:
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    parent = subprocess.Popen(
        [sys.executable, "-X", "utf8", "-P", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    known = Facts()
    wanted = ["resource tracker", "worker", "worker", "worker"]  # one of them is the forkserver

    def roles() -> list[str]:
        below = processes.descendants(processes.scan(), {parent.pid})
        return sorted(role_of_command(known.command(stat)) for stat in below)

    try:
        until(lambda: roles() == wanted, "a spawned child, a forkserver with one, and a tracker")
        assert role_of_command(known.command(processes.scan()[parent.pid])) == "other"
    finally:
        parent.communicate()  # the end of its stdin: it ends its children
