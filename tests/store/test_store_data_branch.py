"""Real repositories: a bare one as origin, a clone for every writer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from git_server import GitServer, serving
from github_runner import git
from replacing import replace
from report_factory import snapshot

from bot.core.baseline import Entry
from bot.errors import ConfigError, InputError, NetworkError
from bot.store.data_branch import DataBranch
from bot.store.entries import path_of
from bot.store.git_refusals import LOST_A_RACE
from bot.store.own_repository import own_repository
from bot.store.rewritten_branch import rewritten_branch
from bot.system.cancel import Cancel
from bot.system.git import Git

BRANCH = "refs/heads/code-size-data"
SNAPSHOT = snapshot("3.13.0", models=("gpt2_f32_dyn",))


def entry(number: int, report_id: str = "default") -> Entry:
    return Entry(report_id, f"{number:040x}", "d" * 64)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    path = tmp_path / "origin.git"
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "--quiet", "--initial-branch=main")
    (work / "a.txt").write_text("a\n")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "-m", "first")
    git(work, "clone", "--quiet", "--bare", str(work), str(path))
    git(path, "config", "uploadpack.allowFilter", "true")
    return path


def clone(origin: Path, name: str) -> Path:
    path = origin.parent / name
    git(origin.parent, "clone", "--quiet", f"file://{origin}", str(path))
    return path


def branch(directory: Path) -> DataBranch:
    def pause(seconds: float) -> None:
        time.sleep(seconds / 10)

    return DataBranch(Git(directory, Cancel()), sleep=pause)


@contextmanager
def stored_behind_http(origin: Path) -> Iterator[tuple[Path, GitServer]]:
    """A clone whose origin is a server, and has the first snapshot."""
    path = clone(origin, "one")
    with branch(path) as store:
        store.save(entry(1), SNAPSHOT)
    with serving(origin.parent) as server:
        git(path, "remote", "set-url", "origin", f"{server.url}/origin.git")
        yield path, server


def stored(origin: Path) -> list[str]:
    return git(origin, "ls-tree", "-r", "--name-only", BRANCH).splitlines()


def test_what_is_saved_is_found_by_another(origin: Path) -> None:
    with branch(clone(origin, "one")) as store:
        assert store.entries() == (), "there is no branch yet"
        with pytest.raises(InputError, match="is not stored"):
            store.load(entry(1))
        assert store.save(entry(1), SNAPSHOT)
        assert store.save(entry(2, "other"), SNAPSHOT)
        assert not store.save(entry(1), SNAPSHOT)
    with branch(clone(origin, "two")) as store:
        assert store.entries() == [entry(1), entry(2, "other")]
        assert store.load(entry(1)) == SNAPSHOT
    assert stored(origin)[0] == "README.md"
    assert git(origin, "log", "--format=%s", BRANCH).splitlines() == [
        f"Code size of {2:040x}",
        f"Code size of {1:040x}",
        "Begin the code size baselines",
    ]


def test_a_setting_without_a_value_stays_true(origin: Path, tmp_path: Path) -> None:
    path = clone(origin, "one")
    with (path / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write("[credential]\n\tuseHttpPath\n\tusername = me\n")
    folder = tmp_path / "own"
    folder.mkdir()
    own = own_repository(Git(path, Cancel()), folder, "")
    assert own.text("config", "--bool", "credential.usehttppath") == "true"
    assert own.text("config", "credential.username") == "me"


def everything(directory: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_clone_stays_as_it_is(origin: Path) -> None:
    path = clone(origin, "one")
    (path / "a.txt").write_text("changed\n")
    (path / "b.txt").write_text("staged\n")
    git(path, "add", "b.txt")
    before = everything(path)
    with branch(path) as store:
        store.save(entry(1), SNAPSHOT)
        store.entries()
        store.load(entry(1))
    assert everything(path) == before


def test_only_the_wanted_file_is_fetched(origin: Path) -> None:
    with branch(clone(origin, "one")) as store:
        for number in range(3):
            store.save(entry(number), SNAPSHOT)
    with branch(clone(origin, "two")) as store:
        store.entries()
        assert (
            store.repository.text(
                "cat-file", "--batch-check", "--batch-all-objects"
            ).count(" blob ")
            == 0
        )
        # the same bytes as the others: one blob, made here
        store.save(entry(9), SNAPSHOT)
        assert (
            store.repository.text(
                "cat-file", "--batch-check", "--batch-all-objects"
            ).count(" blob ")
            == 1
        )


@pytest.mark.slow
def test_eight_writers_lose_nothing(origin: Path) -> None:
    """From the first commit on."""
    paths = [clone(origin, f"writer{number}") for number in range(8)]
    start = threading.Barrier(8)

    def write(number: int) -> list[bool]:
        with branch(paths[number]) as store:
            start.wait()
            return [store.save(entry(100 * number + i), SNAPSHOT) for i in range(2)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(write, range(8))) == [[True, True]] * 8
    with branch(paths[0]) as store:
        assert store.entries() == sorted(
            entry(100 * number + i) for number in range(8) for i in range(2)
        )
    assert int(git(origin, "rev-list", "--count", BRANCH)) == 17


def test_a_commit_by_hand_does_not_disturb(origin: Path) -> None:
    path = clone(origin, "one")
    with branch(path) as store:
        store.save(entry(1), SNAPSHOT)
    git(path, "fetch", "--quiet", "origin", f"{BRANCH}:by-hand")
    commit = git(path, "commit-tree", "by-hand^{tree}", "-p", "by-hand", "-m", "hello")
    git(path, "push", "--quiet", "origin", f"{commit}:{BRANCH}")
    with branch(path) as store:
        assert store.save(entry(2), SNAPSHOT)
        assert store.entries() == [entry(1), entry(2)]


def test_a_damaged_snapshot_is_written_anew(origin: Path) -> None:
    path = clone(origin, "one")
    with branch(path) as store:
        store.save(entry(1), SNAPSHOT)
    replaced(path, path_of(entry(1)), b"\xfd7zXZ\0 no more")
    with branch(path) as store:
        with pytest.raises(InputError):
            store.load(entry(1))
        assert store.save(entry(1), SNAPSHOT)
        assert store.load(entry(1)) == SNAPSHOT and not store.save(entry(1), SNAPSHOT)


def replaced(path: Path, name: str, data: bytes) -> None:
    """A commit by somebody else that changes one file of the branch."""
    git(path, "fetch", "--quiet", "origin", f"{BRANCH}:by-hand")
    git(path, "checkout", "--quiet", "by-hand")
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(data)
    git(path, "add", name)
    git(path, "commit", "--quiet", "-m", "by hand")
    git(path, "push", "--quiet", "origin", f"HEAD:{BRANCH}")


def test_the_newest_is_the_one_committed_last(origin: Path) -> None:
    entries = [Entry("default", f"{1:040x}", digit * 64) for digit in "f08"]
    with branch(clone(origin, "one")) as store:
        for number, entry in enumerate(entries):
            store.save(entry, replace(SNAPSHOT, notes=(str(number),)))
    with branch(clone(origin, "two")) as store:
        assert (
            store.in_order(entries[:2])[-1] == entries[1]
            and store.in_order(entries)[-1] == entries[2]
        )


def everywhere(origin: Path) -> str:
    return git(origin, "for-each-ref")


@pytest.mark.parametrize("default", ["main", ""])
def test_a_branch_that_holds_something_else_is_left_alone(
    origin: Path, default: str
) -> None:
    path = clone(origin, "one")
    before = everywhere(origin)
    data_branch = DataBranch(Git(path, Cancel()), "main", default_branch=default)
    with data_branch as store:
        for ask in (
            store.entries,
            lambda: store.load(entry(1)),
            lambda: store.save(entry(1), SNAPSHOT),
        ):
            with pytest.raises(
                ConfigError, match=r"branch main .* so the bot does not change it"
            ) as caught:
                ask()
    assert "baseline: branch" in caught.value.line and everywhere(origin) == before


def hook(origin: Path, text: str) -> None:
    path = origin / "hooks" / "pre-receive"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("no entry", "could not be pushed"),
        (
            "'Permission to octo/repo.git denied to github-actions[bot].'",
            "contents: write",
        ),
    ],
)
def test_a_refusal_is_one_line(origin: Path, message: str, line: str) -> None:
    hook(origin, f"echo {message}; exit 1")
    with (
        branch(clone(origin, "one")) as store,
        pytest.raises(NetworkError, match=line) as caught,
    ):
        store.save(entry(1), SNAPSHOT)
    assert "\n" not in caught.value.line


@pytest.mark.parametrize(
    ("service", "status", "message"),
    [
        (
            "git-receive-pack",
            403,
            (
                "could not be pushed: the token may not write (give the job"
                " permissions: contents: write)"
            ),
        ),
        (
            "git-upload-pack",
            403,
            (
                "could not be fetched: the token may not read (give the job"
                " permissions: contents: read)"
            ),
        ),
        (
            "git-receive-pack",
            401,
            (
                "could not be pushed: the token was refused (check the input"
                " `github-token`)"
            ),
        ),
        ("git-receive-pack", 404, "could not be pushed: fatal: repository "),
        ("git-receive-pack", 500, "could not be pushed: fatal: unable to access "),
    ],
)
def test_a_server_that_refuses_is_quoted_as_what_it_meant(
    origin: Path, service: str, status: int, message: str
) -> None:
    """Over HTTP, by git's own words for the status."""
    with stored_behind_http(origin) as (path, server):
        server.refusals[service] = status
        with branch(path) as store, pytest.raises(NetworkError) as caught:
            store.save(entry(2), SNAPSHOT)
    assert message in caught.value.line
    assert ("may not" in caught.value.line) is (status == 403)


