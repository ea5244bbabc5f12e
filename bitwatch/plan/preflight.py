"""What a configuration would do, before anything is launched.

`make_plan` joins the arithmetic of this floor into one value. What the facts do not tell
stays None in it, and is said as a problem.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bitwatch import config as configuration
from bitwatch import utf8
from bitwatch.plan import data_problems, fit, guard, memory, modes, parameters, problems
from bitwatch.plan.corrections import corrections
from bitwatch.plan.facts import DataFacts, DeviceFacts, Facts, ModelFacts
from bitwatch.plan.refused import refused
from bitwatch.plan.result import (
    DataPlan,
    MemoryPlan,
    ModelPlan,
    Plan,
    Problem,
    Verdict,
)


def make_plan(
    config: configuration.Config,
    facts: Facts,
    *,
    launching: bool = False,
    gpu: str | None = None,
    before: Sequence[guard.Target] = (),
) -> Plan:
    """The plan of `config` under `facts`.

    `launching` says that the machine of the facts is the one that is about to train. A plan
    alone may be made on a machine without any GPU: that is then only a warning. `gpu` names
    the GPUs that it is made for, where they are not this machine's. `before` is what earlier
    attempts, or runs of the name, aimed at. Raises ConfigError for a name that `fit` does not
    know.
    """
    model = _model(config, facts.model or ModelFacts())
    text = facts.data or DataFacts()
    data = modes.taken(config, text)
    room = _memory(config, facts.devices or DeviceFacts(), gpu)
    most_ranks = fit.MOST_GPUS if gpu else len(facts.devices.gpus) if facts.devices else 0
    better = corrections(config, text, data)
    found = [
        *problems.about_facts(facts),
        *problems.about_model(model, config.parallel.ranks),
        *guard.about_target(model, config.parallel.ranks, before),
        *problems.about_devices(config, None if gpu else facts.devices, launching=launching),
        *fit.about_memory(config, room, most_ranks),
        *problems.about_mode(config, text, data, better),
        *data_problems.about_data(data, better),
    ]
    return Plan(
        verdict=_verdict(found, model, data),
        model=model,
        memory=room,
        data=data,
        corrections=better,
        problems=found,
        refused=list(refused(config, text, data)),
    )


def to_json(plan: Plan) -> bytes:
    """The plan as a person can read it: indented JSON, with a newline at the end."""
    return msgspec.json.format(utf8.to_json(plan)) + b"\n"


def _model(config: configuration.Config, facts: ModelFacts) -> ModelPlan:
    asked = config.model.expected_parameters
    if not facts.parameters:
        return ModelPlan(asked=asked)
    ranks = config.parallel.ranks
    shapes = [parameter.shape for parameter in facts.parameters]
    built = parameters.built(shapes)
    return ModelPlan(
        asked=asked,
        built=built,
        held=parameters.held(shapes, ranks),
        flat_shard=parameters.flat_shard(built, ranks),
    )


def _memory(config: configuration.Config, devices: DeviceFacts, gpu: str | None) -> MemoryPlan:
    plan = memory.predict(config)
    assert plan.per_gpu_gib.total is not None
    where = fit.asked(gpu) if gpu else fit.given(config, devices)
    if where is not None:
        plan.gpu, plan.capacity_gib = where
        plan.fits = plan.per_gpu_gib.total <= where.gib
    return plan


def _verdict(found: list[Problem], model: ModelPlan, data: DataPlan) -> Verdict:
    severities = {problem.severity for problem in found}
    if "error" in severities:
        return "error"
    # What nobody could look at is not known to be good.
    if "warning" in severities or data.num_shards is None or model.built is None:
        return "warning"
    return "ok"
