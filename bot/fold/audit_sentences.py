"""Say in sentences what folding saves, and which builds the sums cover."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.fold.audit import FOLDED, FoldAudit, FoldCell
from bot.fold.audit_figures import (
    covered_sum,
    folded_percent,
    measured_pairs,
    sum_words,
)
from bot.fold.audit_names import AuditNames
from bot.show.blocks import NOTE_LIMIT, Phrase, Span, code, phrase, strong
from bot.show.escape import clean, clip
from bot.show.filters import plural

_NAMED = 6


def audit_sentences(facts: AuditNames) -> Iterator[Phrase]:
    """Yield what a reader of no table should know; the first is the headline."""
    audit = facts.audit
    differing = []
    summed = []
    for cell in audit.cells:
        if cell.state == FOLDED and cell.equal is False:
            differing.append(cell)
        elif cell.state == FOLDED:
            summed.append(cell)
    is_folded = bool(differing or summed)
    yield _headline(summed, len(audit.cells), bool(differing))
    if summed:
        yield _outputs_words(summed)
    if differing:
        noun = "more build" if summed else "build"
        yield phrase(
            strong(f"⚠️ outputs differ in {plural(len(differing), noun)}"),
            ", not counted here: ",
            facts.cells(differing, _NAMED),
            ".",
        )
    yield from _regions_words(audit, is_folded)
    if is_folded:
        yield _rule_words(audit)
    compiler = _compiler_words(audit)
    if is_folded:
        compiler = phrase(
            compiler, " The command of each folded build is in fold.json."
        )
    yield compiler


def _headline(summed: Sequence[FoldCell], count: int, is_wrong: bool) -> Phrase:
    if not summed:
        result = "nothing was folded"
        if is_wrong:
            result = "every fold changed the outputs"
        return phrase(strong(f"Fold audit: {result} in {plural(count, 'build')}"), ".")
    sizes = covered_sum([cell.artifact_bytes for cell in summed], "bytes")
    counts = covered_sum([cell.executables for cell in summed], "count")
    return phrase(
        strong(f"Fold audit: {len(summed):,} of {plural(count, 'build')} folded"),
        f": artifacts {sizes}, executables {counts}.",
    )


def _outputs_words(cells: Sequence[FoldCell]) -> Phrase:
    """Return how many of the folded builds have equal outputs, and what these save."""
    equal = [cell for cell in cells if cell.equal is True]
    if not equal:
        return phrase(
            "Outputs and run time are unknown: no compared output proves anything."
        )
    unknown = ""
    if len(equal) < len(cells):
        unknown = f" {len(cells) - len(equal):,} not known."
    sizes = measured_pairs(cell.artifact_bytes for cell in equal)
    return phrase(
        strong(f"Outputs equal in {plural(len(equal), 'build')}"),
        f": {sum_words(sizes, 'bytes')}.{unknown}",
    )


def _regions_words(audit: FoldAudit, is_folded: bool) -> Iterator[Phrase]:
    """Yield the share of regions that is folded away, if any model's is known."""
    models = 0
    regions = 0
    today = 0
    after = 0
    for model in audit.models:
        if model.regions is None or model.today is None or model.folded is None:
            continue
        models += 1
        regions += model.regions
        today += model.today
        after += model.folded
    if not models:
        return
    scope = f"Of {plural(regions, 'dispatch region')} of {plural(models, 'model')}"
    with_folding: Phrase = ()
    if is_folded:
        with_folding = phrase(
            ", and ", strong(folded_percent(regions, after)), " with folding"
        )
    share = folded_percent(regions, today)
    yield phrase(f"{scope}, {share} are folded away today", with_folding, ".")


def _rule_words(audit: FoldAudit) -> Phrase:
    """Return which folds were kept, and where they ran."""
    rule = "Every fold that saves bytes was kept, even if it is slower."
    if audit.max_slowdown is not None:
        rule = (
            f"Folds that make a model more than {audit.max_slowdown * 100:g} % slower"
            " were left out."
        )
    if not audit.machine:
        return phrase(rule)
    return phrase(rule, " Run on ", _audit_code(audit.machine), ".")


def _compiler_words(audit: FoldAudit) -> Phrase:
    """Return `IREE 3.13.0 (SPEC), flags --x.`."""
    compiler = audit.compiler
    parts: list[str | Span] = ["IREE ", _audit_code(compiler.version)]
    if compiler.spec:
        parts += [" (", _audit_code(compiler.spec), ")"]
    if audit.flags:
        parts += [", flags ", _audit_code(" ".join(audit.flags))]
    return phrase(*parts, ".")


def _audit_code(text: str) -> Span:
    return code(clip(clean(text), NOTE_LIMIT))
