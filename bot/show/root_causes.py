"""Root causes, a line each: what, how much, where, the largest example, and which commits may have done it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from bot.core.explanation import (
    EARLY_CAUSES,
    OTHER_TYPES,
    UNATTRIBUTED,
    Example,
    LookedUp,
    RootCause,
    Suspect,
)
from bot.core.parting import NOT_TRACED
from bot.core.program_proof import FORMS_REGIONS
from bot.show.addresses import cause_address, cell_address, dispatch_address
from bot.show.blocks import (
    Limits,
    Line,
    Listing,
    Phrase,
    Span,
    code,
    joined,
    listing,
    phrase,
    strong,
)
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import UNKNOWN, grew_and_shrank, plural, share, sides, signed
from bot.show.proofs import root_proof_words

_ENOUGH = 0.9
_WHAT, _TITLE = 200, 100
_REASONS = 2
_LEAST_SHARE = 0.01
_EMITS = re.compile(r"(\S+): ([\d,]+(?: to [\d,]+)?) (\S.*) (more|fewer)")
_FORMS = re.compile(rf"(\S+) ({FORMS_REGIONS}: .+)")
_TURNS = re.compile(r"(\w+) (.+?)(?:, with (.+))?")
_TILE_SIZES = frozenset(
    {
        "cache_parallel",
        "cache_reduction",
        "distribution",
        "reduction",
        "subgroup",
        "thread",
        "tile_sizes",
        "vector_common_parallel",
        "vector_inner_parallel",
        "vector_reduction",
        "workgroup",
    }
)
"""Settings of a dispatch that are lists of tile sizes."""


def leading(facts: Facts) -> int:
    """Return how many root causes, in order, hold nine tenths of the total change.

    All where nothing changed.
    """
    sums = accumulate(root.share or 0 for root in facts.roots)
    return next(
        (count for count, part in enumerate(sums, 1) if part >= _ENOUGH),
        len(facts.roots),
    )


def shown_roots(facts: Facts, limits: Limits) -> int:
    """How many root causes have a line: those that hold nine tenths of the bytes, or as many as there is room for."""
    return min(limits.causes, len(facts.roots) if limits.every else leading(facts))


def root_lines(facts: Facts, limits: Limits) -> Listing[Line]:
    """The root causes with most bytes: those that hold nine tenths of them, or as many as there is room for.

    With `every` all that there is room for. The detail is each target's part where
    there are several, and the largest delta.
    """
    roots = facts.roots
    lines = []
    for number, root in enumerate(roots[: shown_roots(facts, limits)], 1):
        detail = root_details(facts, root) if limits.details else ()
        said, address = (
            _root_said(facts, root=root, number=number, limits=limits),
            cause_address(number),
        )
        lines.append(
            Line(
                said=said,
                detail=detail,
                below=suspect_words(root.looked_up, root.suspects),
                address=address,
            )
        )
    return listing(lines, len(roots), "root cause")


def cause_title(what: str, cause: str | None, to: str = "") -> Phrase:
    """Return what changed, as an engineer would say it: "pass `cse` now emits 3 fewer `arith.addi` operations".

    `what`: the words of the root cause; `to`: the address that the first word leads to.
    """
    what = clean(what, _WHAT)
    if cause is None:
        return phrase(Span(f"Cause not known: {what}", "strong", to))
    formed = _FORMS.fullmatch(what)
    if formed:
        said = (Span("Pass", "strong", to), code(formed[1]), strong(formed[2]))
        return joined(((span,) for span in said), " ")
    emitted = _EMITS.fullmatch(what)
    if emitted:
        name, count, operation, way = emitted.groups()
        noun = "operation" if count == "1" else "operations"
        said = (strong(f"now emits {count} {way}"), code(operation), strong(noun))
        return joined(
            [(Span("Pass", "strong", to),), (code(name),), *((span,) for span in said)],
            " ",
        )
    named = what.removesuffix(f": {OTHER_TYPES}")
    if named != what:
        said = (
            Span("Pass", "strong", to),
            code(named),
            strong("now emits operations with other types"),
        )
        return joined(((span,) for span in said), " ")
    turned = _TURNS.fullmatch(what) if cause == "strategy" else None
    if turned:
        knob, values, others = turned.groups()
        if knob == "pipeline":
            return phrase(Span(f"Pipeline {values}", "strong", to), _also(others))
        noun = "Tile size" if knob in _TILE_SIZES else "Setting"
        said = (Span(noun, "strong", to), code(knob), strong(values))
        return phrase(joined(((span,) for span in said), " "), _also(others))
    edited = what.removesuffix(" itself changed") if cause == "input" else what
    if edited != what:
        return joined(
            (
                (span,)
                for span in (
                    Span("Model", "strong", to),
                    code(edited),
                    strong("was edited"),
                )
            ),
            " ",
        )
    return phrase(Span(f"{what[:1].upper()}{what[1:]}", "strong", to))


def _also(others: str | None) -> Phrase:
    """Return the other settings that changed in each of the dispatches.

    Empty where there are none.
    """
    if not others:
        return ()
    return phrase(
        ", with ", joined([(code(name),) for name in others.split(", ")], ", ")
    )


def _root_said(facts: Facts, root: RootCause, number: int, limits: Limits) -> Phrase:
    """Return what changed, the net change, its share of the total change, and where.

    A page counts dispatches.
    """
    title = cause_title(root.what, root.cause, cause_address(number))
    models = _named(
        (clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model"
    )
    targets = _named(
        (facts.short[target] for target in root.targets), len(root.targets), "target"
    )
    is_counted = root.dispatches and (limits.every or len(root.models) == 1)
    counted = f"{plural(root.dispatches, 'dispatch')} in " if is_counted else ""
    net = "" if abs(root.total.net_bytes) == root.total.absolute_bytes else " net"
    size = f"{signed(root.total.net_bytes)}{net}" + (
        "" if root.share is None else f" ({share(root.share)})"
    )
    traced = (
        f", {root.traced[0]:,} of {plural(root.dispatches, 'dispatch')} traced"
        if _is_shared(root)
        else ""
    )
    tried = _tried_words(facts, root)
    return phrase(
        title,
        f" · {size} · {counted}",
        models,
        " on ",
        targets,
        traced,
        f" · {tried}" if tried else "",
    )


def _tried_words(facts: Facts, root: RootCause) -> str:
    """Return what the experiments say of a root cause.

    Empty where the report has none, or it is no dispatch's code.
    """
    if not root.dispatches or not any(
        cause.proof.members for cause in facts.report.root_causes
    ):
        return ""
    passed = root.passed.name if root.passed else None
    words = root_proof_words(
        root.proof,
        what=root.what,
        parts=root.parts,
        pass_name=passed,
        dispatches=root.dispatches,
        total=root.total,
    )
    if not root.parts or passed is None or root.divided == root.dispatches:
        return words
    return f"{words} ({root.divided} of {plural(root.dispatches, 'dispatch')})"


def unexplained_words(facts: Facts) -> str:
    """Return `Not explained: 7 % of the total change (not traced)`.

    Empty where everything is explained.
    """
    shares = Counter[str]()
    for root in facts.unexplained:
        shares[clean(root.what, _WHAT).removeprefix("other code; ")] += root.share or 0  # type: ignore[assignment]
    total = sum(shares.values())
    if not total:
        return ""
    if len(shares) > 1:
        shares.pop(NOT_TRACED, None)  # it says less than the other reasons do
    reasons = [reason for reason, _ in shares.most_common(_REASONS)]
    more = (
        f" and {plural(len(shares) - _REASONS, 'other reason')}"
        if len(shares) > _REASONS
        else ""
    )
    part = share(total) if total >= _LEAST_SHARE else "less than 1 %"
    return f"Not explained: {part} of the total change ({'; '.join(reasons)}{more})."


def _is_shared(root: RootCause) -> bool:
    """Whether some of its dispatches have a pass that was printed for another target only."""
    return (
        root.cause in EARLY_CAUSES
        and root.passed is not None
        and root.traced[0] < root.dispatches
    )


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    return (
        phrase(plural(count, noun))
        if count > 1
        else joined([(code(name),) for name in names], ", ")
    )


def root_details(facts: Facts, root: RootCause) -> Phrase:
    """How much moved, each target's part, and the largest delta."""
    parts = []
    if abs(root.total.net_bytes) != root.total.absolute_bytes:
        parts.append(
            phrase(grew_and_shrank(root.total.net_bytes, root.total.absolute_bytes))
        )
    if len(root.by_target) > 1:
        parts.append(joined(_by_target(facts, root), ", "))
    if root.total.deltas > 1 or root.example.dispatch:
        parts.append(phrase("largest: ", _example(facts, root.example)))
    if _is_shared(root):
        alike = plural(root.dispatches - root.traced[0], "dispatch")
        parts.append(
            phrase(f"{alike} by the passes of another target with the same IR")
        )
    return joined(parts, "; ")


