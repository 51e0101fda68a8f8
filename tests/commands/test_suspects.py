"""Which commits of the compiler a report suspects, from a clone and from GitHub, and what it says where it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compiler_history import LOWERING, Clone, explained
from fake_github import FakeGitHub
from series import write

from bot.cli.main import main

HOSTILE = (
    "Lower affine.delinearize_index @octocat <b>`x` ([#12](https://evil.example))"
    " iree-org/iree#1 " + "long " * 60
)
Revisions = tuple[str, str]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "iree")


@pytest.fixture
def history(clone: Clone) -> Revisions:
    """Base and head; between them six commits, two of which are reverted, and one has no function."""
    base = clone.commit(
        "Start",
        llvm="a",
        lowering="int a;\n",
        choice="c0\n",
        test="// unroll = [1, 4]\n",
    )
    clone.commit(
        "[NFC] Rename what makes affine.delinearize_index (#1)", lowering="int b;\n"
    )
    clone.commit(
        "Fold gathers (#2)\n\nUpstream \x1e emits a delinearize per lane.",
        lowering="int c;\n",
    )
    clone.commit("Make affine.delinearize_index cheap (#3)", lowering="int d;\n")
    clone.commit(
        'Revert "Make affine.delinearize_index cheap (#3)" (#4)', lowering="int c;\n"
    )
    clone.commit("Speak of unroll on x86 (#5)", choice="c1\n")
    head = clone.commit(
        "Tune defaults (#6)",
        llvm="b",
        choice="c2 unroll\n",
        test="// unroll = [8, 4]\n",
    )
    return base, head


@pytest.fixture
def report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, Any]]]:
    """Runs `report` over a cell whose three dispatches changed by a pass, by a pass of LLVM's, and by a knob."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", "")

    def run(
        revisions: Revisions, *options: str, config: str = "default", code: int = 0
    ) -> dict[str, Any]:
        for side, revision in zip(("base", "head"), revisions, strict=True):
            write(tmp_path / f"{side}.json", explained(side, revision))
        files = ["--base", "base.json", "--head", "head.json", "--cache", "cache"]
        assert main(["report", *files, "--config", config, *options]) in (code, 1)
        answer: dict[str, Any] = json.loads(Path("out/report.json").read_text())
        answer["roots"] = {
            root["what"].partition(" ")[0].rstrip(":"): root
            for root in answer["root_causes"]
        }
        return answer

    yield run


Run = Callable[..., dict[str, Any]]


def test_a_clone_names_the_commits_that_speak_of_what_changed(
    report: Run, history: Revisions, clone: Clone
) -> None:
    roots = report(history, "--source", str(clone.directory))["roots"]
    lowering = roots["iree-llvmcpu-lowering"]
    knob = roots["unroll"]
    llvm = roots["InstCombinePass"]
    only, idle = lowering["suspects"]
    assert (only["title"], only["date"]) == ("Fold gathers (#2)", "2026-05-04")
    assert idle["title"].startswith("[NFC]"), "what has no function is last"
    assert only["why"] == "its message has delinearize"
    assert only["url"] == f"https://github.com/iree-org/iree/commit/{only['commit']}"
    assert lowering["looked_up"] == {
        "commits": 4,
        "files": [LOWERING],
        "note": "",
        "this_pull_request": [],
    }
    assert [suspect["title"] for suspect in knob["suspects"]] == ["Tune defaults (#6)"]
    assert knob["suspects"][0]["why"].endswith("unroll 1 → 8")
    assert (llvm["suspects"], llvm["looked_up"]["note"]) == (
        [],
        f"a pass of LLVM, {'a' * 10} → {'b' * 10}",
    )
    assert f'href="{only["url"]}"' in Path("out/report.html").read_text()
    assert report(history)["roots"]["unroll"].get("suspects") is None, "nobody asked"


def test_no_text_of_a_commit_rings_at_another_repository(
    report: Run, clone: Clone
) -> None:
    base = clone.commit("Start", lowering="int a;\n")
    head = clone.commit(HOSTILE, lowering="int b;\n")
    report((base, head), "--source", str(clone.directory))
    (line,) = (
        line
        for line in Path("out/comment.md").read_text().splitlines()
        if "suspect: " in line
    )
    line = line.partition("suspect: ")[2]
    assert (
        f"[`{head[:10]}`](<https://redirect.github.com/iree-org/iree/commit/{head}>)"
        in line
    )
    assert "//github.com" not in line
    title = line.partition(">) ")[2].partition(", the only commit")[0]
    assert title.startswith("``") and title.endswith("``") and len(title) < 120, (
        "code, clipped"
    )
    page = Path("out/report.html").read_text()
    assert "&lt;b&gt;" in page and "<b>`x`" not in page


