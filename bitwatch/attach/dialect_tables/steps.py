"""How trainers say that a step, or an evaluation, is done."""

from __future__ import annotations

import re

from bitwatch.attach.dialect_tables.numbers import NUMBER, number
from bitwatch.attach.dialect_tables.rule import Rule, Values
from bitwatch.attach.said import What

N = NUMBER
BAR_OF_SOMETHING_ELSE = re.compile(
    r"(?i)load|download|\bmap\b|filter|fetch|tokeniz|resolv|generat|saving|eval|valid|\btest"
    r"|predict|sanity|prepar|compress|extract|upload|shard|quantiz|convert|writing|reading|pars"
    r"|process|import|compil|scan|split|index|cast|flatten|sampl|inference|decod|encod|warm"
)
STEP_NUMBER = re.compile(
    r"(?i)(?<![\w/])(?:global[_ ])?(step|iter|iteration|epoch|update)\b[\"']?\s*[:=#]?\s*[\[(]?\s*"
    r"(\d[\d,]*)(?![\w.]*\w)(?:\s*(?:/|of)\s*(\d[\d,]*))?"
)
LOSS = re.compile(
    rf"(?i)(?<![\w/])(?:train(?:ing)?[_ /]|lm[_ ]|avg[_ ]|average |total[_ ]|mean[_ ])?loss(?:/train)?\b"
    rf"[\"']?(?:\s*[:=]\s*[\"'(\[]*({N})|\s+(\d*\.\d+(?:e[-+]?\d+)?|nan|inf))(?![\w.]*\w)"
)

# What stands without a colon: "LR 1.0e-04", and what stands before its unit: "1,200 tok/s".
SPACED = re.compile(rf"(?i)(?<![\w/])(lr|learning rate|grad[_ ]?norm|gnorm) +({N})(?![\w.]*\w)")
UNITS = re.compile(rf"(?<![\w.])({N}) ?(tok(?:en)?s?/s(?:ec)?|samples/s(?:ec)?|s/step|ms/step)\b")
WITHIN_EPOCH = re.compile(r"[\[| (]\s*(\d+)\s*/\s*(\d+)\b")
UNIT_VALUES = {"t": ("tokens_per_s", 1.0), "sa": ("samples_per_s", 1.0)}
UNIT_VALUES |= {"s/": ("step_s", 1.0), "ms": ("step_s", 1e-3)}


def with_a_value(what: What, values: Values, text: str) -> What | str:
    """Progress is a number of a step or epoch, and a loss or a speed beside it."""
    evaluated = values.pop("evaluation_loss", None)
    if "runtime_s" in values and what == "step":
        return "done"
    if evaluated is not None and "loss" not in values:
        values["loss"] = evaluated
        what = "evaluation"
    if "steps" in values and not values["steps"]:
        del values["steps"]
    if not {"step", "epoch"} & values.keys():
        return ""
    speaking = {"loss", "step_s", "tokens_per_s", "samples_per_s", "perplexity"}
    return what if speaking & values.keys() else ""


def bar(what: What, values: Values, text: str) -> What | str:
    """A tqdm bar, of training as far as its description says. An epoch's bar counts the steps
    of the epoch: the steps before it are added."""
    description = str(values.pop("description", ""))
    if BAR_OF_SOMETHING_ELSE.search(description):
        return ""
    values.pop("evaluation_loss", None)
    done, total = int(values["step"]), int(values["steps"])
    epoch = re.search(r"(?i)\bepoch\s*\[?(\d+)(?:\s*/\s*(\d+))?", description)
    if epoch and len(epoch[1]) < 7 and total:
        of = int(epoch[2]) if epoch[2] else 0
        before = max(0, int(epoch[1]) - (of > 0))
        values["epoch"] = before + done / total
        values["step"] = before * total + done
        if of:
            values["steps"] = of * total
        else:
            del values["steps"]
    named = re.search(r"global_step=([\d.]+(?:e\+?\d+)?)", text)
    if named:
        values["step"] = int(float(named[1]))
    return with_a_value(what, values, text) if "step" in values else ""


