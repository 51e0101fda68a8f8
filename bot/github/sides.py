"""Name the two sides of an event: the commits, and the rule that chose them.

Nothing is checked out here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bot.core.spec import MOVING, release_of
from bot.errors import InputError, UsageError
from bot.github.services import Services
from bot.study.snapshot_files import is_snapshot
from bot.study.specs import named_file


@dataclass(frozen=True, slots=True)
class Wanted:
    """One side as an event names it."""

    rule: str  # how it was found, in words
    # the commit whose models and configuration are used; empty for a snapshot
    sha: str = ""
    # its compiler; None: the commit's own, as its configuration pins it
    spec: str | None = None
    snapshot: Path | None = None  # a file that is the side, measured earlier
    unknown: str = ""  # why this side's compiler cannot be known; empty where it can


def wanted_sides(services: Services) -> tuple[Wanted, Wanted]:
    """Return base and head of the event.

    The base is never a mix of the base branch's tip and the merge base.
    """
    context = services.context
    if context.queue is not None:
        base = Wanted("base of the merge queue", context.queue.base_sha)
        head = Wanted("commit of the merge queue", context.sha)
        return _named_sides(services, base, head)
    if context.pull is None:
        return _sides_of_commit(services)
    parents = services.git.parents(context.sha)
    if len(parents) != 2 or parents[1] != context.pull.head_sha:
        raise InputError(
            "is not the merge commit of this pull request's head",
            where=f"GITHUB_SHA {context.sha[:10]}",
            hint="resolve conflicts with the base branch, or run it again",
        )
    head = Wanted(f"merge commit of #{context.pull.number}", context.sha)
    base = Wanted("first parent of the merge commit", parents[0])
    return _named_sides(services, base, head)


def _named_sides(
    services: Services, event_base: Wanted, event_head: Wanted
) -> tuple[Wanted, Wanted]:
    """Return the sides that a person named, and the event's in place of others."""
    inputs = services.inputs
    head = _named(services, text=inputs.head, side="head", event_side=event_head)
    base = _named(services, text=inputs.base, side="base", event_side=event_base)
    if base is None:
        base = event_base
        if head and head.spec:
            unknown = "the head compiler is an input of this run"
            base = replace(base, unknown=unknown)
    return base, head or event_head


def _sides_of_commit(services: Services) -> tuple[Wanted, Wanted]:
    """Return base and head of a run that is not about a pull request."""
    inputs = services.inputs
    this_commit = Wanted("the commit of this run", services.context.sha)
    named_head = _named(services, text=inputs.head, side="head", event_side=this_commit)
    head = named_head or this_commit
    base = _named(services, text=inputs.base, side="base", event_side=this_commit)
    if base is None:
        parents = services.git.parents(head.sha) if head.sha else ()
        if not parents:
            raise UsageError(
                "no base side",
                where="input base",
                hint="name a SPEC, a git ref or a snapshot",
            )
        base = Wanted("first parent of the head commit", parents[0])
    return base, head


def _named(
    services: Services, text: str, side: str, event_side: Wanted
) -> Wanted | None:
    """Return a side that a person named; None if nobody named one.

    The text names a snapshot, a release, a file or glob, else a git ref. `ref:`
    insists on a git ref.

    `event_side`: the side as the event has it. A compiler that is named is used
    with its models and configuration.
    """
    if not text:
        return None
    rule = f"input {side}: {text}"
    insisted = text.startswith("ref:")
    if is_snapshot(text):
        return Wanted(rule, snapshot=services.at(text))
    spec = "" if insisted else named_compiler(services, text)
    if is_snapshot(spec):
        return Wanted(rule, snapshot=Path(spec))
    if spec:
        return replace(event_side, rule=f"{event_side.rule}, {rule}", spec=spec)
    try:
        sha = services.git.resolve(text.removeprefix("ref:"))
    except InputError as error:
        raise UsageError(error.what, where=f"input {side}", hint=error.hint) from None
    if sha is None:
        hint = (
            "name a release, a file of this workspace, a snapshot.json, or a branch,"
            " tag or commit"
        )
        raise UsageError(
            f"{text!r} is neither a SPEC nor a git ref",
            where=f"input {side}",
            hint=hint,
        )
    return Wanted(rule, sha)


def named_compiler(services: Services, text: str) -> str:
    """Return the SPEC of a release, or of a file in the workspace.

    A glob may name the file. The SPEC is empty for anything else.
    """
    if not text or text in MOVING or release_of(text):
        return text
    path = named_file(str(services.at(text)))
    if Path(path).exists():
        return path
    return ""


def pushed(services: Services) -> Wanted:
    """Return the side that a push is about."""
    head = services.inputs.head
    return Wanted(
        "the pushed commit",
        services.context.sha,
        named_compiler(services, head) or head or None,
    )
