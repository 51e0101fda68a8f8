"""Write the flags in which the sides differ, with their experiments, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bot.core.flag_changes import TriedFlag
from bot.show.blocks import Phrase, code, phrase
from bot.show.changes import flag_code, flag_words
from bot.show.escape import clean, clip
from bot.show.facts import NAME_LIMIT
from bot.show.filters import signed
from bot.show.proofs import STATUS_WORDS, changed_noun, undone_words

_REASON = 200


def tried_flag_lines(flags: Sequence[TriedFlag]) -> Iterator[Phrase]:
    """Yield each difference of flags with the result of its experiment."""
    for row in flags:
        trial = row.tried
        if trial.is_experiment:
            yield tried_flag_words(row)
            continue
        flag = flag_words(((row.removed, row.added),))
        if trial.only:
            yield phrase(
                flag,
                " · the only difference in its builds, so it makes all their changes",
            )
        else:
            status = STATUS_WORDS[trial.status]
            yield phrase(flag, f" · {status}: ", clip(clean(trial.why), _REASON))


def tried_flag_words(row: TriedFlag) -> Phrase:
    """Return the result of an experiment.

    An example is ``proved: without `--x`, 97 % of the growth disappears (+120 B …)``.
    """
    trial = row.tried
    moved_bytes = trial.moved_bytes or 0
    restored_bytes = trial.restored_bytes or 0
    if moved_bytes < 0:
        restored_bytes = -restored_bytes
    condition = "with "
    if not row.removed:
        condition = "without "
    effect = undone_words(
        ",",
        restored_bytes,
        moved_bytes=abs(moved_bytes),
        noun=changed_noun(moved_bytes),
    )
    result = phrase(
        f"{STATUS_WORDS[trial.status]}: {condition}",
        flag_code(row.removed or row.added),
        effect,
    )
    build = phrase(
        code(clip(trial.model, NAME_LIMIT)),
        " on ",
        code(clip(trial.target, NAME_LIMIT)),
    )
    return phrase(result, f" ({signed(moved_bytes)} of ", build, ")")


def is_only_flag(flags: Sequence[TriedFlag]) -> bool:
    """Return whether one flag is the only difference between the sides."""
    return len(flags) == 1 and flags[0].tried.only