STEPS: tuple[Rule, ...] = (
    Rule(
        "hugging-face",
        "step",
        "'epoch'",
        r"^(?:[^{]{0,80}\s)?(?P<pairs>\{'.*\})\s*$",
        "{'loss': '2.313', 'grad_norm': '1.087', 'learning_rate': '4.5e-05', 'epoch': '0.1'}",
        then=with_a_value,
    ),
    Rule(
        "torchtitan",
        "step",
        "tps:",
        rf"\bstep:\s*(?P<step>\d+)\s+loss:\s*(?P<loss>{N})(?:\s+grad_norm:\s*(?P<grad_norm>{N}))?"
        rf"(?:\s+memory:\s*\S+)?\s+tps:\s*(?P<tokens_per_s>{N})(?:\s+tflops:\s*{N})?"
        rf"(?:\s+mfu:\s*(?P<mfu_percent>{N})%)?",
        "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - step: 14  loss:  3.24405  "
        "grad_norm:  0.8319  memory:  9.46GiB(64.99%)  tps: 7,282  tflops: 0.52  mfu: 0.17%",
    ),
    Rule(
        "nanogpt",
        "evaluation",
        "val loss",
        rf"\bstep (?P<step>\d+): train loss {N}, val loss (?P<loss>{N})",
        "step 2000: train loss 3.2103, val loss 3.2541",
    ),
    Rule(
        "nanogpt",
        "step",
        "loss",
        rf"\biter (?P<step>\d+): loss (?P<loss>{N}), time (?P<step_ms>{N})ms"
        rf"(?:, mfu (?P<mfu_percent>{N})%)?",
        "iter 100: loss 3.1204, time 130.11ms, mfu 1.24%",
    ),
    Rule(
        "nanochat",
        "step",
        "tok/sec",
        rf"\bstep (?P<step>\d+)(?:/(?P<steps>\d+))?(?: \([\d.]+%\))? \| loss: (?P<loss>{N})"
        rf"(?:.*? \| (?:grad norm|gnorm): (?P<grad_norm>{N}))?"
        rf".*? \| dt: (?P<step_ms>{N})ms \| tok/sec: (?P<tokens_per_s>{N})"
        rf"(?:.*? \| (?:bf16_)?mfu: (?P<mfu_percent>{N}))?",
        "step 00010/21400 (0.05%) | loss: 3.102311 | lrm: 1.00 | dt: 100.00ms | tok/sec: 1,200"
        " | mfu: 40.10 | total time: 0.02m",
    ),
    Rule(
        "nanochat",
        "evaluation",
        "validation bpb",
        rf"(?i)^step (?P<step>\d+)(?:/\d+)? \| validation bpb: (?P<bits_per_byte>{N})",
        "Step 00250 | Validation bpb: 1.0321",
    ),
    Rule(
        "deepspeed",
        "step",
        "skipped=",
        rf"\[Rank \d+\] step=(?P<step>\d+), skipped=\d+, lr=\[(?P<learning_rate>{N})",
        "[2022-03-11 02:06:58,985] [INFO] [logging.py:69:log_dist] [Rank 0] step=40, skipped=2,"
        " lr=[5e-05], mom=[[0.9, 0.999]]",
    ),
    Rule(
        "deepspeed",
        "step",
        "samplespersec",
        r"global_step=(?P<step>\d+), (?P<pairs>RunningAvgSamplesPerSec=.*)",
        "[2023-07-25 21:03:17,269] [INFO] [timer.py:215:stop] epoch=0/micro_step=34/"
        "global_step=34, RunningAvgSamplesPerSec=7.86, CurrSamplesPerSec=8.01, MemAllocated=59GB",
        then=with_a_value,
    ),
    Rule(
        "deepspeed",
        "step",
        "iter time (s)",
        rf"^steps: (?P<step>\d+) loss: (?P<loss>{N}) iter time \(s\): (?P<step_s>{N})"
        rf"(?: samples/sec: (?P<samples_per_s>{N}))?",
        "steps: 10 loss: 2.3021 iter time (s): 0.512 samples/sec: 15.625",
    ),
    Rule(
        "megatron",
        "step",
        "iteration",
        r"\biteration\s+(?P<step>\d+)/\s*(?P<steps>\d+) \| (?P<pairs>.*)",
        " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms):"
        " 4103.1 | learning rate: 2.111E-06 | lm_loss: 1.118665E+01 |",
        then=with_a_value,
    ),
    Rule(
        "accelerate",
        "evaluation",
        "perplexity",
        rf"\bepoch (?P<epoch>\d+): perplexity: (?P<perplexity>{N})"
        rf"(?: (?:eval_loss|train_loss): (?P<loss>{N}))?",
        "08/24/2025 07:14:00 - INFO - __main__ - epoch 0: perplexity: 31.2 eval_loss: 3.4404",
    ),
    Rule(
        "tqdm",
        "step",
        "it/s",
        rf"(?:^|\s)(?:(?P<description>[^|]{{0,200}}?): *)?\d+%\|[^|]*\| *(?P<step>\d+)/(?P<steps>\d+)"
        rf" \[[\d:?]+<(?P<eta>[\d:]+|\?)?, *(?:(?P<steps_per_s>{N})|\?)it/s(?:, (?P<pairs>[^\]]*))?\]",
        "Epoch 0:  50%|█████     | 50/100 [00:10<00:10,  4.90it/s, v_num=0, train_loss=2.10]",
        then=bar,
    ),
    Rule(
        "tqdm",
        "step",
        "s/it",
        rf"(?:^|\s)(?:(?P<description>[^|]{{0,200}}?): *)?\d+%\|[^|]*\| *(?P<step>\d+)/(?P<steps>\d+)"
        rf" \[[\d:?]+<(?P<eta>[\d:]+|\?)?, *(?P<step_s>{N})s/it(?:, (?P<pairs>[^\]]*))?\]",
        "  1%|          | 10/1752 [00:29<1:22:01,  2.83s/it]",
        then=bar,
    ),
)


