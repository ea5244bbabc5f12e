"""How launchers, libraries and the kernel say that something went wrong."""

from __future__ import annotations

import signal

from bitwatch.attach.dialect_tables.rule import Rule, Values
from bitwatch.attach.said import What

SIZE = r"[\d.]+ [KMGT]i?B"
# What stands around a level: [ERROR], ERROR:, - ERROR -, | ERROR |
LEVEL = r"(?:^|[\s\[|<])(?:{words})(?:\]|:|>|\s+[-|]|\s*\|)\s*(?P<message>.*)"


def exit_status(what: What, values: Values, text: str) -> What:
    """A negative exit code is the number of the signal that ended it."""
    code = values.get("exit_code")
    if isinstance(code, int) and code < 0:
        try:
            values["signal"] = signal.Signals(-code).name
        except ValueError:
            pass
    return what


def restarts(what: What, values: Values, text: str) -> What:
    """`attempt` is the number of the restart that follows."""
    allowed = values.pop("attempts", None)
    left = values.get("restarts_left")
    if isinstance(allowed, int) and isinstance(left, int):
        values["attempt"] = allowed - left + 1
    return what


def short_operation(what: What, values: Values, text: str) -> What:
    operation = str(values.get("operation", "")).lower().strip("_")
    if operation:
        values["operation"] = operation
    return what


TROUBLES: tuple[Rule, ...] = (
    Rule(
        "torchrun",
        "failure",
        "exitcode:",
        r"failed \(exitcode: (?P<exit_code>-?\d+)\) local_rank: (?P<local_rank>\d+)"
        r" \(pid: (?P<pid>\d+)\)",
        "E0824 07:20:00.709000 123 torch/distributed/elastic/multiprocessing/api.py:1003] failed"
        " (exitcode: -9) local_rank: 1 (pid: 42) of binary: /usr/bin/python3",
        then=exit_status,
    ),
    Rule(
        "torchrun",
        "signal",
        "signal",
        r"Sending process (?P<pid>\d+) closing signal (?P<signal>\w+)",
        "W0824 07:20:00.709000 123 torch/distributed/elastic/multiprocessing/api.py:1029] Sending"
        " process 43 closing signal SIGTERM",
    ),
    Rule(
        "torchrun",
        "signal",
        "signal",
        r"SignalException: Process (?P<pid>\d+) got signal: (?P<signal>\d+)",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 123 got signal: 15",
    ),
    Rule(
        "torchrun",
        "restart",
        "will restart worker group",
        r"Worker group \w+\. (?P<restarts_left>\d+)/(?P<attempts>\d+) attempts left;"
        r"\s+will restart worker group",
        "I0824 07:20:00.709000 123 torch/distributed/elastic/agent/server/api.py:943] [default]"
        " Worker group FAILED. 3/3 attempts left; will restart worker group",
        then=restarts,
    ),
    Rule(
        "deepspeed",
        "failure",
        "exits with return code",
        r"\] exits with return code = (?P<exit_code>-?[1-9]\d*)\s*$",
        "[2023-07-25 21:10:00,985] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python',"
        " '-u', 'train.py'] exits with return code = -9",
        then=exit_status,
    ),
    Rule(
        "slurm",
        "error",
        "slurmstepd: error: ***",
        r"^slurmstepd: error: \*{3} (?P<message>.*\bCANCELLED\b.*?)\s*\**$",
        "slurmstepd: error: *** JOB 77 ON node1 CANCELLED AT 2025-08-24T10:01:00 DUE TO TIME"
        " LIMIT ***",
    ),
    Rule(
        "nccl",
        "timeout",
        "watchdog caught collective",
        r"\[(?:PG [^\]]*)?Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout:"
        r" WorkNCCL\(SeqNum=(?P<sequence>\d+), OpType=(?P<operation>\w+)"
        r".*?Timeout\(ms\)=\d+\) ran for (?P<seconds_ms>\d+) milliseconds",
        "[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=9801523,"
        " NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.",
        {"backend": "nccl"},
        short_operation,
    ),
    Rule(
        "gloo",
        "timeout",
        "timed out waiting",
        r"Timed out waiting (?P<seconds_ms>\d+)ms for (?P<operation>\w+) operation to complete",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out"
        " waiting 10000ms for recv operation to complete",
        {"backend": "gloo"},
    ),
    Rule(
        "gloo",
        "timeout",
        "monitoredbarrier",
        r"[Rr]ank (?P<rank>\d+) (?:failed|timed out)\b.*\bmonitoredBarrier\b.*?(?:in|after)"
        r" (?P<seconds_ms>\d+) ?ms",
        "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 30000 ms",
        {"backend": "gloo", "operation": "barrier"},
    ),
    Rule(
        "gloo",
        "error",
        "connection closed by peer",
        r"Connection closed by peer(?: \[[^\]]*\](?::\d+)?)?",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by"
        " peer [127.0.0.1]:40838",
        {"backend": "gloo"},
    ),
    Rule(
        "cuda",
        "out-of-memory",
        "cuda out of memory",
        rf"CUDA out of memory\.(?: Tried to allocate (?P<wanted>{SIZE}))?"
        rf"(?:\.? ?\(?GPU (?P<gpu>\d+)\b(?:.*?(?:of which |; )(?P<free>{SIZE})(?: is)? free)?)?",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
        " capacity of 22.03 GiB of which 1.12 GiB is free. Process 1 has 20.90 GiB memory in use.",
        {"where": "cuda"},
    ),
    Rule(
        "cuda",
        "out-of-memory",
        "cuda error: out of memory",
        r"CUDA error: out of memory",
        "RuntimeError: CUDA error: out of memory",
        {"where": "cuda"},
    ),
    Rule(
        "kernel",
        "out-of-memory",
        "killed",
        r"[Oo]ut of memory: Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)",
        "[Sun Aug 24 07:20:00 2025] Out of memory: Killed process 4242 (python)"
        " total-vm:104857600kB, anon-rss:99614720kB",
        {"where": "host"},
    ),
    Rule(
        "kernel",
        "out-of-memory",
        "oom_kill",
        r"Detected \d+ oom_kill event",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.",
        {"where": "host"},
    ),
    Rule(
        "python",
        "out-of-memory",
        "defaultcpuallocator",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate"
        " memory: you tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)",
        {"where": "host"},
    ),
    Rule(
        "python",
        "out-of-memory",
        "memoryerror",
        r"^MemoryError\b",
        "MemoryError: Unable to allocate 64.0 GiB for an array",
        {"where": "host"},
    ),
    Rule(
        "python",
        "signal",
        "signal",
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<text>[\w ]+)",
        "RuntimeError: DataLoader worker (pid 4243) is killed by signal: Killed.",
        then=lambda what, values, text: _named_signal(what, values),
    ),
    Rule(
        "shell",
        "signal",
        "killed",
        r"^(?:\S+: line \d+:\s+(?P<pid>\d+) |\[\d+\][+-]?\s+)?Killed\b(?:\s{2,}.*)?$",
        "train.sh: line 3: 12345 Killed                  python train.py",
        {"signal": "SIGKILL"},
    ),
    Rule(
        "shell",
        "signal",
        "segmentation fault",
        r"^(?:\S+: line \d+:\s+(?P<pid>\d+) |\[\d+\][+-]?\s+|Fatal Python error: )?Segmentation fault",
        "Segmentation fault (core dumped)",
        {"signal": "SIGSEGV"},
    ),
    Rule(
        "this-trainer",
        "error",
        "train.py: ",
        r"^train\.py: (?P<message>.+)",
        "train.py: BITWATCH_DIR is not set: bitwatch launches this file",
    ),
    Rule(
        "this-trainer",
        "warning",
        " reader ",
        r"^rank (?P<rank>\d+), \w+ reader (?P<worker>\d+): (?P<message>.+)",
        "rank 1, train reader 3: the connection was reset, and is tried again",
    ),
    Rule(
        "any",
        "error",
        ".cpp:",
        r"(?:^|\[)E(?:\d{3,4} [\d:.]+)? [^\]]{1,120}\] ?(?P<message>.*)",
        "[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0 Rank 1]"
        " Exception (either an error or timeout) detected by watchdog at work: 808",
    ),
    *(
        Rule(
            "python",
            "exception",
            word,
            r"^(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt))(?:: (?P<message>.*))?$",
            sample,
        )
        for word, sample in (
            ("error", "ValueError: the rows do not fit"),
            ("exception", "my.package.StrangeException: nobody knows"),
            ("keyboardinterrupt", "KeyboardInterrupt"),
        )
    ),
)

