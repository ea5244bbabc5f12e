"""Findings about the model: whether the target was changed, and what a printed count is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bitwatch.attach.said import Line, Said
from bitwatch.plan import parameters
from bitwatch.report import standard_model
from bitwatch.report.facts import Attempt, Story, of_line
from bitwatch.report.model import Finding
from bitwatch.report.standard_model import Shape, Share, number
from bitwatch.report.words import called, moment, quoted

NOT_IN_EVIDENCE = "by whom: not in the evidence"
BY_ITSELF = re.compile(
    r"fall(?:ing|s)? ?back|fell back|scal(?:e|es|ed|ing) (?:it |the model )?down|"
    r"(?:reduc|shrink|lower)\w* (?:the )?(?:model|layers|parameters|d_model|target)",
    re.IGNORECASE,
)
# Counts of parts of a model: "Embedding parameters: 4,096", "layer 3 has 50,358,272 parameters"
OF_A_PART = re.compile(
    r"\b(?:embeddings?|encoder|decoder|(?:lm[ _])?head|attention|attn|mlp|adapters?|lora|"
    r"(?:layer|block|stage|expert)s?[ _.#]?\d*)[\s:=(|]{1,4}(?:has |with )?(?:param|\d)",
    re.IGNORECASE,
)
EARLIER = 20  # attempts whose targets a count is compared with
NEXT_TARGET = (
    "Find out who changed the configuration between the two lines. With model.expected_parameters "
    "= {target} bitwatch refuses to train anything else."
)


def find(story: Story) -> Iterator[Finding]:
    if not story.mixed:
        yield from targets(story)
    yield from counts(story)


def targets(story: Story) -> Iterator[Finding]:
    """Each change of the target from one attempt to the next."""
    before: Attempt | None = None
    for attempt in story.attempts:
        now = number(attempt.target)
        if now is None:
            continue
        was = number(before.target) if before else None
        if before is not None and was is not None and target_changed(before, attempt):
            yield _changed(story, before, attempt, was, now)
        before = attempt


def target_changed(before: Attempt, after: Attempt) -> bool:
    """1.21B and 1,208,606,722 are one target."""
    if before.target is None or after.target is None:
        return False
    return not standard_model.same(before.target, after.target)


def _changed(story: Story, before: Attempt, after: Attempt, was: int, now: int) -> Finding:
    assert before.target is not None and after.target is not None
    lowered = now < was
    said = says_so(story, before, after)
    by = "the log says how" if said else NOT_IN_EVIDENCE
    evidence = [of_line(before.target.line), *map(of_line, said), of_line(after.target.line)]
    why = [
        f"{called(before).capitalize()} was to train {was:,} parameters, {called(after)} {now:,}: "
        f"{100 * abs(was - now) / was:.3g} % {'fewer' if lowered else 'more'}."
    ]
    if said:
        why.append(f'In between the log says: "{quoted(said[0].text)}".')
    else:
        why.append(
            "The log says that the target is another one, and not who or what changed it: a "
            "person, a script or the program."
        )
    shapes = shape(before, was), shape(after, now)
    if all(shapes) and shapes[0] != shapes[1]:
        why.append(f"By its number the first is {shapes[0]}, the second {shapes[1]}.")
    return Finding(
        id="target-lowered" if lowered else "target-raised",
        severity="error" if lowered else "warning",
        title=f"The target changed from {was:,} to {now:,} parameters at "
        f"{moment(after.target.line.t)}; {by}",
        evidence=evidence,
        why=" ".join(why),
        next=NEXT_TARGET.format(target=was),
    )


def says_so(story: Story, before: Attempt, after: Attempt) -> list[Line]:
    """Lines from one target to the other that say that the model is made smaller."""
    found = []
    for attempt in story.attempts[before.number - 1 : after.number]:
        for said in (*attempt.warnings, *attempt.problems):
            if BY_ITSELF.search(said.line.text) and _lies_between(said, before, after):
                found.append(said.line)
    return found[:3]


def _lies_between(said: Said, before: Attempt, after: Attempt) -> bool:
    assert after.target is not None
    end = after.target.line
    return said.line.source != end.source or said.line.number <= end.number


def shape(attempt: Attempt, target: int) -> Shape | None:
    return standard_model.shape_of(attempt.configuration, target)


def ranks_of(story: Story, attempt: Attempt) -> tuple[int | None, Said | None]:
    """How many ranks, with the line that says so: of the attempt, else of one before."""
    for one in reversed(story.attempts[: attempt.number]):
        if one.gpus:
            return one.gpus, one.hardware
    return None, None


def counts(story: Story) -> Iterator[Finding]:
    """What each printed count is: the target (nothing to say), a shard of it, a part of the
    model, or none of them. Where one is the target, the others are of its parts; where none is,
    the largest is the model's."""
    for attempt in story.attempts:
        if attempt.target is None or number(attempt.target) is None:
            continue
        each = {count: said for said in reversed(attempt.built) if (count := number(said))}
        whole = any(standard_model.same(said, attempt.target) for said in each.values())
        others = []
        for said in reversed(each.values()):
            if standard_model.same(said, attempt.target):
                continue
            part = bool(OF_A_PART.search(said.line.text))
            share, source = share_in(story, attempt, said)
            if share is not None and (source is not None or not (whole or part)):
                yield _is_share(story, attempt, said, share, source)
            elif not (whole or part or said.values.get("shard")):
                others.append(said)
        if others:
            largest = max(others, key=lambda said: number(said) or 0)
            if not _may_be_share(story, attempt, largest):
                yield _differs(story, attempt, largest)