def suspect_words(known: LookedUp | None, suspects: Sequence[Suspect]) -> Phrase:
    """Which commits may have done it, never which did; titles are a stranger's text."""
    if known is None:
        return ()
    files, own = _files(known.files), _files(known.this_pull_request)
    parts = [phrase("this pull request changes ", own)] if own else []
    if suspects:
        named = [(code(suspect.commit[:10], suspect.url),) for suspect in suspects]
        of = (
            f", one of {known.commits} commits to "
            if known.commits != 1
            else ", the only commit to "
        )
        parts.append(
            phrase(
                "suspect: ",
                named[0],
                " ",
                code(clip(clean(suspects[0].title), _TITLE)),
                of,
                files,
            )
        )
        parts += [phrase("then ", joined(named[1:], ", "))] if named[1:] else []
    elif known.commits is not None:
        touched = (
            f"{plural(known.commits, 'commit')} touched "
            if known.commits
            else "no commit touched "
        )
        unsaid = ", and none mentions it" if known.commits and not known.note else ""
        parts.append(phrase(touched, files, f" between the two{unsaid}"))
    return joined([*parts, *([phrase(clean(known.note))] if known.note else [])], "; ")


def _files(paths: Sequence[str]) -> Phrase:
    """The name of the first, and how many more there are."""
    more = f" and {plural(len(paths) - 1, 'file')} more" if paths[1:] else ""
    return (
        phrase(code(clip(paths[0].rpartition("/")[2], NAME_LIMIT)), more)
        if paths
        else ()
    )


