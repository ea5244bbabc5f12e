"""Trains a BitTransformerLM on text, as one rank of several. Launched by path, by torchrun:

    python -m torch.distributed.run --standalone --nproc-per-node W --max-restarts 0 train.py

BITWATCH_DIR names the run directory and BITWATCH_ATTEMPT the attempt in it, whose
config.toml says everything else. Reads from top to bottom: who we are, the model, the data,
where an earlier attempt left off, then the loop.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # this folder, whose inspect.py would hide Python's own

from trainer import lifeline

if __name__ == "__main__":
    lifeline.hold_rank()
if __name__ == "__mp_main__":  # a dataloader worker under spawn imports this file again
    lifeline.hold_worker()

import contextlib
import os
import time
import traceback
from typing import TYPE_CHECKING

from bitwatch import config as configuration
from bitwatch.plan import resume
from bitwatch.record import events
from trainer import telemetry
from trainer.data import lost
from trainer.failures import Failed, sentence

if TYPE_CHECKING:
    from trainer.parallel import Place
    from trainer.saving import Saver


LAST_WORDS_S = 10.0  # that a failing rank waits for the others to write theirs


def train(
    config: configuration.Config, log: telemetry.Telemetry, place: Place, saver: Saver
) -> tuple[events.EndState, str]:
    """Trains to the last step ("done"), or to where everyone agreed to stop ("stopped").

    The text names the signal to this rank for which they did, if there was one. Raises Failed
    when all ranks end for the same cause, any other exception when this one cannot go on.
    """
    import torch

    from trainer import agreement, bits, checkpoint, collector, evaluate, optim, parallel
    from trainer import model as modelling
    from trainer.data import state
    from trainer.data.state import LoaderState
    from trainer.data.text import Text
    from trainer.health import Health, NotFinite, Outcome, Outliers
    from trainer.leaving import Leaving

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
    if config.parallel.compile:
        parallel.compile_blocks(model)
    parallel.shard(model, place, config.parallel, config.run.seed)
    parallel.seed_rank(config.run.seed, place)
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
    parity = config.model.parity
    sequence_bits = sequence_bytes * bits.per_byte(parity)
    micro_batch = config.train.micro_batch
    accumulation = config.train.batch // (ranks * micro_batch)
    text = Text(config, place, log, micro_batch * accumulation)
    held_out = text.held_out()
    validation = evaluate.read(held_out, config.train.eval_steps, place) if held_out else None

    # -- Where an earlier attempt left off -------------------------------------------------
    checkpoints = log.run.checkpoints(config.checkpoint.folder)
    found, passed_over = checkpoint.load(checkpoints, place, model, optimizer)
    for why in passed_over:
        log.write(events.Note(rank=rank, text=why, severity="warning"))
    if not found:
        log.starts_anew(checkpoints, passed_over)
    at = found or checkpoint.Counters(text=LoaderState(order=text.order))
    if found:
        at.text, lost = state.go_on(
            at.text,
            text.order,
            exact=resume.is_exact(config),
            new_epoch=log.allows_new_epoch(),
        )
        log.resumed(at.step, at.text.epoch, lost)
    log.step = at.step

    # -- What to tell, and to whom -----------------------------------------------------------
    outliers = Outliers(place.device, at.outliers) if config.train.skip_outliers else None
    health = Health(place, config.train.on_not_finite, outliers, at.skipped)
    peak = parallel.peak_flops(place.gpu_name)
    rates = telemetry.Rates(
        tokens_a_step=config.train.batch * sequence_bits,
        bits_a_byte=bits.per_byte(parity),
        flops_a_token=modelling.flops_per_token(config.model, built, sequence_bits),
        peak_flops=peak * ranks if peak else None,
    )
    window = telemetry.Window()
    stop_file = log.run.stop(log.attempt)
    leaving = Leaving(stop_file, log.peers(ranks))

    def due(step: int, every: int) -> bool:
        return bool(every) and step % every == 0

    def look_ahead(step: int) -> tuple[torch.Tensor | None, agreement.Pending]:
        """This rank's sequences of step `step`, and the word about it, said but not heard."""
        began = time.monotonic()
        sequences = data.take()
        window.data_s += time.monotonic() - began
        word = agreement.Word(
            no_data=sequences is None,
            stop=leaving.asked or (first and os.path.exists(stop_file)),
            evaluate=first and (due(step, config.train.eval_every) or step == config.train.steps),
            data_error=bool(data.trouble),
            save_failed=bool(saver.trouble),
        )
        return sequences, agreement.say(word, place.control)

    def report(outcome: Outcome) -> None:
        """Writes the step record, of the means since the last one, and begins anew."""
        nonlocal window
        allocated, reserved, peak = parallel.memory_mib(place.device)
        told = window.told(
            rates,
            rank=rank,
            step=outcome.step,
            tokens=at.tokens - (at.step - outcome.step) * rates.tokens_a_step,
            learning_rate=optim.learning_rate(outcome.step, config.train),
            grad_norm=outcome.grad_norm,
            allocated_mib=allocated,
            reserved_mib=reserved,
            peak_mib=peak,
            skipped=health.skipped,
        )
        log.write(told)
        leaving.steps_take(told.step_s or 0.0)
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
        result = evaluate.evaluate(model, validation, place, at.step, parity)
        window.paused_s += result.seconds
        if first:
            log.write(result)
        log.phase("train")

    def save() -> None:
        """Begins to; training stands still only while this moment of it is copied."""
        log.phase("checkpoint", f"step {at.step}")
        at.skipped = health.skipped
        at.outliers = health.outliers.kept() if health.outliers else []
        window.paused_s += saver.begin(model, optimizer, at)

    def keep_what_was_learned() -> None:
        save()
        data.close()
        saver.wait()
        saver.tell(log.write)

    # -- The loop --------------------------------------------------------------------------
    end: events.EndState = "done"
    started, cause = at.step, ""
    data = text.feed(at.text.epoch, at.text.position)
    log.phase("compile" if config.parallel.compile else "train")
    collector.hold()
    if at.step < config.train.steps:
        sequences, pending = look_ahead(at.step + 1)

    while at.step < config.train.steps:
        step = at.step + 1

        # Is there something to compute, on every rank?
        word = pending.heard()
        window.wait_s += pending.waited_s
        if word.data_error:
            said = agreement.gather(data.trouble, place.control)
            keep_what_was_learned()
            raise Failed(agreement.by_rank("data", said))
        if word.save_failed:
            saver.fail()
        if word.stop:
            end, cause = "stopped", leaving.cause()
            leaving.heard()
            break
        if word.no_data:
            if not at.text.position:
                raise Failed(
                    f"data: epoch {at.text.epoch} holds less than one batch for some rank "
                    f"({micro_batch * accumulation} sequences of {sequence_bytes} bytes); use "
                    "more text, fewer ranks, or a smaller batch"
                )
            log.write(text.end_of_epoch(at.text, at.step, data))
            data.close()
            saver.wait()  # its thread may hold locks that a worker, forked now, would inherit
            at.text = LoaderState(epoch=at.text.epoch + 1, order=text.order)
            data = text.feed(at.text.epoch)
            sequences, pending = look_ahead(step)
            continue
        assert sequences is not None

        # Gradients of the whole batch: summed over the ranks with the last micro-batch only.
        loss = torch.zeros((), device=place.device)
        blocks = sequences.to(place.device, non_blocking=True).split(micro_batch)
        for number, block in enumerate(blocks, 1):
            parallel.sum_gradients(model, number == accumulation)
            share = modelling.nats_per_bit(model, bits.from_bytes(block, parity)) / accumulation
            share.backward()
            loss += share.detach()

        # The next step's data, while a GPU still computes this one.
        evaluate_now = word.evaluate
        if step < config.train.steps:
            sequences, pending = look_ahead(step + 1)

        # One update, unless a loss or gradient somewhere is not finite.
        parts = optim.gradients(model)
        norm, bad = health.judge(step, loss, optim.square_sum(parts))
        window.wait_s += health.waited_s
        optim.clip(parts, norm, config.train.clip)
        optim.set_learning_rate(optimizer, optim.learning_rate(step, config.train))
        optimizer.found_inf = bad  # type: ignore[attr-defined]  # read by the fused AdamW
        optimizer.step()
        optimizer.zero_grad()

        # What became of it. Waits for the GPU only when there is something to tell or keep.
        at.step, at.tokens = step, at.tokens + rates.tokens_a_step
        at.text.position += config.train.batch
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
            if config.parallel.compile:
                log.phase("train")
        if evaluate_now:
            score()
        if keep and not last:
            save()
            log.phase("train")
        saver.tell(log.write)
        collector.collect(step, pausing=evaluate_now or keep)

    # -- The end: everything that was learned is on the disk before anyone leaves ------------
    outcomes = settle(newest=True)
    if end == "stopped" and outcomes and 2 * window.steps >= config.train.log_every:
        report(outcomes[-1])
    if end == "stopped":
        log.phase("stop", f"asked to stop after step {at.step}")
    keep_what_was_learned()
    leaving.heard()  # from here on, another rank that is gone has only left first
    parallel.meet(place, config.parallel.start_timeout_s)
    parallel.end()
    return end, cause


def main() -> int:
    log = telemetry.begin()
    place, saver = None, None
    try:
        config = configuration.load(log.run.config(log.attempt))
        # Seconds of imports, now that this rank has said that it exists.
        from trainer import parallel, saving

        place = parallel.start(config.parallel)
        saver = saving.Saver(log.run.checkpoints(config.checkpoint.folder), place, config)
        end, cause = train(config, log, place, saver)
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk must not hide the cause
            traceback.print_exc()
        cause = str(error) if isinstance(error, configuration.ConfigError) else sentence(error)
        cause = lost.worker(error, log.run, log.attempt, log.rank) or cause
        if saver is not None and isinstance(error, Failed):
            # All ranks are here, and the save under way is of a time when all was well.
            with contextlib.suppress(Exception):  # its cause is told already, or is this one
                saver.wait()
            saver.tell(log.write)
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
    log.ended(end, cause)
    return 0


if __name__ == "__main__":
    sys.exit(main())