def test_a_file_that_the_server_does_not_give_is_no_damaged_snapshot(
    origin: Path,
) -> None:
    """The clone of the branch has no files: git fetches one when it is read."""
    with stored_behind_http(origin) as (path, server), branch(path) as store:
        assert store.entries() == [entry(1)]
        server.refusals["git-upload-pack"] = 502
        with pytest.raises(NetworkError, match="could not be fetched"):
            store.load(entry(1))
        del server.refusals["git-upload-pack"]
        assert store.load(entry(1)) == SNAPSHOT


@pytest.mark.parametrize("number", ["403", "401"])
@pytest.mark.parametrize(
    "template",
    [
        "hook 7{0}: the disk is full",
        "The requested URL returned error: {0} was never said",
        "no space: {0} bytes are left",
        "mirror: The requested URL returned error: {0}",
        "see https://example.org/{0}",
    ],
)
def test_a_number_in_other_words_is_no_missing_permission(
    origin: Path, number: str, template: str
) -> None:
    hook(origin, f"echo '{template.format(number)}'; exit 1")
    with (
        branch(clone(origin, f"clone-{number}")) as store,
        pytest.raises(NetworkError) as caught,
    ):
        store.save(entry(int(number)), SNAPSHOT)
    assert template.format(number) in caught.value.line
    assert "may not" not in caught.value.line and "token" not in caught.value.line