def _by_target(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    """Each target's part, largest first.

    One for those with the same: ``+1,675 B each on `cuda`, `rocm` ``.
    """
    alike: dict[tuple[int, int], list[str]] = {}
    for name, sum_ in sorted(
        root.by_target.items(), key=lambda one: -one[1].absolute_bytes
    ):
        alike.setdefault((sum_.net_bytes, sum_.deltas), []).append(name)
    for (net_bytes, deltas), names in alike.items():
        each = " each" if len(names) > 1 else ""
        counted = f" in {deltas:,}" if root.dispatches else ""
        where = joined([(code(facts.short[name]),) for name in names], ", ")
        yield phrase(f"{signed(net_bytes)}{each}{counted} on ", where)


def _example(facts: Facts, one: Example) -> Phrase:
    place = (
        phrase(" in ", code(clip(one.component, NAME_LIMIT)))
        if one.component not in ("", UNATTRIBUTED)
        else ()
    )
    model = code(clip(one.key.model, NAME_LIMIT), cell_address(one.key))
    cell = phrase(" of ", model, " on ", code(facts.short[one.key.target]))
    if not one.dispatch:
        return phrase(signed(one.change_bytes), cell)
    size = sides(one.base_bytes, one.head_bytes)
    shown = (
        signed(one.change_bytes)
        if UNKNOWN in size or one.base_bytes == one.head_bytes
        else size
    )
    explanation = facts.report.explanations.get(one.key)
    once = (
        " (one compile of each side)"
        if explanation and explanation.first_compiles
        else ""
    )
    address = example_address(facts, one)
    return phrase(
        code(clip(one.dispatch, NAME_LIMIT), address), place, cell, f" {shown}{once}"
    )


def example_address(facts: Facts, one: Example) -> str:
    """The address of an example's dispatch.

    Empty where it names none, or none that is known to have changed.
    """
    explanation = facts.report.explanations.get(one.key)
    deltas = explanation.dispatches if explanation else ()
    named = (delta.head or delta.base for delta in deltas if delta.name == one.dispatch)
    return next(
        (dispatch_address(one.key, known.executable) for known in named if known), ""
    )
