"""bot.core.slow_growth: which older baseline growth is counted from, by dates and tags, and why it is not known."""

from __future__ import annotations

from json_texts import to_json
from replacing import replace
from strategies import plain_snapshot

from bot.core.history_totals import growth_since
from bot.core.slow_growth import (
    DAY_SECONDS,
    Line,
    acceptance_point,
    release_point,
    window_point,
)
from bot.core.snapshot import Accepted, Snapshot
from bot.core.snapshot_json import from_json

COMMITS = tuple(letter * 40 for letter in "abcde")  # the newest first
NEWEST, SECOND, THIRD, FOURTH, OLDEST = COMMITS


def line(*days: int, **releases: str) -> Line:
    """A branch whose commits were made so many days ago.

    `releases`: name of a commit's letter → tag.
    """
    times = {
        sha: (1_000 - ago) * DAY_SECONDS for sha, ago in zip(COMMITS, days, strict=True)
    }
    return Line(COMMITS, times, {letter * 40: tag for letter, tag in releases.items()})


def test_the_window_begins_at_the_newest_baseline_that_is_old_enough() -> None:
    branch = line(0, 10, 89, 90, 200)
    assert window_point(branch, COMMITS).sha == FOURTH
    assert window_point(branch, (NEWEST, OLDEST)).sha == OLDEST
    assert window_point(branch, (SECOND, OLDEST)).sha == OLDEST, (
        "from the newest baseline, not from the newest commit"
    )
    point = window_point(branch, (NEWEST, SECOND, THIRD))
    assert (point.sha, point.reason) == (
        "",
        "the baselines of the newest 5 commits cover only 89 of 90 days",
    )
    assert window_point(branch, (NEWEST, SECOND, THIRD), days=7).sha == SECOND


def test_a_commit_with_a_date_out_of_order_is_no_shorter_way_into_the_past() -> None:
    """Clocks of people differ: the order of the branch decides, from the first commit that is old enough."""
    branch = line(0, 120, 3, 91, 200)
    assert window_point(branch, COMMITS).sha == SECOND
    point = window_point(branch, (NEWEST, THIRD, FOURTH, OLDEST))
    assert (point.sha, point.what) == (
        THIRD,
        "90 days or more before the newest baseline",
    ), "not 3 days, which its date says"


def test_a_release_without_a_baseline_takes_the_nearest_one_before_it() -> None:
    branch = line(0, 1, 2, 3, 4, b="v1.3", e="v1.2")
    assert release_point(branch, COMMITS).what == "v1.3"
    older = release_point(branch, (NEWEST, FOURTH, OLDEST))
    assert (older.sha, older.what) == (FOURTH, "2 commits before v1.3")
    assert release_point(branch, (NEWEST, THIRD)).what == "1 commit before v1.3"
    assert (
        release_point(branch, (NEWEST,)).reason
        == "no baseline is stored for v1.3 or a commit before it"
    )
    assert "no tag of a release" in release_point(line(0, 1, 2, 3, 4), COMMITS).reason


def side(size_bytes: int) -> Snapshot:
    snapshot = plain_snapshot(("bert", "vmvx", "ok"))
    return replace(
        snapshot,
        cells=tuple(
            replace(c, metrics={**c.metrics, "artifact_bytes": size_bytes})
            for c in snapshot.cells
        ),
    )


def test_an_acceptance_is_stored_with_a_baseline_and_left_out_where_there_is_none() -> (
    None
):
    plain = side(100)
    accepted = replace(plain, accepted=Accepted("alice", "needed for <b>"))
    assert "accepted" not in to_json(plain) and from_json(to_json(plain)) == plain
    assert from_json(to_json(accepted)) == accepted
    point = acceptance_point(
        [
            (NEWEST, plain),
            (SECOND, accepted),
            (THIRD, replace(plain, accepted=Accepted("bob"))),
        ]
    )
    assert (point.sha, point.what) == (SECOND, "accepted by alice: needed for <b>")
    assert (
        "no acceptance is recorded in the newest baseline"
        in acceptance_point([(NEWEST, plain)]).reason
    )


def test_growth_is_head_minus_base_and_nothing_without_a_baseline() -> None:
    point = window_point(line(0, 1, 2, 100, 200), COMMITS)
    growth = growth_since(point, side(100), side(130))
    grown = growth.metrics["artifact_bytes"]
    assert (grown.base, grown.head, grown.builds, growth.reason) == (100, 130, 1, "")
    unknown = growth_since(point, None, side(130))
    assert (unknown.base, unknown.metrics, unknown.reason) == (
        None,
        {},
        "the baseline cannot be read",
    )
    other_snapshot = plain_snapshot(("vit", "vmvx", "ok"))
    assert (
        growth_since(point, other_snapshot, side(130)).metrics["artifact_bytes"].base
        is None
    ), "no build in both"