def test_an_address_with_the_number_that_is_gone_is_no_missing_permission(
    origin: Path,
) -> None:
    path = clone(origin, "one")
    git(path, "remote", "set-url", "origin", f"file://{origin.parent}/size-403.git")
    with branch(path) as store, pytest.raises(NetworkError) as caught:
        store.save(entry(1), SNAPSHOT)
    assert "size-403.git" in caught.value.line and "may not" not in caught.value.line


@pytest.mark.parametrize(
    "line",
    [
        "!\tabc:refs/heads/d\t[rejected] (fetch first)",
        "!\tabc:refs/heads/d\t[rejected] (non-fast-forward)",
        (
            "!\tabc:refs/heads/d\t[remote rejected] (cannot lock ref 'refs/heads/d': is"
            " at 12 but expected 34)"
        ),
        "!\tabc:refs/heads/d\t[remote rejected] (failed to update ref)",
        "!\tabc:refs/heads/d\t[remote rejected] (incorrect old value provided)",
    ],
)
def test_both_kinds_of_rejection(line: str) -> None:
    assert LOST_A_RACE.search(f"To file:///x\n{line}\nDone\n")
    assert not LOST_A_RACE.search(
        "!\tabc:refs/heads/d\t[remote rejected] (protected branch hook declined)"
    )


