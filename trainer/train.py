"""Trains a BitTransformerLM on text, as one rank of several. Launched by path, by torchrun:

    python -m torch.distributed.run --standalone --nproc-per-node W --max-restarts 0 train.py

BITWATCH_DIR names the run directory and BITWATCH_ATTEMPT the attempt in it, whose
config.toml says everything else. Reads from top to bottom: who we are, the model, the data,
where an earlier attempt left off, then the loop.
"""

from __future__ import annotations

from trainer import lifeline

if __name__ == "__main__":
    lifeline.hold_rank()
if __name__ == "__mp_main__":  # a dataloader worker under spawn imports this file again
    lifeline.hold_worker()

import contextlib
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING

from bitwatch import config as configuration
from bitwatch.record import events
from trainer import telemetry
from trainer.failures import Failed, sentence

if TYPE_CHECKING:
    from trainer.parallel import Place


LAST_WORDS_S = 10.0  # that a failing rank waits for the others to write theirs


def train(config: configuration.Config, log: telemetry.Telemetry, place: Place) -> events.EndState:
    """Trains to the last step ("done"), or to where everyone agreed to stop ("stopped").

    Raises Failed when all ranks end for the same cause, any other exception when this one
    cannot go on.
    """
    import torch

    from trainer import agreement, bits, checkpoint, evaluate, optim, parallel
    from trainer import model as modelling
    from trainer.data.text import Text
    from trainer.health import Health, NotFinite, Outcome

    rank, ranks = place.rank, place.ranks
    first = rank == 0  # speaks where one voice is enough

    # -- Model: asked for, built, held ---------------------------------------------------
    with torch.device("meta"):
        model = modelling.build_model(config.model)
    asked, built = config.model.expected_parameters, modelling.count_parameters(model)
    if asked is not None and asked != built:
        raise Failed(
            f"model.expected_parameters is {asked:,}, but this model has {built:,}; nothing "
            "was trained: correct the shape or the promise"
        )
    parallel.shard(model, place, config.parallel.precision, config.run.seed)
    held = parallel.held_parameters(model, place)
    if first:
        log.write(
            events.ModelBuilt(
                asked=asked,
                built=built,
                held=held,
                ranks=ranks,
                device=place.device.type,
                gpu_name=place.gpu_name,
            )
        )
    optimizer = optim.build(model, config.train)

    # -- Text: to train on, and held out -----------------------------------------------------
    sequence_bytes = configuration.bytes_per_sequence(config.model)
    sequence_bits = sequence_bytes * bits.BITS
    micro_batch = config.train.micro_batch
    accumulation = config.train.batch // (ranks * micro_batch)
    text = Text(config, place, log, micro_batch * accumulation)
    held_out = text.held_out()
    validation = evaluate.read(held_out, config.train.eval_steps, place) if held_out else None

    # -- Where an earlier attempt left off -------------------------------------------------
    checkpoints = log.run.checkpoints(config.checkpoint.folder)
    found, passed_over = checkpoint.load(checkpoints, place, model, optimizer)
    for why in passed_over:
        log.write(events.Note(rank=rank, text=why))
    if log.attempt > 1 and not found:
        log.write(events.Note(rank=rank, text="no whole checkpoint: starting anew at step 0"))
    at = found or checkpoint.Counters()
    order = text.order()
    if found and order and at.text_order == order:
        note = f"resumed after step {at.step}, at the same place of the text"
        log.write(events.Note(rank=rank, text=note))
    elif found:
        at.epoch, at.epoch_began = at.epoch + 1, at.step
        log.write(
            events.Epoch(
                rank=rank,
                epoch=at.epoch,
                step=at.step,
                text=f"resumed after step {at.step}: the data starts a new epoch, and some text "
                "will be seen again",
            )
        )
    at.text_order = order
    log.step = at.step

    # -- What to tell, and to whom -----------------------------------------------------------
    health = Health(place, config.train.on_not_finite)
    peak = parallel.peak_flops(place.gpu_name)
    rates = telemetry.Rates(
        tokens_a_step=config.train.batch * sequence_bits,
        flops_a_token=modelling.flops_per_token(config.model, built, sequence_bits),
        peak_flops=peak * ranks if peak else None,
    )
    window = telemetry.Window()
    stop_file = log.run.stop(log.attempt)

    def due(step: int, every: int) -> bool:
        return bool(every) and step % every == 0

    def look_ahead(step: int) -> tuple[torch.Tensor | None, agreement.Pending]:
        """This rank's sequences of step `step`, and the word about it, said but not heard."""
        began = time.monotonic()
        sequences = data.take()
        window.data_s += time.monotonic() - began
        word = agreement.Word(
            no_data=sequences is None,
            stop=first and os.path.exists(stop_file),
            evaluate=first and (due(step, config.train.eval_every) or step == config.train.steps),
            data_error=bool(data.trouble),
        )
        return sequences, agreement.say(word, place.control)

    def report(outcome: Outcome) -> None:
        """Writes the step record, of the means since the last one, and begins anew."""
        nonlocal window
        allocated, reserved = parallel.memory_mib(place.device)
        log.write(
            window.told(
                rates,
                rank=rank,
                step=outcome.step,
                tokens=at.tokens - (at.step - outcome.step) * rates.tokens_a_step,
                learning_rate=optim.learning_rate(outcome.step, config.train),
                grad_norm=outcome.grad_norm,
                allocated_mib=allocated,
                reserved_mib=reserved,
                skipped=health.skipped,
            )
        )
        window = telemetry.Window()

    def settle(newest: bool) -> list[Outcome]:
        """What became of the steps; the newest may still be computed, and is waited for only
        if asked."""
        try:
            outcomes = health.outcomes(newest)
        except NotFinite as failure:
            window.losses = []
            report(failure.outcome)
            log.step = failure.outcome.step - 1
            raise
        window.losses += [outcome.loss for outcome in outcomes if outcome.taken]
        log.step = at.step
        return outcomes

    def score() -> None:
        if validation is None:
            return
        log.phase("evaluate")
        result = evaluate.evaluate(model, validation, place, at.step)
        window.paused_s += result.seconds
        if first:
            log.write(result)
        log.phase("train")

    def save() -> None:
        log.phase("checkpoint", f"step {at.step}")
        saved = checkpoint.save(checkpoints, place, model, optimizer, at, config)
        window.paused_s += saved.seconds
        if first:
            log.write(saved)

    # -- The loop --------------------------------------------------------------------------
    state: events.EndState = "done"
    started = at.step
    data = text.feed(at.epoch, (at.step - at.epoch_began) * config.train.batch)
    log.phase("train")
    if at.step < config.train.steps:
        sequences, pending = look_ahead(at.step + 1)

    while at.step < config.train.steps:
        step = at.step + 1

        # Is there something to compute, on every rank?
        word = pending.heard()
        if word.data_error:
            said = agreement.gather(data.trouble, place.control)
            raise Failed(agreement.by_rank("data", said))
        if word.stop:
            state = "stopped"
            break
        if word.no_data:
            if at.step == at.epoch_began:
                raise Failed(
                    f"data: epoch {at.epoch} holds less than one batch for some rank "
                    f"({micro_batch * accumulation} sequences of {sequence_bytes} bytes); use "
                    "more text, fewer ranks, or a smaller batch"
                )
            log.write(
                events.Epoch(
                    rank=rank,
                    epoch=at.epoch,
                    step=at.step,
                    text=f"epoch {at.epoch} ended at step {at.step} on all ranks: one had no "
                    "more data for a whole batch",
                )
            )
            data.close()
            at.epoch, at.epoch_began = at.epoch + 1, at.step
            data = text.feed(at.epoch)
            sequences, pending = look_ahead(step)
            continue
        assert sequences is not None

        # Gradients of the whole batch. They are summed over the ranks at every micro-batch:
        # keeping them unsharded until the last would cost 4 bytes a parameter on each rank.
        loss = torch.zeros((), device=place.device)
        for block in sequences.to(place.device, non_blocking=True).split(micro_batch):
            share = modelling.nats_per_bit(model, bits.from_bytes(block)) / accumulation
            share.backward()
            loss += share.detach()

        # The next step's data, while a GPU still computes this one.
        evaluate_now = word.evaluate
        if step < config.train.steps:
            sequences, pending = look_ahead(step + 1)

        # One update, unless a loss or gradient somewhere is not finite.
        parts = optim.gradients(model)
        norm, bad = health.judge(step, loss, optim.square_sum(parts))
        optim.clip(parts, norm, config.train.clip)
        optim.set_learning_rate(optimizer, optim.learning_rate(step, config.train))
        optimizer.found_inf = bad  # type: ignore[attr-defined]  # read by the fused AdamW
        optimizer.step()
        optimizer.zero_grad()

        # What became of it. Waits for the GPU only when there is something to tell or keep.
        at.step, at.tokens = step, at.tokens + rates.tokens_a_step
        window.steps += 1
        last = step == config.train.steps
        # A record of few steps would be noise: the first one after a resume is of as many
        # steps as any, wherever that falls.
        enough = window.steps >= config.train.log_every - 1
        first_ones = step in (1, started + config.train.log_every)
        tell = first_ones or (due(step, config.train.log_every) and enough) or last
        keep = due(step, config.checkpoint.every)
        outcomes = settle(newest=tell or keep or evaluate_now)
        if tell:
            report(outcomes[-1])
        if step == started + 1:
            parallel.expect_steps(place, config.parallel.step_timeout_s)
        if evaluate_now:
            score()
        if keep and not last:
            save()
            log.phase("train")

    # -- The end: everything that was learned is on the disk before anyone leaves ------------
    outcomes = settle(newest=True)
    if state == "stopped" and outcomes and 2 * window.steps >= config.train.log_every:
        report(outcomes[-1])
    if state == "stopped":
        log.phase("stop", f"asked to stop after step {at.step}")
    data.close()
    save()
    parallel.meet(place, config.parallel.start_timeout_s)
    parallel.end()
    return state


def main() -> int:
    log = telemetry.begin()
    place = None
    try:
        config = configuration.load(log.run.config(log.attempt))
        # Seconds of imports, now that this rank has said that it exists.
        from trainer import parallel

        place = parallel.start(config.parallel)
        state = train(config, log, place)
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk must not hide the cause
            traceback.print_exc()
        cause = str(error) if isinstance(error, configuration.ConfigError) else sentence(error)
        log.ended("failed", cause)
        if place is not None and isinstance(error, Failed):
            # All ranks are here: the first to leave has the others ended, perhaps in mid-word.
            with contextlib.suppress(RuntimeError):
                parallel.meet(place, LAST_WORDS_S)
        # Not by way of torch's exit handlers: they wait for ranks that may never answer.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(1)
    log.ended(state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
