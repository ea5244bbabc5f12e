"""How logs say what is trained on what: parameters, hardware, beginnings, ends, checkpoints."""

from __future__ import annotations

import re

from bitwatch.attach.dialect_tables.numbers import COUNT
from bitwatch.attach.dialect_tables.rule import Rule, Values
from bitwatch.attach.said import What

# A count with its unit: 1,208,606,722 or 123.59M or 0.17 billion
PARAMETERS = rf"(?P<parameters>(?:{COUNT})(?:\s?(?:[KMBT]\b|thousand|million|billion))?)"
FEWEST_PARAMETERS = 1000  # fewer are those of a function
MOST_KEYS = 64
PART = re.compile(r"(?i)\bshard|\bper[- ](?:rank|gpu|device)\b|\bon (?:this |each )?rank\b|\blocal")
NOT_A_MODEL = re.compile(r"(?i)\bparam\w* tensors|\bnon-trainable|\bfrozen")
NOT_SAVED = re.compile(
    r"(?i)\b(?:not|no|without|skip\w*|fail\w*|disabled?|every|will|if|unable|cannot|error)\b"
)


def model(what: What, values: Values, text: str) -> What | str:
    if int(values.get("parameters", 0)) < FEWEST_PARAMETERS or NOT_A_MODEL.search(text):
        return ""
    if what == "built" and PART.search(text):
        values["shard"] = 1
    return what


def keys_and_values(what: What, values: Values, text: str) -> What | str:
    inside = str(values.pop("text", ""))
    for key, quoted, plain in re.findall(
        r"""["']?(\w{1,60})["']?\s*[:=]\s*(?:["']([^"']{0,200})["']|([^,{}'"]{1,200}))""", inside
    )[:MOST_KEYS]:
        values[key] = quoted or _plain(plain.strip())
    return what if values else ""


def _plain(text: str) -> float | int | str:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def saved(what: What, values: Values, text: str) -> What | str:
    if NOT_SAVED.search(text):
        return ""
    path = str(values.get("path", "")).rstrip(".,'\"")
    if path:
        values["path"] = path
    if "step" not in values and (numbered := re.search(r"(?:checkpoint|step)[-_ =]?(\d+)", text)):
        values["step"] = int(numbered[1])
    return what


