"""Read a pushed commit from the measuring job, and compare it with its baseline.

The baseline is the one that was stored before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from msgspec import UNSET, structs

from bot.config.configuration import Config
from bot.core.report import Baseline, Report
from bot.core.snapshot import Snapshot
from bot.errors import InputError
from bot.explain.texts import Texts
from bot.github.base_side import older_note
from bot.github.baselines import Standing, stored, stored_before_push
from bot.github.measured import Handed, read_measured
from bot.github.opening import Opened, opened
from bot.github.services import Services
from bot.github.sides import pushed
from bot.github.suspected import suspected
from bot.store.entries import Store
from bot.store.ir_files import ir_file_of
from bot.study.comparison import reported

MEASURED = "code-size-measured"
"""The folder with the measured files, if the input `measured` names no other.

The job downloads them there.
"""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Push(NamedTuple):
    """A pushed commit."""

    snapshot: Snapshot
    # the nearest baseline of another commit before it; None without one
    before: Standing | None
    # the file with the IR that the snapshot names; empty where it names none
    ir: bytes = b""


def handed_over(services: Services) -> Handed:
    """Read what the measuring job of this run handed over.

    Raises the error that ended that job, if one did.
    """
    inputs = services.inputs
    return read_measured(
        services.at(inputs.measured or MEASURED), outcome=inputs.outcome
    )


def require_commit(snapshot: Snapshot, sha: str, side: str = "head") -> None:
    """Raise InputError for a snapshot of another commit."""
    if snapshot.source.sha != sha:
        problem = (
            f"is of commit {(snapshot.source.sha or 'unknown')[:10]}, but {sha[:10]}"
            " is needed"
        )
        raise InputError(problem, where=f"artifact {side}.json", hint="run it again")


@contextmanager
def opened_push(services: Services) -> Iterator[Opened]:
    """Check out the pushed commit.

    The file that the input `head` names is in the measuring job, and not here.
    """
    without_head = replace(services, inputs=replace(services.inputs, head=""))
    with opened(services, pushed(without_head)) as (_, head):
        yield head


def pushed_side(
    services: Services, store: Store, config: Config, handed: Handed
) -> Push | None:
    """Return the pushed commit as it was measured.

    None if there is nothing new to store: the nearest baseline has the same result, there
    is no baseline before the push, or the older one with this result is gone.

    A commit that takes a change back has the result of an older baseline, which the
    measuring job did not measure again. That baseline is then the commit's own, so that
    the next push is compared with it.

    Raises:
        InputError: the snapshot is of another commit, or `measured.json` has no digest.
    """
    sha = services.context.sha
    digest = handed.measured.digest
    if not _DIGEST.fullmatch(digest):
        raise InputError(
            "has no digest, so it cannot be stored",
            where="artifact measured.json",
            hint="run it again",
        )
    before = stored_before_push(services, store, config)
    if not handed.measured.standing:
        # only the job that stores knows who accepted, not the one that ran compilers
        snapshot = structs.replace(handed.sides["head"], accepted=UNSET)
        require_commit(snapshot, sha)
        return Push(snapshot, before, handed.ir)
    if before is None or before.entry.digest == digest:
        return None
    standing = next(
        stored(
            services,
            store=store,
            config=config,
            sha=sha,
            is_wanted=lambda entry: entry.digest == digest,
        ),
        None,
    )
    if standing is None:
        return None
    source = structs.replace(standing.snapshot.source, sha=sha)
    again = structs.replace(standing.snapshot, source=source, accepted=UNSET)
    try:
        ir = ir_file_of(store, standing.entry, again)
    except InputError as error:
        services.show.say(f"the IR of the older baseline is not stored: {error.line}")
        return Push(structs.replace(again, stored_ir=UNSET), before)
    return Push(again, before, ir)


def compared_with_before(
    services: Services, config: Config, push: Push, texts: Texts
) -> Report | None:
    """Compare a pushed commit with the baseline before it, and look up suspects.

    None without such a baseline.
    """
    if push.before is None:
        return None
    distance = push.before.distance - 1
    parent = services.git.parents(services.context.sha)[0]
    compared_with = Baseline(
        "parent of the pushed commit; stored snapshot", parent, distance
    )
    report = reported(
        config,
        base=push.before.snapshot,
        head=push.snapshot,
        baseline=compared_with,
        texts=texts,
    )
    report = suspected(report, services, config)
    if distance:
        report = structs.replace(report, notes=(older_note(distance), *report.notes))
    return report


def push_commits(services: Services, push: Push) -> tuple[str, ...]:
    """Return the commits of a push, the newest first.

    They are the first parents from the pushed commit to the one after the baseline
    before it.
    """
    distance = push.before.distance if push.before else 1
    sha = services.context.sha
    return (sha, *services.git.ancestors(sha, distance - 1))
