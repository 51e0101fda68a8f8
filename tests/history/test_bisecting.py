"""Which candidates stand between two ends, and the search: the right place, in as few looks as there can be."""

from __future__ import annotations

from math import ceil, log2
from pathlib import Path

import pytest
from fake_wheels import wheel_name
from hypothesis import given
from hypothesis import strategies as st
from replacing import replace
from report_factory import MODELS, TARGETS, cell, failed, with_metrics

from bot.core.bisecting import Judged, bracket, judged, values_of
from bot.core.snapshot import CellKey, CompileOutcome
from bot.core.spec import Places, release_in
from bot.errors import UsageError
from bot.study.candidates import candidates_of, expanded
from bot.system.cancel import Cancel

RELEASES = ("3.8.0", "3.9.0", "3.10.0", "3.11.0")


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A page of wheels, read by pip itself."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for release in (*RELEASES, "3.10.0rc20260101"):
        (tmp_path / wheel_name(release)).touch()
    return Places((str(tmp_path),))


def row(
    good: str, bad: str, *among: str, places: Places | None = None
) -> tuple[tuple[str, ...], bool]:
    specs, backward = candidates_of(
        good, bad=bad, among=among, places=places or Places(), cancel=Cancel()
    )
    return tuple(release_in(spec) or spec for spec in specs), backward


def test_between_releases_are_those_that_are_offered_either_way(
    offered: Places,
) -> None:
    assert row("3.8.0", "iree-base-compiler==3.11.0", places=offered) == (
        RELEASES,
        False,
    )
    assert row("3.11.0", "3.8.0", places=offered) == (RELEASES[::-1], True)
    assert row("3.9.0", "latest", places=offered) == (RELEASES[1:], False)
    assert row("3.9.0", "3.10.0rc20260101", places=offered) == (
        ("3.9.0", "3.10.0rc20260101"),
        False,
    )


def test_what_has_versions_is_ordered_by_them_however_it_is_named() -> None:
    assert row("3.8.0", "3.11.0", "3.10.0", "3.9.0", "3.12.0", "3.8.0") == (
        RELEASES,
        False,
    )
    assert row("3.11.0", "3.8.0", "3.9.0", "3.10.0") == (RELEASES[::-1], True)


def test_what_has_none_keeps_its_order_and_the_ends_cut_it(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{name}.json") for name in ("1", "2", "2²", "10", "11")]
    for name in names:
        Path(name).touch()
    assert expanded(str(tmp_path)) == names and expanded(str(tmp_path / "1*.json")) == [
        names[0],
        *names[3:],
    ]
    (tmp_path / "versions").mkdir()
    versions = [
        str(tmp_path / f"versions/{name}.json")
        for name in ("3.9.0", "3.10.0rc20260101", "3.10.0", "3.11.0")
    ]
    for name in versions:
        Path(name).touch()
    assert expanded(str(tmp_path / "versions")) == versions
    assert row(names[1], names[3], str(tmp_path)) == (tuple(names[1:4]), False)
    assert row(names[3], names[1], str(tmp_path)) == (tuple(names[1:4][::-1]), True)
    assert row("a.json", names[2], str(tmp_path)) == (("a.json", *names[:3]), False)
    assert row(names[2], "b.json", str(tmp_path)) == ((*names[2:], "b.json"), False)
    assert row("a.json", "b.json", names[3], names[0]) == (
        ("a.json", names[3], names[0], "b.json"),
        False,
    )


def test_wheels_of_another_platform_are_no_candidates(tmp_path: Path) -> None:
    (tmp_path / wheel_name("3.12.0", platform="win_amd64")).touch()
    for place in (tmp_path, tmp_path / "*.whl"):
        with pytest.raises(UsageError, match="whl for this machine"):
            expanded(str(place))


def test_builds_of_commits_share_a_version_and_keep_their_order(tmp_path: Path) -> None:
    commits = [
        f"{number}-{letters}" for number, letters in ((9, "b"), (10, "a"), (11, "c"))
    ]
    for commit in commits:
        (tmp_path / commit).mkdir()
        for python in ("cp310", "cp311", "cp313"):
            (tmp_path / commit / wheel_name("3.14.0.dev0", python=python)).touch()
    paths = expanded(str(tmp_path / "*" / "*.whl"))
    assert [Path(path).parent.name for path in paths] == commits, (
        "one wheel of each commit"
    )
    assert row(paths[0], paths[2], *paths) == (tuple(paths), False)
    local = [
        str(tmp_path / wheel_name(f"3.14.0+{letters}")) for letters in ("b", "a", "c")
    ]
    for path in local:
        Path(path).touch()
    assert row(local[0], local[1], *local) == (
        tuple(local[:2]),
        False,
    ), "b is not newer than a"
    assert row(local[0], local[2], *local) == (tuple(local), False)


KEY = CellKey(MODELS[0], "vmvx")
CELL = cell(KEY, TARGETS["vmvx"])


class Row:
    """Candidates whose judgement is known; counts the looks."""

    def __init__(self, judgements: list[Judged]) -> None:
        self.told, self.looks = judgements, list[int]()

    def judge(self, place: int) -> Judged:
        self.looks.append(place)
        return self.told[place]


@given(st.lists(st.sampled_from(["good", "bad", "skipped"]), max_size=300))
def test_whatever_the_row_is_a_good_one_is_left_before_a_bad_one_and_only_skipped_ones_between(
    middle: list[Judged],
) -> None:
    row = Row(["good", *middle, "bad"])
    boundary = bracket(len(row.told), row.judge)
    assert (
        row.told[boundary.good] == "good"
        and row.told[boundary.bad] == "bad"
        and boundary.good < boundary.bad
    )
    assert {row.told[place] for place in range(boundary.good + 1, boundary.bad)} <= {
        "skipped"
    }
    assert len(row.looks) == len(set(row.looks)) and set(row.looks) <= set(
        range(1, len(row.told) - 1)
    )
    skipped = sum(row.told[place] == "skipped" for place in row.looks)
    assert len(row.looks) <= ceil(log2(len(middle) + 1)) + skipped


def test_values_that_disagree_are_skipped() -> None:
    assert [
        judged(values, 100)
        for values in ([100], [101], [99, 100], [101, 150], [99, 101])
    ] == [*("good", "bad", "good", "bad", "skipped")]


def test_what_has_no_value_says_why() -> None:
    assert values_of(None, CELL, "executables") == ((), "has no such build")
    assert values_of(failed(CELL, "error: no\nmore"), CELL, "executables") == (
        (),
        "failed: error: no",
    )
    unknown = replace(
        with_metrics(CELL, executables=None), reasons={"executables": "no IR"}
    )
    assert values_of(unknown, CELL, "executables") == ((), "no IR")
    flaky = replace(CELL, others=(CompileOutcome("failed"),))
    assert values_of(flaky, CELL, "executables") == (
        (),
        "non-deterministic: some compiles of it have no value",
    )


def test_what_another_assembler_made_is_not_held_against_it() -> None:
    good_cell, other_cell = (
        replace(with_metrics(CELL, sass_bytes=9), assembler=name)
        for name in ("ptxas 1", "ptxas 2")
    )
    assert values_of(good_cell, good_cell, "sass_bytes") == ((9,), "")
    values, reason = values_of(other_cell, good_cell, "sass_bytes")
    assert values == () and reason.startswith("not compared: ")