FACTS: tuple[Rule, ...] = (
    Rule(
        "incident",
        "target",
        "target",
        # A number of something else, as of steps or tokens, is no target of this kind.
        rf"(?i)\btarget(?: (?:model )?(?:size|parameters?))?\s*[:=]\s*{PARAMETERS}"
        r"(?:\s*param(?:eter)?s?\b|(?![\w%]|[.,]\d|\s+[^\W\d_]))",
        "2025-08-24 07:14:00,709 [INFO] Target: 1,208,606,722 parameters",
        then=model,
    ),
    Rule(
        "incident",
        "hardware",
        "hardware:",
        r"\bHardware:\s*(?P<gpus>\d+)\s*x\s*(?P<name>.+?)(?: GPUs?)?\s*$",
        "2025-08-24 07:14:00,710 [INFO] Hardware: 4x NVIDIA L4 GPUs",
    ),
    Rule(
        "incident",
        "configuration",
        "config",
        r"(?i)\bconfig(?:uration)?\s*[:=]\s*\{(?P<text>.*)\}",
        "2025-08-24 07:14:00,710 [INFO] Configuration: {'d_model': 2048, 'nhead': 32,"
        " 'num_layers': 24, 'dim_feedforward': 8192, 'max_seq_len': 2048}",
        then=keys_and_values,
    ),
    Rule(
        "incident",
        "built",
        "model created",
        rf"(?i)\bmodel created with {PARAMETERS} parameters",
        "2025-08-24 07:15:57,037 [INFO] ✅ Model created with 169,990,657 parameters (0.17B)",
        then=model,
    ),
    Rule(
        "incident",
        "begins",
        "starting training loop",
        r"(?i)\bstarting training loop",
        "2025-08-24 07:15:57,042 [INFO] 🎯 Starting training loop...",
    ),
    Rule(
        "datasets",
        "workers-exceed-shards",
        "too many dataloader workers",
        r"Too many dataloader workers: (?P<workers>\d+) \(max is dataset\.num_shards=(?P<shards>\d+)\)"
        r"(?:\. Stopping (?P<stopped>\d+) dataloader workers)?",
        "2025-08-24 07:16:02,502 [WARNING] Too many dataloader workers: 4 (max is"
        " dataset.num_shards=2). Stopping 2 dataloader workers.",
    ),
    Rule(
        "hugging-face",
        "begins",
        "running training",
        r"\*{3,}\s*Running training\s*\*{3,}",
        "***** Running training *****",
    ),
    Rule(
        "hugging-face",
        "built",
        "trainable parameters",
        rf"Number of trainable parameters\s*=\s*{PARAMETERS}",
        "  Number of trainable parameters = 124,439,808",
        then=model,
    ),
    Rule(
        "hugging-face",
        "built",
        "all params",
        rf"\ball params:\s*{PARAMETERS}",
        "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622",
        then=model,
    ),
    Rule(
        "hugging-face",
        "checkpoint",
        "saving model checkpoint",
        r"Saving model checkpoint to (?P<path>\S+)",
        "Saving model checkpoint to out/checkpoint-500",
        then=saved,
    ),
    Rule(
        "hugging-face",
        "done",
        "training completed",
        r"^\s*Training completed\b",
        "Training completed. Do not forget to share your model on huggingface.co/models =)",
    ),
    Rule(
        "torchtitan",
        "built",
        "total parameters",
        rf"\bsize: {PARAMETERS} total parameters",
        "[titan] 2025-07-21 15:57:40,774 - root - INFO - Model llama3 debugmodel size:"
        " 6,139,136 total parameters",
        then=model,
    ),
    Rule(
        "torchtitan",
        "begins",
        "training starts at step",
        r"Training starts at step (?P<step>\d+)",
        "[titan] 2025-07-21 15:57:41,774 - root - INFO - Training starts at step 1",
    ),
    Rule(
        "torchtitan",
        "checkpoint",
        "finished saving the checkpoint",
        r"Finished saving the checkpoint.*? in (?P<seconds>[\d.]+) seconds",
        "[titan] 2025-07-21 15:58:41,774 - root - INFO - Finished saving the checkpoint (or"
        " staging if async is enabled) in 3.21 seconds.",
    ),
    Rule(
        "torchtitan",
        "done",
        "training completed",
        r" - INFO - Training completed\s*$",
        "[titan] 2025-07-21 15:59:41,774 - root - INFO - Training completed",
    ),
    Rule(
        "lightning",
        "built",
        "total params",
        rf"^\s*{PARAMETERS}\s+Total params",
        "124 M     Total params",
        then=model,
    ),
    Rule(
        "lightning",
        "done",
        "trainer.fit` stopped",
        r"`Trainer\.fit` stopped:",
        "`Trainer.fit` stopped: `max_epochs=1` reached.",
    ),
    Rule(
        "lightning",
        "checkpoint",
        "saving model to",
        r"global step (?P<step>\d+): .*saving model to '(?P<path>[^']+)'",
        "Epoch 0, global step 100: 'val_loss' reached 2.10000 (best 2.10000), saving model to"
        " 'out/epoch=0-step=100.ckpt' as top 1",
    ),
    Rule(
        "deepspeed",
        "done",
        "exits successfully",
        r"\[launch\.py:\d+:main\] Process \d+ exits successfully",
        "[2023-07-25 21:49:30,990] [INFO] [launch.py:347:main] Process 3456 exits successfully.",
    ),
    Rule(
        "deepspeed",
        "checkpoint",
        "saved",
        r"\[Torch\] Saved (?P<path>\S*global_step(?P<step>\d+)\S*?)\.?\s*$",
        "[2023-07-25 21:05:17,269] [INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saved"
        " out/global_step500/mp_rank_00_model_states.pt.",
    ),
    Rule(
        "any",
        "begins",
        "training",
        r"(?i)(?:^|[\]:|-]\s+|\s-\s)\W*(?:start(?:ing|ed)?|begin(?:ning|s)?) (?:the )?training\b",
        "2025-08-24 07:14:00,709 [INFO] Starting training for 20000 steps",
    ),
    Rule(
        "any",
        "done",
        "training",
        r"(?i)(?:^|[\]:|-]\s+|\s-\s)\W*training (?:has |is |was )?(?:completed?|finished|done)\b",
        "2025-08-24 09:14:00,709 [INFO] Training finished in 7200.0 s",
    ),
    Rule(
        "any",
        "checkpoint",
        "checkpoint",
        r"(?i)\b(?:sav(?:ed|ing)|wrote|writing|written)\b.{0,80}?\bcheckpoint\b"
        r"(?:.{0,80}?\b(?:to|at|in|as)\b:?\s+[\"']?(?P<path>[^\s\"']+))?",
        "saving checkpoint to out/ckpt.pt",
        then=saved,
    ),
    Rule(
        "any",
        "checkpoint",
        "checkpoint",
        r"(?i)\bcheckpoint\b.{0,60}\b(?:saved|written)\b(?:\s+(?:to|at|in|as)\b:?\s+[\"']?(?P<path>[^\s\"']+))?",
        "Checkpoint at step 500 saved to out/step-500",
        then=saved,
    ),
    Rule(
        "any",
        "built",
        "param",
        rf"(?i)(?:^|[\s|:(])(?:number of |num |total |trainable |model |all )*param(?:eter)?s?"
        rf"(?: count)?\s*[:=]\s*{PARAMETERS}(?![\w.%])",
        "number of parameters: 123.59M",
        then=model,
    ),
    Rule(
        "any",
        "built",
        "param",
        rf"(?i)(?<![\w.,-]){PARAMETERS}\s+(?:trainable |total |model )?param(?:eter)?s\b(?!\s+tensors)",
        "Model has 1,208,606,722 parameters",
        then=model,
    ),
)
