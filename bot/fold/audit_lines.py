"""List the builds of a fold audit that have no row, and all families, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.fold.audit import FAILED, FoldCell, FoldedFamily, LeftFamily
from bot.fold.audit_names import AuditNames
from bot.fold.audit_tables import has_row
from bot.show.blocks import NOTE_LIMIT, Phrase, phrase, strong
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import plural

_REASONS = {"nothing-to-fold": "Nothing to fold", FAILED: "Not measured"}


def other_build_lines(facts: AuditNames, names: int) -> list[Phrase]:
    """Return the builds without a row, by state and reason, the largest group first.

    A build that no compiler can measure is not among them: `code-size-bot targets`
    shows its reason.
    """
    groups: dict[tuple[str, str], list[FoldCell]] = {}
    for cell in facts.audit.cells:
        if not has_row(cell) and cell.state in _REASONS:
            note = clip(clean(cell.note), NOTE_LIMIT)
            groups.setdefault((cell.state, note), []).append(cell)
    ordered = sorted(
        groups.items(),
        key=lambda group: (list(_REASONS).index(group[0][0]), -len(group[1]), group[0]),
    )
    lines = []
    for (state, note), cells in ordered:
        reason = strong(_REASONS[state])
        where = facts.cells(cells, names)
        ending = f": {note}" if note else ""
        lines.append(
            phrase(reason, f" ({plural(len(cells), 'build')}): ", where, ending)
        )
    return lines


def family_lines(
    facts: AuditNames,
    families: Callable[[FoldCell], Sequence[FoldedFamily | LeftFamily]],
    names: int,
) -> list[Phrase]:
    """Return a line for each kind and reason of families, most executables first.

    A family of a model counts once, however many targets have it.
    """
    groups: dict[tuple[str, str], list[tuple[FoldCell, tuple[str, ...]]]] = {}
    for cell in facts.audit.cells:
        for family in families(cell):
            reason = ""
            if isinstance(family, LeftFamily):
                reason = f": {clip(clean(family.why), NOTE_LIMIT)}"
            group = groups.setdefault((reason, family.kind), [])
            group.append((cell, family.members))
    lines = []
    for (reason, kind), group in groups.items():
        distinct = {(cell.model, members) for cell, members in group}
        executables = set[tuple[str, str]]()
        for model, members in distinct:
            executables.update((model, member) for member in members)
        families_count = plural(len(distinct), "family")
        counts = f"{plural(len(executables), 'executable')} in {families_count}"
        cells = list({(cell.model, cell.target): cell for cell, _ in group}.values())
        where = facts.cells(cells, names // 2)
        kind_words = f" ({clip(clean(kind), NAME_LIMIT)})"
        line = phrase(strong(counts), f"{kind_words}{reason}: ", where)
        lines.append((-len(executables), reason, kind, line))
    lines.sort(key=lambda ranked: ranked[:3])
    return [line for *_, line in lines]
