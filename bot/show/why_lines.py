"""What is said of why: root causes, which of them is a cell's own, and the stories of cells that fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from bot.core.explanation import UNATTRIBUTED, Example, LookedUp, RootCause, Suspect
from bot.show.alarms import shown_roots
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT, Facts
from bot.show.filters import UNKNOWN, amount, plural, sides, signed
from bot.show.page_addresses import cause_address, cell_address, dispatch_address
from bot.show.phrase import Phrase, Span, code, joined, phrase
from bot.show.selection import Limits, Listing, fair_in_order, listing
from bot.show.story import Room, Story, cause_words, story
from bot.show.text_tables import Line

_WHAT = 200
_TITLE = 100
_NAMES, _FEW = 3, 1


@dataclass(frozen=True, slots=True)
class WhyCell:
    """The story of one changed cell; the target's name is the short one."""

    model: str
    target: str
    story: Story


def roots(facts: Facts, limits: Limits) -> Listing[Line]:
    """The root causes with most bytes: those that hold nine tenths of them, or as many as there is room for.

    With `every` all that there is room for. The detail is each target's part where there are several, and the largest
    delta.
    """
    found = facts.report.root_causes
    lines = (
        Line(
            _root_said(facts, root),
            joined(_root_details(facts, root) if limits.details else _seen(root.seen), "; "),
            suspect_words(root.looked_up, root.suspects),
        )
        for root in found
    )
    return listing(islice(lines, shown_roots(facts, limits)), len(found), "root cause")


def held(facts: Facts, shown: Listing[Line]) -> str:
    """`4 of 9: 93 % of all bytes that moved`, growth and shrinking alike, as the share of each is; or empty."""
    shares = [root.share for root in facts.report.root_causes[: len(shown.items)] if root.share is not None]
    if not shown.more:
        return "in percent of all bytes that moved" if len(shares) > 1 else ""
    if not shares:
        return f"{len(shown.items)} of {shown.total}"
    return f"{len(shown.items)} of {shown.total}: {sum(shares) * 100:.0f} % of all bytes that moved"


def _root_said(facts: Facts, root: RootCause) -> Phrase:
    """What, cause, the net change, its share of all that moved, and where."""
    what = clean(root.what, _WHAT)
    address = cause_address(facts.report.root_causes.index(root) + 1)
    cause = "" if root.example.dispatch == "" and root.cause != "input" else f" ({cause_words(root.cause)})"
    if root.cause is None:
        what, cause = f"cause not known: {what}", ""
    models = _named((clip(model, NAME_LIMIT) for model in root.models), len(root.models), "model")
    targets = _named((facts.short[target] for target in root.targets), len(root.targets), "target")
    counted = f"{plural(root.dispatches, 'dispatch')} in " if root.dispatches else ""
    share = "" if root.share is None else f" ({root.share * 100:.0f} %)"
    size = f"{signed(root.total.net_bytes)}{share}"
    return phrase(Span(what, "strong", address), f"{cause} · {size} · {counted}", models, " on ", targets)


def _named(names: Iterable[str], count: int, noun: str) -> Phrase:
    return phrase(plural(count, noun)) if count > _FEW else joined([(code(name),) for name in names], ", ")