def _may_be_share(story: Story, attempt: Attempt, said: Said) -> bool:
    """Whether it is about what a rank would hold of a target that is printed rounded."""
    count, target = number(said), number(attempt.target)
    ranks, _ = ranks_of(story, attempt)
    if not count or not target or not ranks or _both_exact(said, attempt):
        return False
    return abs(count * ranks - target) <= standard_model.ROUNDED * target


def _both_exact(said: Said, attempt: Attempt) -> bool:
    assert attempt.target is not None
    return standard_model.is_exact(said) and standard_model.is_exact(attempt.target)


def share_in(story: Story, attempt: Attempt, said: Said) -> tuple[Share | None, Said | None]:
    """What share of its target a count is, with the line that tells the ranks."""
    count, target = number(said), number(attempt.target)
    if count is None or target is None or not _both_exact(said, attempt):
        return None, None
    ranks, source = ranks_of(story, attempt)
    fits = shape(attempt, target)
    share = standard_model.share_of(count, target, ranks, fits)
    if share is None and ranks is not None:  # several nodes, or not all of the GPUs
        return standard_model.share_of(count, target, None, fits), None
    return share, source


def _is_share(
    story: Story, attempt: Attempt, said: Said, share: Share, source: Said | None
) -> Finding:
    count, target = number(said), number(attempt.target)
    assert count is not None and target is not None and attempt.target is not None
    evidence = [of_line(attempt.target.line), of_line(said.line)]
    why = [f"It is {share.words}. A count after wrapping looks like this: no third model."]
    if source is not None:
        evidence.insert(1, of_line(source.line))
    else:
        why.append(f"How many ranks there were the log does not say; {share.ranks} fit.")
    first = next((n for one in story.attempts if (n := number(one.target)) is not None), target)
    if first > target:
        right = parameters.flat_shard(first, share.ranks)
        why.append(f"A right run of {first:,} would have printed {right:,} there.")
    return Finding(
        id="count-is-shard",
        severity="info",
        title=f"{count:,} parameters is one rank's shard of the {target:,} on {share.ranks} ranks, "
        "not another model",
        evidence=evidence,
        why=" ".join(why),
        next="Count the model before it is wrapped; after FSDP1 a count is one rank's.",
    )


def _differs(story: Story, attempt: Attempt, said: Said) -> Finding:
    count, target = number(said), number(attempt.target)
    assert count is not None and target is not None and attempt.target is not None
    ranks, _ = ranks_of(story, attempt)
    up_to = f"up to {standard_model.MOST_RANKS:,}"
    why = f"It is not the target, and no share of it on {ranks or up_to} ranks."
    for earlier in story.attempts[max(0, attempt.number - 1 - EARLIER) : attempt.number - 1]:
        was = number(earlier.target)
        if was and was != target:
            share = standard_model.share_of(count, was, ranks, shape(earlier, was))
            if count == was or share:
                why += f" It fits the earlier target {was:,}" + (
                    f": {share.words}." if share else "."
                )
    exact = _both_exact(said, attempt)
    if not exact:
        why += " One of them is printed rounded, so it cannot be told what it is a share of."
    return Finding(
        id="parameters-differ",
        severity="error" if exact else "warning",
        title=f"The model has {count:,} parameters, and the target was {target:,}",
        evidence=[of_line(attempt.target.line), of_line(said.line)],
        why=why,
        next="Compare the model's configuration with the one that the target was counted from.",
    )
