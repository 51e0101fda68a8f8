"""Which candidates stand between two, in which order, and which end is the newer one."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_wheels import wheel_name

from bot.core.spec import Places
from bot.errors import UsageError
from bot.study.bisect import expanded, row_of
from bot.system.processes import Cancel

RELEASES = ("3.8.0", "3.9.0", "3.10.0", "3.11.0")


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A page of wheels, read by pip itself."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for release in (*RELEASES, "3.10.0rc20260101"):
        (tmp_path / wheel_name(release)).touch()
    return Places((str(tmp_path),))


def row(good: str, bad: str, *among: str, places: Places | None = None) -> tuple[tuple[str, ...], bool]:
    found = row_of(good, bad, among, places or Places(), Cancel())
    return found.names, found.backward


def test_between_releases_are_those_that_are_offered_either_way(offered: Places) -> None:
    assert row("3.8.0", "iree-base-compiler==3.11.0", places=offered) == (RELEASES, False)
    assert row("3.11.0", "3.8.0", places=offered) == (RELEASES[::-1], True)
    assert row("3.9.0", "latest", places=offered) == (RELEASES[1:], False)
    assert row("3.9.0", "3.10.0rc20260101", places=offered) == (("3.9.0", "3.10.0rc20260101"), False)


def test_what_has_versions_is_ordered_by_them_however_it_is_named() -> None:
    assert row("3.8.0", "3.11.0", "3.10.0", "3.9.0", "3.12.0", "3.8.0") == (RELEASES, False)
    assert row("3.11.0", "3.8.0", "3.9.0", "3.10.0") == (RELEASES[::-1], True)


def test_what_has_none_keeps_its_order_and_the_ends_cut_it(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{name}.json") for name in ("1", "2", "2²", "10", "11")]
    for name in names:
        Path(name).touch()
    assert expanded(str(tmp_path)) == names and expanded(str(tmp_path / "1*.json")) == [names[0], *names[3:]]
    assert row(names[1], names[3], str(tmp_path)) == (tuple(names[1:4]), False)
    assert row(names[3], names[1], str(tmp_path)) == (tuple(names[1:4][::-1]), True)
    assert row("a.json", names[2], str(tmp_path)) == (("a.json", *names[:3]), False)
    assert row(names[2], "b.json", str(tmp_path)) == ((*names[2:], "b.json"), False)
    assert row("a.json", "b.json", names[3], names[0]) == (("a.json", names[3], names[0], "b.json"), False)


def test_builds_of_commits_share_a_version_and_keep_their_order(tmp_path: Path) -> None:
    commits = [f"{number}-{letters}" for number, letters in ((9, "b"), (10, "a"), (11, "c"))]
    for commit in commits:
        (tmp_path / commit).mkdir()
        for python in ("cp310", "cp311", "cp313"):
            (tmp_path / commit / wheel_name("3.14.0.dev0", python=python)).touch()
    found = expanded(str(tmp_path / "*" / "*.whl"))
    assert [Path(one).parent.name for one in found] == commits, "one wheel of each commit"
    assert row(found[0], found[2], *found) == (tuple(found), False)
    local = [str(tmp_path / wheel_name(f"3.14.0+{letters}")) for letters in ("b", "a", "c")]
    for one in local:
        Path(one).touch()
    assert row(local[0], local[1], *local) == (tuple(local[:2]), False), "b is not newer than a"
    assert row(local[0], local[2], *local) == (tuple(local), False)


def test_two_kinds_without_anything_between_are_refused() -> None:
    with pytest.raises(UsageError, match=r"3\.8\.0 and main\.json: nothing says what lies between the two"):
        row("3.8.0", "main.json")