# --- retention ---

DAY = 86_400
START = 1_767_571_200  # a Monday


def at(
    directory: Path, seconds: float, messages: list[str], keep_days: int = 7
) -> DataBranch:
    """The store at that time."""
    return DataBranch(
        Git(directory, Cancel()),
        keep_days=keep_days,
        say=messages.append,
        now=lambda: seconds,
    )


def pushed(origin: Path, days: range, messages: list[str], keep_days: int = 7) -> None:
    """A push at noon of each day, whose snapshot is like no other."""
    path = clone(origin, f"pushes-{days.start}")
    for day in days:
        with at(path, START + day * DAY + DAY / 2, messages, keep_days) as store:
            store.save(entry(day), replace(SNAPSHOT, notes=(str(day),)))


def days_of(origin: Path) -> list[int]:
    paths = [name for name in stored(origin) if name.startswith("snapshots/")]
    return sorted(int(Path(name).name.partition(".")[0], 16) for name in paths)


def test_old_pushes_are_thinned_to_one_a_week_and_the_branch_begins_anew(
    origin: Path,
) -> None:
    messages = list[str]()
    pushed(origin, range(22), messages)
    # on day 21, a Monday: of the days before the 14th the Sundays
    assert days_of(origin) == [6, 13, *range(14, 22)]
    assert "dropped" in messages[-1] and "older than 7 days" in messages[-1]
    assert int(git(origin, "rev-list", "--count", BRANCH)) == 1 + len(days_of(origin))
    with branch(clone(origin, "reader")) as store:
        assert store.load(entry(6)).notes == ("6",) and store.load(entry(21)).notes == (
            "21",
        )
        in_order = store.in_order([entry(21), entry(6), entry(14)])
        assert in_order == [entry(6), entry(14), entry(21)]
    fresh = clone(origin, "fresh")
    reachable = git(
        fresh, "rev-list", "--objects", "origin/code-size-data"
    ).splitlines()
    assert sum(line.endswith(".xz") for line in reachable) == len(days_of(origin)), (
        "a clone has no dropped file"
    )
    pushed(origin, range(22, 29), messages)
    assert days_of(origin) == [6, 13, 20, *range(21, 29)], "dates survive a rewriting"


def test_all_is_kept_where_nothing_says_for_how_long(origin: Path) -> None:
    messages = list[str]()
    pushed(origin, range(5, 16), messages, keep_days=0)
    assert days_of(origin) == list(range(5, 16)) and messages == []


def test_the_newest_is_kept_however_old_it_is(origin: Path) -> None:
    messages = list[str]()
    pushed(origin, range(3), messages)
    pushed(origin, range(400, 401), messages)
    assert days_of(origin) == [2, 400]


def test_a_push_of_somebody_else_is_never_lost_to_the_rewriting(
    origin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = list[str]()
    pushed(origin, range(10), messages)
    other_clone = clone(origin, "other")
    path = clone(origin, "one")
    with at(path, START + 42 * DAY, messages) as store:

        def meanwhile(*arguments: Any, **named: Any) -> str:
            with branch(other_clone) as second:
                assert second.save(entry(900), SNAPSHOT)
            return rewritten_branch(*arguments, **named)

        monkeypatch.setattr("bot.store.data_branch.rewritten_branch", meanwhile)
        assert store.save(entry(42), SNAPSHOT)
    assert {900, 42} <= set(days_of(origin)) and "older snapshots stay" in messages[-1]


def test_a_server_that_refuses_the_rewriting_loses_nothing(origin: Path) -> None:
    messages = list[str]()
    pushed(origin, range(10), messages)
    git(origin, "config", "receive.denyNonFastForwards", "true")
    pushed(origin, range(42, 43), messages)
    assert 42 in days_of(origin) and set(range(10)) <= set(days_of(origin))
    assert (
        "older snapshots stay on branch code-size-data until next week: "
        in messages[-1]
    )
