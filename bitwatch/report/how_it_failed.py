"""The findings about one cause, in words: no memory, a time-out, an exception, a dead rank."""

from __future__ import annotations

from bitwatch.attach.said import Said
from bitwatch.report.model import Evidence, Finding
from bitwatch.report.words import quoted


def no_memory(cause: Said, name: str, evidence: list[Evidence]) -> Finding:
    host = cause.values.get("where") == "host"
    gpu, wanted_mib = cause.values.get("gpu"), cause.values.get("wanted_mib")
    where = "The machine" if host else f"GPU {gpu}" if gpu is not None else "A GPU"
    more = f" when {wanted_mib:,.0f} MiB more were wanted" if _is_number(wanted_mib) else ""
    return Finding(
        id="out-of-memory",
        severity="error",
        title=f"{where} ran out of memory in {name}{more}",
        evidence=evidence,
        why="The training wants more memory than there is, or others held some of it: that is a "
        "matter of its configuration and of the machine, and no defect of the hardware.",
        next="`bitwatch plan` says what each rank needs; "
        + (
            "fewer workers or a smaller buffer need less memory of the host."
            if host
            else "a smaller micro_batch or activation checkpointing needs less."
        ),
    )


def timed_out(cause: Said, name: str, where: str, more: str, evidence: list[Evidence]) -> Finding:
    """`where`: in what no earlier error is; `more`: what is known besides."""
    operation = cause.values.get("operation")
    during = f" in {quoted(str(operation), 40)}" if operation else ""
    return Finding(
        id="timeout",
        severity="error",
        title=f"{who(cause)} waited{during} until the time-out in {name}",
        evidence=evidence,
        why=f"A collective waits for all ranks, and one did not come. No earlier error is {where}, "
        "so which one and why cannot be told: a rank without data, one at another step, one that "
        f"was stopped, or the network.{more}",
        next="Look at the logs of the other ranks from before this time; stacks of a rank that "
        "still waits say where (key s in bitwatch).",
    )


def threw(
    cause: Said,
    name: str,
    echoes: int,
    evidence: list[Evidence],
    not_in: str = "",
    more: str = "",
) -> Finding:
    """`not_in`: it is an echo, and its cause is not in the evidence, or not in this log."""
    kind = quoted(str(cause.values.get("type", "an exception")), 80)
    where = cause.values.get("where")
    why = [f"The innermost place is {quoted(str(where), 120)}."] if where else []
    if echoes == 1:
        why.append("Another line about failures may be an echo of it.")
    elif echoes:
        why.append(f"{echoes} other lines about failures may be echoes of it.")
    after = "It is the first error; mend this one, and look at the others only if they stay."
    if not_in:
        why.append(f"It says that another process was lost, and why is not {not_in}.{more}")
        after = "Look at the logs of the other ranks, and at `dmesg` for a kill by the kernel."
    rank = cause.values.get("rank")
    return Finding(
        id="exception",
        severity="error",
        title=f"{f'Rank {rank}' if rank is not None else 'A process'} failed in {name} with "
        f"{kind}: {quoted(str(cause.values.get('message', '')) or cause.line.text, 160)}",
        evidence=evidence,
        why=" ".join(why),
        next=after,
    )


def failed(cause: Said, name: str, evidence: list[Evidence]) -> Finding:
    values = cause.values
    signal = values.get("signal")
    how = f"by {quoted(str(signal), 20)}" if signal else f"with exit code {values.get('exit_code')}"
    if not signal and values.get("exit_code") is None:
        how = "without saying how"
    pid = f" (pid {values['pid']})" if values.get("pid") is not None else ""
    why, after = [], "Look at that rank's own log, and at `dmesg` for a kill by the kernel."
    if cause.what == "failure":
        first = "names it as the first" if values.get("rank") is not None else "says so"
        why = [f"The launcher's report {first}; no traceback of it is in the evidence."]
    elif cause.dialect == "python":
        why = ["It is the first sign of the end; what follows about lost workers is its echo."]
    if signal == "SIGKILL" or values.get("exit_code") == -9:
        why.append(
            "SIGKILL comes from outside: the kernel for lack of memory, or somebody. The log "
            "does not say which; the kernel's own log does."
        )
    elif signal == "SIGBUS":
        why.append("That is most often shared memory (/dev/shm) too small for the workers.")
        after = "Look at `df -h /dev/shm`; give it more room, or use fewer workers."
    return Finding(
        id="rank-died",
        severity="error",
        title=f"{who(cause)}{pid} ended in {name} {how}",
        evidence=evidence,
        why=" ".join(why),
        next=after,
    )


def who(said: Said) -> str:
    rank = said.values.get("rank")
    if said.dialect == "python" and said.what == "signal":
        return "A DataLoader worker" if rank is None else f"A DataLoader worker of rank {rank}"
    if rank is not None:
        return f"Rank {rank}"
    return "A process" if said.what == "signal" or said.dialect == "deepspeed" else "A rank"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