def from_pairs(what: What, values: Values, text: str) -> What | str:
    """A line of no known trainer: a numbered step or epoch, and its loss or speed, each said as
    a name with its number. A sentence that mentions them is none."""
    numbered = STEP_NUMBER.search(text)
    if not numbered:
        return ""
    lost = LOSS.search(text)
    if lost:
        values["loss"] = float((lost[1] or lost[2]).replace(",", ""))
    key = "epoch" if numbered[1].lower() == "epoch" else "step"
    if key == "epoch" and "step" not in values:
        second = STEP_NUMBER.search(text, numbered.end())
        if second and second[1].lower() != "epoch":
            values["epoch"] = float(numbered[2].replace(",", ""))
            numbered, key = second, "step"
    values[key] = int(numbered[2].replace(",", ""))
    if numbered[3] and key == "step":
        values["steps"] = int(numbered[3].replace(",", ""))
    elif key == "epoch":
        within = WITHIN_EPOCH.search(text, numbered.end())
        part = int(within[1]) / int(within[2]) if within and int(within[2]) else 0.0
        values["epoch"] = float(values["epoch"]) + (part if part <= 1 else 0.0)
    for name, digits in SPACED.findall(text):
        values.setdefault("learning_rate" if name[0] in "lL" else "grad_norm", number(digits))
    for digits, unit in UNITS.findall(text):
        named, factor = UNIT_VALUES.get(unit[:2]) or UNIT_VALUES["t"]
        values.setdefault(named, number(digits) * factor)
    return with_a_value(what, values, text)


GENERIC: tuple[Rule, ...] = (
    Rule(
        "any",
        "step",
        "loss",
        r"^(?P<pairs>.*)$",
        "epoch 1 step 12/500 | loss=3.214 | lr=2.5e-4 | 12,345 tok/s",
        then=from_pairs,
    ),
    Rule(
        "any",
        "step",
        "tok",
        r"^(?P<pairs>.*\btok(?:en)?s?(?:/|_per_|\s+per\s+)s(?:ec(?:ond)?)?\b.*)$",
        "step=12 tokens_per_s=12,345",
        then=from_pairs,
    ),
)