LEVELS: tuple[Rule, ...] = (
    Rule(
        "any",
        "error",
        "error",
        LEVEL.format(words="ERROR"),
        "2025-08-24 07:14:00,709 [ERROR] the disk is full",
    ),
    Rule(
        "any",
        "error",
        "critical",
        LEVEL.format(words="CRITICAL"),
        "CRITICAL:root:nothing works",
    ),
    Rule(
        "any",
        "error",
        "fatal",
        LEVEL.format(words="FATAL"),
        "2025-08-24 07:14:00,709 - FATAL - no more",
    ),
    Rule(
        "python",
        "warning",
        "warning",
        r"^\S+\.py:\d+: (?P<type>\w*Warning): (?P<message>.*)",
        "/x/torch/utils/data/dataloader.py:617: UserWarning: This DataLoader will create 16 worker"
        " processes in total.",
    ),
    Rule(
        "any",
        "warning",
        "warn",
        LEVEL.format(words="WARNING|WARN"),
        "2025-08-24 07:16:02,502 [WARNING] the disk is nearly full",
    ),
)


def _named_signal(what: What, values: Values) -> What:
    words = {
        "Killed": "SIGKILL",
        "Terminated": "SIGTERM",
        "Segmentation fault": "SIGSEGV",
        "Bus error": "SIGBUS",
        "Aborted": "SIGABRT",
    }
    text = str(values.pop("text", "")).strip()
    values["signal"] = words.get(text, text)
    return what
