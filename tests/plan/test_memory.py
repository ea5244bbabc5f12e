"""Memory by arithmetic: what it depends on, whether it fits, and what makes it fit.

That the numbers are right is shown in `tests/trainer/test_memory_tracker.py`.
"""

from __future__ import annotations

import msgspec
import pytest

from bitwatch import config as configuration
from bitwatch.plan import fit, memory, preflight, sizes
from bitwatch.plan.facts import DeviceFacts, Facts, Gpu
from bitwatch.plan.result import MemoryPlan, PerGpu, Plan, Problem
from bitwatch.strict import ConfigError

L4 = Gpu(name="NVIDIA L4", memory_mib=22_563)
ALL_KEPT = "parallel.activation_checkpointing=none"


def config(name: str = "1b21", *changes: str) -> configuration.Config:
    return configuration.load(configuration.bundled(f"configs/{name}.toml"), changes)


def parts(config: configuration.Config) -> dict[str, float]:
    return msgspec.to_builtins(memory.predict(config).per_gpu_gib)


def on_l4(*changes: str) -> Plan:
    return preflight.make_plan(config("1b21", *changes), Facts(), gpu="L4")


def does_not_fit(plan: Plan) -> Problem | None:
    return next((p for p in plan.problems if p.id == "does-not-fit"), None)


def remedies(plan: Plan) -> list[list[str]]:
    """What `next` of does-not-fit says to set: alternatives, each of one or more changes."""
    problem = does_not_fit(plan)
    assert problem is not None
    return [
        [word.split()[0] for word in alternative.split("--set ")[1:]]
        for alternative in problem.next.split(", or ")
    ]


# ---------------------------------------------------------------------------------------
# The numbers


@pytest.mark.parametrize(("name", "built"), [("1b21", 1_208_606_722), ("680m", 679_962_626)])
def test_shapes_are_those_of_the_model(name: str, built: int) -> None:
    of = sizes.sizes(config(name))
    assert of.layers * of.block + of.root == built
    if name == "1b21":
        assert of.held == 302_153_729  # ranks 0 and 1, which hold most


@pytest.mark.parametrize("name", ["demo", "680m", "1b21"])
def test_the_parts_add_up(name: str) -> None:
    found = parts(config(name))
    total = found.pop("total")
    assert sum(found.values()) == pytest.approx(total)
    assert all(gib >= 0 for gib in found.values())
    assert set(found) | {"total"} == set(PerGpu.__struct_fields__)


def test_weights_and_moments_are_float32_and_spread() -> None:
    for precision in ("bf16", "fp32"):
        found = parts(config("1b21", f"parallel.precision={precision}"))
        assert found["parameters"] == pytest.approx(1.2086 * 4 / 4 / 1.0737, rel=1e-3)
        assert found["optimizer"] == pytest.approx(2 * found["parameters"])


def test_accumulating_without_a_sum_costs_the_whole_models_gradients_on_every_rank() -> None:
    one, two, many = (parts(config("1b21", ALL_KEPT, f"train.batch={n}")) for n in (16, 32, 1024))
    assert two["gradients"] - one["gradients"] == pytest.approx(4 * 1_208_606_722 / 2**30)
    assert many == two


def test_what_is_kept_of_activations_goes_with_the_mode() -> None:
    found = [
        parts(config("1b21", f"parallel.activation_checkpointing={mode}"))["activations"]
        for mode in ("none", "selective", "full")
    ]
    assert found[0] > 1.3 * found[1] > 4 * found[2]


def test_keeping_gathered_weights_costs_the_model_once_in_bf16() -> None:
    grad = parts(config("1b21", "parallel.shard=grad"))
    assert grad["gathered"] == pytest.approx(2 * 1_208_606_722 / 2**30, rel=1e-3)


def test_parity_bits_are_tokens_too() -> None:
    eight, nine = (
        sizes.sizes(config("1b21", "model.context=2304", f"model.parity={word}")).tokens
        for word in ("false", "true")
    )
    assert eight == nine == 4 * 2304
    assert sizes.sizes(config("1b21", "model.context=2303", "model.parity=true")).tokens == 4 * 2295