@pytest.mark.parametrize(
    ("revisions", "reason"),
    [
        (
            ("", "b" * 40),
            "the base compiler does not name its source commit (revision: '')",
        ),
        (
            ("a" * 40, "1234567-dirty"),
            (
                "the head compiler does not name its source commit (revision:"
                " '1234567-dirty')"
            ),
        ),
        (("a" * 40, "b" * 40), "the clone iree: has no commit bbbbbbbbbb"),
    ],
)
@pytest.mark.usefixtures("history")
def test_a_revision_that_nobody_has_is_reported(
    report: Run, clone: Clone, revisions: Revisions, reason: str
) -> None:
    answer = report(revisions, "--source", str(clone.directory))
    assert (
        answer["notes"][-1]
        == f"the search for compiler commits stopped early: {reason}"
    )


def test_one_revision_on_both_sides_has_no_suspects_and_no_note(
    report: Run, history: Revisions, clone: Clone
) -> None:
    answer = report((history[1], history[1]), "--source", str(clone.directory))
    assert not any("compiler commits" in note for note in answer["notes"])
    assert all("suspects" not in root for root in answer["root_causes"])


@pytest.fixture
def hub(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[FakeGitHub]:
    with FakeGitHub("octo/iree") as hub:
        hub.set_history(clone.directory)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        (tmp_path / "own.yml").write_text(
            "schema: code-size-config/1\ncompiler: {repository: octo/iree}\n"
        )
        yield hub
        hub.assert_contract()


def test_github_says_the_same_in_few_requests_and_once(
    report: Run, history: Revisions, hub: FakeGitHub
) -> None:
    """Strangers, too: nothing here has a token."""
    clone_says = report(
        history, "--source", str(Path("iree").absolute()), config="own.yml"
    )["roots"]
    answer = report(history, "--suspects", config="own.yml")
    for name, root in answer["roots"].items():
        assert root.get("suspects") == clone_says[name].get("suspects"), name
    paths = [exchange["path"] for exchange in hub.traffic]
    assert len(paths) == 2 + 2 * 2 + 6, (
        "two trees, lists of two files on two sides, six diffs"
    )
    assert report(history, "--suspects", config="own.yml")["roots"] == answer["roots"]
    assert len(hub.traffic) == len(paths), "what revisions have never changes"


@pytest.mark.parametrize(
    ("status", "headers", "reason"),
    [
        (
            403,
            {"X-RateLimit-Remaining": "0", "Retry-After": "3600"},
            "GitHub limits the rate of requests",
        ),
        (404, {}, "not found, or the token may not see it"),
    ],
)
def test_what_github_refuses_costs_one_line(
    report: Run,
    history: Revisions,
    hub: FakeGitHub,
    status: int,
    headers: dict[str, str],
    reason: str,
) -> None:
    hub.fail_next("GET", "/commits", status, headers=headers, times=9)
    answer = report(history, "--suspects", config="own.yml")
    (note,) = (note for note in answer["notes"] if "compiler commits" in note)
    assert reason in note
    assert (
        len([exchange for exchange in hub.traffic if "/commits" in exchange["path"]])
        == 1
    )


def test_the_report_of_a_bisection_has_the_suspects_of_its_step(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = clone.commit("Start", lowering="int a;\n")
    early = clone.commit("Speak of affine.delinearize_index", lowering="int b;\n")
    late = clone.commit("Make affine.delinearize_index cheap", lowering="int c;\n")
    row = zip(
        ("3.2.0", "3.3.0", "3.4.0", "3.5.0"),
        ("base", "base", "head", "head"),
        strict=True,
    )
    for (version, side), revision in zip(row, (start, early, late, late), strict=True):
        write(
            tmp_path / "nightly" / f"{version}.json", explained(side, revision, version)
        )
    ends = [
        "nightly/3.2.0.json",
        "nightly/3.5.0.json",
        "--among",
        "nightly",
        "--cache",
        "cache",
        "--config",
        "default",
    ]
    assert (
        main(
            ["bisect", *ends, "--model", "m", "--target", "x86_64", "--source", "iree"]
        )
        == 0
    )
    roots = json.loads((tmp_path / "out/report.json").read_bytes())["root_causes"]
    assert {
        suspect["commit"] for root in roots for suspect in root.get("suspects", ())
    } == {late}


@pytest.mark.parametrize("place", ["empty", "absent"])
def test_a_directory_that_is_no_clone_is_one_line(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "compare",
                "--base",
                "3.11.0",
                "--head",
                "3.13.0",
                "--source",
                str(tmp_path / place),
            ]
        )
    assert ended.value.code == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith(
            f"--source: '{tmp_path / place}' is not a git repository (name a clone of"
            " the compiler's repository)"
        )
    )
