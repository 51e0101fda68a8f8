"""Real repositories, and a real HTTP server that sees what git sends."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from background_server import running
from github_runner import git
from places import ROOT

from bot.core.snapshot import SourceInfo
from bot.errors import InputError, Interrupted, NetworkError, UsageError
from bot.system.cancel import Cancel
from bot.system.credentials import credentials
from bot.system.git import Git, Repository, repository_of

TOKEN = "ghs_0123456789abcdef"
COMMITS = 130


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """130 commits on main, a branch, a tag object; as a stranger serves it."""
    top = tmp_path_factory.mktemp("origin")
    git(top, "init", "--quiet", "--initial-branch=main")
    stream = "".join(
        f"commit refs/heads/main\ncommitter Ada <ada@example.org> {1_700_000_000 + i}"
        f" +0000\ndata 1\nx\nM 100644 inline a.txt\ndata {len(str(i))}\n{i}\n"
        for i in range(COMMITS)
    )
    subprocess.run(
        ["git", "-C", str(top), "fast-import", "--quiet"],
        input=stream.encode(),
        check=True,
    )
    git(top, "branch", "topic/one", "main~5")
    git(top, "tag", "-a", "-m", "tag", "v1", "main~7")
    return top


def cloned(origin: Path, path: Path, *options: str) -> Git:
    git(origin, "clone", "--quiet", *options, f"file://{origin}", str(path))
    return Git(path, Cancel())


@pytest.fixture
def shallow(origin: Path, tmp_path: Path) -> Git:
    return cloned(origin, tmp_path / "shallow", "--depth=1")


def line_of(origin: Path, ref: str = "main") -> list[str]:
    return git(origin, "rev-list", "--first-parent", ref).split()


@pytest.mark.parametrize(
    ("ref", "commit"),
    [("topic/one", "main~5"), ("v1", "main~7"), ("refs/tags/v1", "main~7")],
)
def test_refs_that_only_origin_has(
    shallow: Git, origin: Path, ref: str, commit: str
) -> None:
    sha = git(origin, "rev-parse", commit)
    assert shallow.resolve(ref) == sha
    assert shallow.text("show", f"{sha}:a.txt") == git(
        origin, "show", f"{commit}:a.txt"
    )


def test_a_full_sha_is_fetched(shallow: Git, origin: Path) -> None:
    sha = git(origin, "rev-parse", "main~60")
    assert shallow.resolve(sha) == sha
    assert shallow.resolve("f" * 40) is None
    with pytest.raises(InputError, match="neither in this clone nor at origin"):
        shallow.ensure("f" * 40)


def test_a_full_clone_stays_full(origin: Path, tmp_path: Path) -> None:
    full = cloned(
        origin, tmp_path / "full", "--single-branch", "--branch=topic/one", "--no-tags"
    )
    assert full.resolve(line_of(origin)[0]) == line_of(origin)[0]
    assert full.text("rev-parse", "--is-shallow-repository") == "false"


@pytest.mark.parametrize("ref", ["--upload-pack=touch x", "-x", "", "a b", "a\nb"])
def test_what_is_no_ref(shallow: Git, ref: str) -> None:
    assert shallow.resolve("nothing") is None
    with pytest.raises(InputError, match="not a git ref"):
        shallow.resolve(ref)


@pytest.mark.parametrize(
    "form",
    [
        "{:.4}",
        "{:.7}",
        "{:.12}",
        "{:.39}",
        "{:.7}~1",
        "{:.7}^{{commit}}",
        "v1-3-g{:.8}",
    ],
)
def test_a_shortened_commit_is_refused_although_it_is_here(
    origin: Path, tmp_path: Path, form: str
) -> None:
    full = cloned(origin, tmp_path / "full")
    sha = line_of(origin)[3]
    short = form.format(sha)
    for ref in (short, short.replace(sha[:4], sha[:4].upper())):
        with pytest.raises(InputError, match=r"is a shortened commit.*git rev-parse"):
            full.resolve(ref)
    assert full.resolve(sha) == sha and full.resolve(f"{sha}~1") == line_of(origin)[4]


def test_a_branch_or_tag_that_looks_like_a_commit_is_what_it_is(
    origin: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs.git"
    git(origin, "clone", "--quiet", "--bare", f"file://{origin}", str(theirs))
    first, second, third = line_of(origin)[:3]
    for ref, target in (
        (f"refs/heads/{first[:8]}", second),
        ("refs/tags/20261016", third),
        ("refs/heads/face", third),
    ):
        git(theirs, "update-ref", ref, target)
    for options in ((), ("--depth=1",)):
        repository = cloned(theirs, tmp_path / f"here{len(options)}", *options)
        assert repository.resolve(first[:8]) == second, (
            "the branch, not the commit that begins the same"
        )
        assert repository.resolve("20261016") == repository.resolve("face") == third
        assert repository.resolve("refs/tags/20261016") == third


@pytest.mark.parametrize("limit", [0, 1, 49, 50, 51, 129, 500])
def test_a_shallow_clone_is_deepened_as_far_as_needed(
    shallow: Git, origin: Path, limit: int
) -> None:
    expected = line_of(origin)
    assert list(shallow.ancestors(expected[0], limit)) == expected[1 : limit + 1]
    assert int(shallow.text("rev-list", "--count", "HEAD")) <= 1 if limit == 0 else True


def test_parents_at_the_end_of_a_shallow_clone(shallow: Git, origin: Path) -> None:
    assert shallow.parents(line_of(origin)[0]) == (line_of(origin)[1],)
    repository = Git(origin, Cancel())  # which has no remote
    assert (
        repository.parents(line_of(origin)[-1]) == ()
        and repository.resolve("nothing") is None
    )
    assert len(repository.ancestors(line_of(origin)[0], 500)) == COMMITS - 1


def test_an_unreachable_origin_and_other_errors_are_one_line(shallow: Git) -> None:
    with pytest.raises(InputError, match="git cat-file failed: fatal: ") as caught:
        shallow.text("cat-file", "commit", "nothing")
    assert "\n" not in caught.value.line
    git(shallow.directory, "remote", "set-url", "origin", "http://127.0.0.1:1/x.git")
    with pytest.raises(NetworkError, match="cannot reach origin"):
        shallow.resolve("topic/one")


# Worktrees


def test_two_worktrees_at_once_and_nothing_left(
    shallow: Git, origin: Path, tmp_path: Path
) -> None:
    new = line_of(origin)[0]
    old = line_of(origin)[30]
    with shallow.worktree(new) as new_tree, shallow.worktree(old) as old_tree:
        assert ((new_tree / "a.txt").read_text(), (old_tree / "a.txt").read_text()) == (
            "129",
            "99",
        )
    assert not new_tree.exists() and not old_tree.exists()
    assert len(shallow.text("worktree", "list").splitlines()) == 1
    git(shallow.directory, "worktree", "add", "--quiet", str(tmp_path / "mine"))
    (tmp_path / "mine").rename(tmp_path / "elsewhere")
    with shallow.worktree("HEAD"):
        pass
    assert len(git(shallow.directory, "worktree", "list").splitlines()) == 2, (
        "other worktrees are kept"
    )


def test_a_worktree_is_gone_after_an_interrupt(origin: Path, tmp_path: Path) -> None:
    path = tmp_path / "clone"
    cloned(origin, path)
    cancel = Cancel()
    repository = Git(path, cancel)
    with pytest.raises(Interrupted), repository.worktree("main") as tree:
        cancel.set()
        repository.text("status")
    assert not tree.exists()
    assert len(git(path, "worktree", "list").splitlines()) == 1


def test_a_checkout_runs_nothing(tmp_path: Path) -> None:
    top = tmp_path / "hostile"
    ran = tmp_path / "ran"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    (top / ".gitattributes").write_text("*.bin filter=lfs\n")
    (top / "a.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    (top / ".gitmodules").write_text(
        '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch /nowhere"\n'
    )
    git(top, "add", ".")
    git(top, "commit", "--quiet", "-m", "first")
    for key in ("filter.lfs.smudge", "filter.lfs.process"):
        git(top, "config", key, f"touch {ran}")
    git(top, "config", "filter.lfs.required", "true")
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    with Git(top, Cancel()).worktree("main") as tree:
        assert (tree / "a.bin").read_text().startswith("version")
    assert not ran.exists()


# The token


@pytest.fixture
def server() -> Iterator[tuple[str, list[list[str]]]]:
    headers_of_requests: list[list[str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers_of_requests.append(self.headers.get_all("Authorization") or [])
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with running(Handler) as address:
        yield address, headers_of_requests


@pytest.mark.parametrize("persisted", [False, True])
def test_one_header_and_none_elsewhere(
    shallow: Git, server: tuple[str, list[list[str]]], persisted: bool
) -> None:
    url, headers_of_requests = server
    if persisted:
        git(
            shallow.directory,
            "config",
            f"http.{url}/.extraheader",
            "AUTHORIZATION: basic b2xk",
        )
    Git(shallow.directory, Cancel(), credentials(TOKEN, url))(
        "ls-remote", f"{url}/octo/repo.git"
    )
    expected = "basic eC1hY2Nlc3MtdG9rZW46Z2hzXzAxMjM0NTY3ODlhYmNkZWY="
    assert headers_of_requests and all(
        headers == [expected] for headers in headers_of_requests
    )
    headers_of_requests.clear()
    Git(shallow.directory, Cancel(), credentials(TOKEN, "https://github.com"))(
        "ls-remote", f"{url}/octo/repo.git"
    )
    assert headers_of_requests and all(
        headers == (["basic b2xk"] if persisted else [])
        for headers in headers_of_requests
    )


SECRET = "eC1hY2Nlc3MtdG9rZW46Z2hzXzAxMjM0NTY3ODlhYmNkZWY="


def test_the_header_is_in_no_argument_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "seen"
    room = tmp_path / "tmp"
    programs = tmp_path / "bin"
    room.mkdir()
    programs.mkdir()
    program = programs / "git"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {record}; env | grep ^GIT_CONFIG_VALUE >> {record}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(room))
    Git(tmp_path, Cancel(), credentials(TOKEN, "https://github.com"))("fetch")
    arguments, empty, header = record.read_text().splitlines()
    assert SECRET not in arguments and empty == "GIT_CONFIG_VALUE_0="
    assert header == f"GIT_CONFIG_VALUE_1=AUTHORIZATION: basic {SECRET}"
    assert TOKEN not in repr(credentials(TOKEN, "https://github.com"))
    assert SECRET not in repr(credentials(TOKEN, "https://github.com"))
    assert not [path for path in room.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "url",
    ["http://github.com", "github.com", 'https://x"]\n[y', "https://a@b", "file:///x"],
)
def test_no_server_for_a_token(url: str) -> None:
    with pytest.raises(UsageError, match="no server"):
        credentials(TOKEN, url)


# The default branch.


@pytest.mark.parametrize("name", ["main", "trunk", "release/2", "a+b"])
def test_the_default_branch_is_what_the_origin_s_head_names(
    tmp_path: Path, name: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet", f"--initial-branch={name}")
    git(source, "commit", "--quiet", "--allow-empty", "-m", "first")
    clone = cloned(source, tmp_path / "clone")
    git(tmp_path / "clone", "checkout", "--quiet", "-b", "topic")
    assert clone.default_branch() == name


def test_without_an_origin_it_is_main_or_master_or_else_the_current_branch(
    tmp_path: Path,
) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=topic")
    repository = Git(tmp_path, Cancel())
    assert repository.default_branch() == "topic", "a branch without a commit"
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "first")
    assert repository.default_branch() == "topic"
    git(tmp_path, "checkout", "--quiet", "--detach")
    git(tmp_path, "branch", "--quiet", "-D", "topic")
    assert repository.default_branch() == "", "a commit alone"
    git(tmp_path, "branch", "master")
    assert repository.default_branch() == "master"
    git(tmp_path, "branch", "main")
    assert repository.default_branch() == "main"


def test_the_files_that_differ_between_two_commits_whatever_their_names(
    tmp_path: Path,
) -> None:
    top = tmp_path / "r"
    top.mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    shas = []
    for number, names in enumerate(
        (["same", " a b/c", "old\nname"], [" a b/c", "\u00fc/d"], [" a b/c"])
    ):
        for name in names:
            (top / name).parent.mkdir(exist_ok=True)
            (top / name).write_text(f"{number}\n")
        (top / "old\nname").unlink(missing_ok=number > 0) if number == 1 else None
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "--message=x")
        shas.append(git(top, "rev-parse", "HEAD").strip())
    repository = Git(top, Cancel())
    assert repository.touched(shas[0], shas[1]) == [" a b/c", "old\nname", "\u00fc/d"]
    assert (
        repository.touched(shas[1], shas[0]) == repository.touched(shas[0], shas[1])
        and repository.touched(shas[0], shas[0]) == []
    )
    with pytest.raises(InputError, match="neither in this clone nor at origin"):
        repository.touched("f" * 40, shas[0])


def test_what_a_shallow_clone_lacks_is_fetched_to_say_what_differs(
    shallow: Git,
) -> None:
    old, new = shallow.ancestors(shallow.text("rev-parse", "HEAD"), 60)[::59]
    assert shallow.touched(old, new) == ["a.txt"]


# The repository of a side


@pytest.fixture
def top(tmp_path: Path) -> Path:
    path = tmp_path / "ein Projekt"
    path.mkdir()
    git(path, "init", "--initial-branch=main")
    (path / "models").mkdir()
    (path / "models" / "a.mlir").write_text("module {}\n")
    git(path, "add", ".")
    git(path, "commit", "-m", "first")
    return path


def test_a_repository_as_its_state_changes(top: Path, tmp_path: Path) -> None:
    def source() -> SourceInfo:
        return repository_of(top, Cancel()).source

    sha = git(top, "rev-parse", "HEAD")
    assert repository_of(top, Cancel()) == Repository(
        top.resolve(), SourceInfo(sha, "main", False)
    )
    assert repository_of(top / "models", Cancel()) == repository_of(top, Cancel())
    (top / "comment.md").write_text("a file that git does not know")
    assert not source().dirty
    (top / "models" / "a.mlir").write_text("module { }\n")
    assert source().dirty
    git(top, "add", "models")
    assert source().dirty
    git(top, "commit", "-m", "second")
    assert not source().dirty
    git(top, "switch", "-c", "users/ada/faster")
    assert source().ref == "users/ada/faster"
    git(top, "checkout", "--detach", sha)
    assert source() == SourceInfo(sha, None, False)
    git(top, "worktree", "add", "-b", "other", str(tmp_path / "other"))
    other_repository = repository_of(tmp_path / "other", Cancel())
    assert (
        other_repository.top == (tmp_path / "other").resolve()
        and other_repository.source.ref == "other"
    )


def test_no_commit_yet(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=trunk")
    assert repository_of(tmp_path, Cancel()) == Repository(
        tmp_path.resolve(), SourceInfo(None, "trunk", False)
    )


def test_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the variables of a hook would name another repository, and must not reach git
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    assert repository_of(tmp_path, Cancel()) == Repository(None, SourceInfo())
    assert repository_of(tmp_path / "missing", Cancel()) == Repository(
        None, SourceInfo()
    )


def test_no_git(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(top))
    assert repository_of(top, Cancel()) == Repository(None, SourceInfo())


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://github.com/octo/repo", "https://github.com/my-org/sizes"),
        ("https://github.com/octo/repo.git", "https://github.com/my-org/sizes.git"),
        ("https://github.com/octo/repo/", "https://github.com/my-org/sizes"),
        ("git@github.com:octo/repo.git", "git@github.com:my-org/sizes.git"),
        ("ssh://git@host:22/octo/repo", "ssh://git@host:22/my-org/sizes"),
    ],
)
def test_another_repository_is_beside_origin(
    tmp_path: Path, origin: str, expected: str
) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "remote", "add", "origin", origin)
    assert Git(tmp_path, Cancel()).address_beside_origin("my-org/sizes") == expected


def test_without_origin_no_other_repository_is_known(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    with pytest.raises(InputError, match="the address of my-org/sizes is not known"):
        Git(tmp_path, Cancel()).address_beside_origin("my-org/sizes")
