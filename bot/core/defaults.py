"""Compare the defaults of two compilers' options, which can cause what no flag did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from bot.core.proof import Status, Words
from bot.core.record import Amount, Record

_MOST_TEXT = 300
MOST_CHANGED = 200


class OptionDefaults(Record, frozen=True):
    """The options of one compiler."""

    # option (`--iree-input-type`) → its default, as the compiler writes it; of those
    # that it reports
    defaults: Mapping[str, str]
    # every option that its help names, those without a reported default too
    named: frozenset[str]


class DefaultChange(Record, frozen=True):
    """One option whose default differs between the sides, or that one side reports."""

    option: str
    # base, head: the default; None if the compiler has the option and does not
    # report its default
    base: str | None
    head: str | None

    @property
    def is_known(self) -> bool:
        """Return whether both sides report a default, and these differ."""
        return self.base is not None and self.head is not None


Text = Annotated[str, msgspec.Meta(max_length=_MOST_TEXT)]


class DefaultTrial(Record, frozen=True, omit_defaults=True):
    """The experiment on one dispatch: head is compiled with base's default."""

    status: Status
    why: Words = ""  # why it was not tried; empty if it was
    # code bytes of the dispatch: head − base, and what base's default undoes of it;
    # None if they are not known
    moved_bytes: Amount | None = None
    restored_bytes: Amount | None = None
    # base's default as experiments found it; empty if base reports it, or if no
    # experiment found it
    base: Words = ""
    # model, target, dispatch: the largest change that the option may have caused; empty
    # if no dispatch of the option's backend changed
    model: Text = ""
    target: Text = ""
    dispatch: Text = ""


class TriedDefault(Record, frozen=True):
    """One changed default and its experiment: a row of `changed_defaults[]`."""

    option: Annotated[str, msgspec.Meta(pattern=r"\A--?[\w.-]{1,200}\Z")]
    # base, head: the default as the compiler writes it; None if the compiler does
    # not report it
    base: Words | None
    head: Words | None
    tried: DefaultTrial


TriedDefaults = Annotated[
    tuple[TriedDefault, ...], msgspec.Meta(max_length=MOST_CHANGED)
]


class ChangedDefaults(Record, frozen=True):
    """The differences between the options of two compilers; each list is sorted."""

    changed: tuple[DefaultChange, ...]  # both sides report a default
    # both sides have the option, and one does not report its default
    unreported: tuple[DefaultChange, ...]


def compare_defaults(base: OptionDefaults, head: OptionDefaults) -> ChangedDefaults:
    """Return the options whose defaults differ.

    Options that only one side has are left out, and so are those whose default neither
    side reports.
    """
    changed = list[DefaultChange]()
    unreported = list[DefaultChange]()
    for option in sorted(base.defaults.keys() | head.defaults.keys()):
        change = DefaultChange(
            option, base.defaults.get(option), head.defaults.get(option)
        )
        if change.base == change.head:
            continue
        if change.is_known:
            changed.append(change)
        elif _has(base, option) and _has(head, option):
            unreported.append(change)
    return ChangedDefaults(changed=tuple(changed), unreported=tuple(unreported))


def _has(side: OptionDefaults, option: str) -> bool:
    return option in side.defaults or option in side.named