def test_overhead_is_in_the_range_that_was_met() -> None:
    found = [memory.overhead_gib(gib) for gib in (0.01, 5, 10, 20, 100)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(1.5, abs=0.01)
    assert found[-1] == 2.5


def test_a_model_of_any_size_is_worked_out() -> None:
    huge = parts(config("1b21", "model.layers=10000", "model.expected_parameters=1"))
    assert huge["total"] > 1e3
    tiny = parts(config("demo", "model.layers=1", "parallel.ranks=1", "train.micro_batch=1"))
    assert 1.5 < tiny["total"] < 1.6


# ---------------------------------------------------------------------------------------
# Whether it fits


@pytest.mark.parametrize("name", ["1b21", "680m"])
def test_the_bundled_models_fit_four_l4(name: str) -> None:
    plan = preflight.make_plan(config(name), Facts(), gpu="L4")
    assert (plan.memory.gpu, plan.memory.capacity_gib, plan.memory.fits) == ("L4", 22.0, True)
    assert does_not_fit(plan) is None


def test_a_plan_for_other_gpus_does_not_ask_for_those_of_this_machine() -> None:
    here = Facts(devices=DeviceFacts(gpus=[L4]))
    plan = preflight.make_plan(config("1b21"), here, gpu="H100")
    assert (plan.memory.gpu, plan.memory.fits) == ("H100", True)
    assert [problem.id for problem in plan.problems] == ["data-unknown"]


def test_gpus_are_known_in_any_spelling() -> None:
    for name in ("L4", "l4", "NVIDIA L4"):
        assert fit.asked(name) == ("L4", 22.0)
    assert fit.asked("A100-80GB") == fit.asked("a100 80") == ("A100-80", 79.1)
    assert fit.asked("GeForce RTX 4090").gpu == "RTX 4090"
    for name in ("A100", "L", "", "H1000"):
        with pytest.raises(ConfigError, match=r"known are .*L4.*H200"):
            fit.asked(name)


def room(gpus: list[Gpu], *changes: str) -> MemoryPlan:
    facts = Facts(devices=DeviceFacts(gpus=gpus))
    return preflight.make_plan(config("680m", *changes), facts).memory


def test_without_a_gpu_nobody_knows_whether_it_fits() -> None:
    for found in (
        room([]),
        room([L4] * 4, "parallel.device=cpu"),
        room([L4] * 3, "parallel.device=auto"),
    ):
        assert (found.capacity_gib, found.fits) == (None, None)
        assert found.per_gpu_gib.total is not None


def test_the_smallest_gpu_that_a_rank_gets_decides() -> None:
    small, smaller = (Gpu(name=f"{gib} GiB", memory_mib=gib * 1024) for gib in (16, 8))
    found = room([L4, L4, small, L4, smaller])
    assert (found.gpu, found.capacity_gib, found.fits) == ("16 GiB", 16.0, True)
    found = room([L4, smaller, L4, L4])
    assert (found.gpu, found.capacity_gib, found.fits) == ("8 GiB", 8.0, False)


# ---------------------------------------------------------------------------------------
# What makes it fit


def test_what_cannot_fit_is_refused() -> None:
    plan = on_l4("train.micro_batch=8", ALL_KEPT)
    problem = does_not_fit(plan)
    assert problem is not None and problem.severity == plan.verdict == "error"


def test_what_hardly_fits_is_warned_of_with_the_settings_that_do() -> None:
    """A guess at CUDA's own share decides there, and must not forbid anything."""
    plan = on_l4(ALL_KEPT)
    problem = does_not_fit(plan)
    assert problem is not None and problem.severity == plan.verdict == "warning"
    assert plan.memory.fits is False
    assert problem.text == (
        "This needs about 22.8 GiB of each GPU, and 22.0 are there (L4): it would run out of "
        "memory at the backward pass of block 24 of 24. The largest parts are activations (12.2 "
        "GiB) and gradients (4.5 GiB)."
    )
    assert problem.next == (
        "--set parallel.activation_checkpointing=selective (19.1 GiB), or --set "
        "train.micro_batch=2 (16.4 GiB), or --set parallel.ranks=8 (21.0 GiB)."
    )


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ([ALL_KEPT], ["parallel.activation_checkpointing=selective"]),
        (["train.micro_batch=8"], ["parallel.activation_checkpointing=full"]),
        (
            ["parallel.activation_checkpointing=full", "train.micro_batch=64", "train.batch=256"],
            ["train.micro_batch=32"],
        ),
        (
            [
                "parallel.shard=grad",
                "parallel.activation_checkpointing=full",
                "model.layers=52",
                "model.expected_parameters=1",
                "train.micro_batch=1",
            ],
            ["parallel.shard=full"],
        ),
        # No key alone.
        (
            [ALL_KEPT, "train.micro_batch=32", "model.layers=56", "model.expected_parameters=1"],
            ["parallel.activation_checkpointing=full", "train.micro_batch=1"],
        ),
    ],
)
def test_every_remedy_fits_when_it_is_taken(changes: list[str], first: list[str]) -> None:
    plan = on_l4(*changes)
    found = remedies(plan)
    assert found[0] == first
    for alternative in found:
        assert does_not_fit(on_l4(*changes, *alternative)) is None, alternative


def test_a_smaller_micro_batch_still_divides_the_batch() -> None:
    found = remedies(on_l4(ALL_KEPT, "train.micro_batch=6", "train.batch=120"))
    assert ["train.micro_batch=3"] in found


def test_no_more_ranks_than_there_are_gpus() -> None:
    here = Facts(devices=DeviceFacts(gpus=[L4] * 4))
    found = remedies(preflight.make_plan(config("1b21", ALL_KEPT), here, launching=True))
    assert [change.split("=")[0] for (change,) in found] == [
        "parallel.activation_checkpointing",
        "train.micro_batch",
    ]


def test_what_nothing_makes_fit_is_said() -> None:
    plan = on_l4("model.layers=2000", "model.expected_parameters=1")
    problem = does_not_fit(plan)
    assert problem is not None
    assert problem.next.startswith("Nothing that can be set makes it fit")