def _root_details(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    if abs(root.total.net_bytes) != root.total.absolute_bytes:
        yield phrase(f"{amount(root.total.absolute_bytes)} moved, growth and shrinking alike")
    if len(root.by_target) > 1:
        yield joined(_by_target(facts, root), ", ")
    if root.total.deltas > 1 or root.example.dispatch:
        yield phrase("largest: ", _example(facts, root.example), *_by_pass(root))
    yield from _seen(root.seen)


def _by_pass(root: RootCause) -> Phrase:
    """What the passes make of another configuration: ``, after `iree-llvmcpu-peel` 57 operations more``."""
    if root.cause != "strategy" or root.passed is None:
        return ()
    return phrase(", after ", (code(clean(root.passed.name)),), f" {clean(root.passed.words(_NAMES))}")


def suspect_words(known: LookedUp | None, suspects: Sequence[Suspect]) -> Phrase:
    """Which commits may have done it, never which did; titles are a stranger's text."""
    if known is None:
        return ()
    files, own = _files(known.files), _files(known.this_pull_request)
    parts = [phrase("this pull request changes ", own)] if own else []
    if suspects:
        named = [(code(one.commit[:10], one.url),) for one in suspects]
        of = f", one of {known.commits} commits to " if known.commits != 1 else ", the only commit to "
        parts.append(phrase("suspect: ", named[0], " ", code(clip(clean(suspects[0].title), _TITLE)), of, files))
        parts += [phrase("then ", joined(named[1:], ", "))] if named[1:] else []
    elif known.commits is not None:
        touched = f"{plural(known.commits, 'commit')} touched " if known.commits else "no commit touched "
        unsaid = ", and none speaks of it" if known.commits and not known.note else ""
        parts.append(phrase(touched, files, f" between the two{unsaid}"))
    return joined([*parts, *([phrase(clean(known.note))] if known.note else [])], "; ")


def _files(paths: Sequence[str]) -> Phrase:
    """The name of the first, and how many more there are."""
    more = f" and {plural(len(paths) - 1, 'file')} more" if paths[1:] else ""
    return phrase(code(clip(paths[0].rpartition("/")[2], NAME_LIMIT)), more) if paths else ()


def _seen(steps: Sequence[str] | None) -> Iterator[Phrase]:
    """In which steps of a pin the same root cause stands; no more is claimed of one that is made of several."""
    if steps is None:
        return
    more = f" and {len(steps) - _NAMES} more" if len(steps) > _NAMES else ""
    first = "first seen in" if len(steps) == 1 else "in several steps:"
    yield phrase(f"{first} {', '.join(steps[:_NAMES])}{more}" if steps else "not seen as such in a single step")


def _by_target(facts: Facts, root: RootCause) -> Iterator[Phrase]:
    """Each target's part, largest first; one for those with the same: ``+1,675 B each on `cuda`, `rocm` ``."""
    alike: dict[tuple[int, int], list[str]] = {}
    for name, sum_ in sorted(root.by_target.items(), key=lambda found: -found[1].absolute_bytes):
        alike.setdefault((sum_.net_bytes, sum_.deltas), []).append(name)
    for (net_bytes, deltas), names in alike.items():
        each = " each" if len(names) > 1 else ""
        counted = f" in {deltas:,}" if root.dispatches else ""
        where = joined([(code(facts.short[name]),) for name in names], ", ")
        yield phrase(f"{signed(net_bytes)}{each}{counted} on ", where)


def _example(facts: Facts, one: Example) -> Phrase:
    place = phrase(" in ", code(clip(one.component, NAME_LIMIT))) if one.component not in ("", UNATTRIBUTED) else ()
    cell = phrase(
        " of ", code(clip(one.key.model, NAME_LIMIT), cell_address(one.key)), " on ", code(facts.short[one.key.target])
    )
    if not one.dispatch:
        return phrase(signed(one.change_bytes), cell)
    size = sides(one.base_bytes, one.head_bytes)
    shown = signed(one.change_bytes) if UNKNOWN in size or one.base_bytes == one.head_bytes else size
    told = facts.report.explanations.get(one.key)
    once = " (one compile of each side)" if told and told.first_compiles else ""
    address = example_address(facts, one)
    return phrase(code(clip(one.dispatch, NAME_LIMIT), address), place, cell, f" {shown}{once}")


def example_address(facts: Facts, one: Example) -> str:
    """That of its dispatch; empty where it is none, or none of those that are known to have changed."""
    told = facts.report.explanations.get(one.key)
    named = (delta.head or delta.base for delta in (told.dispatches if told else ()) if delta.name == one.dispatch)
    return next((dispatch_address(one.key, known.executable) for known in named if known), "")


def whys(facts: Facts, limits: Limits) -> Listing[WhyCell]:
    """The changed cells that it is known of why, the alarming first; models take turns."""
    explained, most = facts.report.explanations, limits.dispatches
    compiled = [d.key for d in facts.report.deltas if d.key in explained and d.state in ("changed", "same")]
    worst = [one.key for one in facts.report.verdict.news]
    known = set(compiled)
    keys = [key for key in dict.fromkeys([*worst, *compiled]) if key in known]
    room = Room(most, min(8, most), min(4, most), 1 + limits.details, limits.diff_lines)
    shown = []
    for key in fair_in_order(keys, lambda key: key.model, limits.whys):
        head = facts.deltas[key].head
        told = story(explained[key], head.families if head else (), room, facts.backends.get(key.target, ""))
        shown.append(WhyCell(clip(key.model, NAME_LIMIT), facts.short[key.target], told))
    return listing(shown, len(keys), "explained build")
