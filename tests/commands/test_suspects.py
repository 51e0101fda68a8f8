"""Which commits of the compiler a report suspects, from a clone and from GitHub, and what it says where it cannot."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matched_cells
import pytest
from fake_github import FakeGitHub
from matched_cells import Row
from replacing import replace
from report_factory import snapshot, with_metrics
from series import write

from bot.cli.main import main
from bot.core.values.snapshot import Cell, CellKey
from bot.core.values.trace import LLVM, DispatchTrace, PassStep

LOWERING = "compiler/src/iree/compiler/Codegen/LLVMCPU/LLVMCPULowering.cpp"
CHOICE = "compiler/src/iree/compiler/Codegen/LLVMCPU/KernelDispatch.cpp"
TEST = "compiler/src/iree/compiler/Codegen/LLVMCPU/test/select.mlir"
HOSTILE = "Lower affine.delinearize_index @octocat <b>`x` ([#12](https://evil.example)) iree-org/iree#1 " + "long " * 60
Revisions = tuple[str, str]


class Clone:
    """A small history with the compiler's layout."""

    def __init__(self, directory: Path) -> None:
        self.directory, self._days = directory, 0
        self.git("init", "--quiet", "--initial-branch=main", str(directory))

    def git(self, *arguments: str) -> str:
        date = f"2026-05-{self._days + 1:02}T12:00:00Z"
        names = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "A"}
        dates = {"GIT_COMMITTER_EMAIL": "a@b.c", "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        where = ["-C", str(self.directory)] if self.directory.exists() else []
        done = subprocess.run(
            ["git", *where, *arguments],
            env={"PATH": "/usr/bin:/bin", **names, **dates},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def commit(self, message: str, llvm: str = "", **files: str) -> str:
        """The new commit; `files`: LOWERING and so on → their text."""
        self._days += 1
        for name, text in files.items():
            path = self.directory / {"lowering": LOWERING, "choice": CHOICE, "test": TEST}[name]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        if llvm:
            self.git("update-index", "--add", "--cacheinfo", f"160000,{llvm * 40},third_party/llvm-project")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "iree")


@pytest.fixture
def history(clone: Clone) -> Revisions:
    """Base and head; between them six commits, two of which are reverted, and one has no function."""
    base = clone.commit("Start", llvm="a", lowering="int a;\n", choice="c0\n", test="// unroll = [1, 4]\n")
    clone.commit("[NFC] Rename what makes affine.delinearize_index (#1)", lowering="int b;\n")
    clone.commit("Fold gathers (#2)\n\nUpstream emits a delinearize per lane.", lowering="int c;\n")
    clone.commit("Make affine.delinearize_index cheap (#3)", lowering="int d;\n")
    clone.commit('Revert "Make affine.delinearize_index cheap (#3)" (#4)', lowering="int c;\n")
    clone.commit("Speak of unroll on x86 (#5)", choice="c1\n")
    head = clone.commit("Tune defaults (#6)", llvm="b", choice="c2 unroll\n", test="// unroll = [8, 4]\n")
    return base, head


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, Any]]]:
    """Runs `report` over a cell whose three dispatches changed by a pass, by a pass of LLVM's, and by a knob."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_TOKEN", "")
    old, new = "Tiling | unroll = [1, 4]", "Tiling | unroll = [8, 4]"

    def run(revisions: Revisions, *options: str, config: str = "default", code: int = 0) -> dict[str, Any]:
        passes = {
            "0": ("iree-llvmcpu-lowering", "LLVMCPULoweringPass", "affine.delinearize_index", "mlir"),
            "1": ("InstCombinePass", "InstCombinePass", "call", LLVM),
        }
        for side, revision, more in zip(("base", "head"), revisions, (0, 30), strict=True):
            rows = [Row(name, code=name + side, code_bytes=1_000 + more * 10, strategy=old) for name in "pq"]
            strategy = old if side == "base" else new
            rows.append(Row("r", code=f"r{side}", code_bytes=1_000 + more, strategy=strategy))
            made = matched_cells.made(*rows)
            traces = {
                row.name: DispatchTrace(
                    (
                        PassStep("cse", "CSEPass", "mlir", {"arith.addi": 50}),
                        PassStep(name, class_name, level, {operation: 40 + more, "ret": 1}),
                    )
                )
                for row in made.dispatches
                for key, (name, class_name, operation, level) in passes.items()
                if f"dispatch_{key}_" in row.name
            }

            def edit(_key: CellKey, found: Cell, made: Cell = made, traces: Any = traces) -> Cell:
                size = sum(row.code_bytes or 0 for row in made.dispatches)
                rest = dict.fromkeys(("vm_bytes", "rodata_bytes", "unattributed_bytes"), 0)
                found = with_metrics(found, artifact_bytes=size, executable_bytes=size, **rest)
                parts = {"executables/text": size}
                return replace(found, dispatches=made.dispatches, parts=parts, program=made.program, traces=traces)

            whole = snapshot("3.13.0", edit, ("m",), {"llvm-cpu-x86_64": "llvm-cpu"})
            compiler = replace(whole.compiler, revision=revision, digest=("1" if side == "base" else "2") * 64)
            write(tmp_path / f"{side}.json", replace(whole, compiler=compiler))
        files = ["--base", "base.json", "--head", "head.json", "--cache", "cache"]
        assert main(["report", *files, "--config", config, *options]) in (code, 1)
        told: dict[str, Any] = json.loads(Path("out/report.json").read_text())
        told["roots"] = {root["what"].partition(" ")[0].rstrip(":"): root for root in told["root_causes"]}
        return told

    yield run


Run = Callable[..., dict[str, Any]]


def test_a_clone_names_the_commits_that_speak_of_what_changed(report: Run, history: Revisions, clone: Clone) -> None:
    told = report(history, "--source", str(clone.directory))["roots"]
    own, knob, llvm = told["iree-llvmcpu-lowering"], told["unroll"], told["InstCombinePass"]
    only, idle = own["suspects"]
    assert (only["title"], only["date"]) == ("Fold gathers (#2)", "2026-05-04")
    assert idle["title"].startswith("[NFC]"), "what has no function is last"
    assert only["why"] == "its message has delinearize"
    assert only["url"] == f"https://github.com/iree-org/iree/commit/{only['commit']}"
    assert own["looked_up"] == {"commits": 4, "files": [LOWERING], "note": "", "this_pull_request": False}
    assert [one["title"] for one in knob["suspects"]] == ["Tune defaults (#6)"]
    assert knob["suspects"][0]["why"].endswith("unroll 1 → 8")
    assert (llvm["suspects"], llvm["looked_up"]["note"]) == ([], f"a pass of LLVM, {'a' * 10} → {'b' * 10}")
    assert f'href="{only["url"]}"' in Path("out/report.html").read_text()
    assert report(history)["roots"]["unroll"].get("suspects") is None, "nobody asked"


def test_no_text_of_a_commit_rings_at_another_repository(report: Run, clone: Clone) -> None:
    base = clone.commit("Start", lowering="int a;\n")
    head = clone.commit(HOSTILE, lowering="int b;\n")
    report((base, head), "--source", str(clone.directory))
    (line,) = (line for line in Path("out/comment.md").read_text().splitlines() if "suspect: " in line)
    line = line.partition("suspect: ")[2]
    assert f"[`{head[:10]}`](<https://redirect.github.com/iree-org/iree/commit/{head}>)" in line
    assert "//github.com" not in line
    title = line.partition(">) ")[2].partition(" of 2026")[0]
    assert title.startswith("``") and title.endswith("``") and len(title) < 120, "code, clipped"
    page = Path("out/report.html").read_text()
    assert "&lt;b&gt;" in page and "<b>`x`" not in page


@pytest.mark.parametrize(
    ("revisions", "why"),
    [
        (("", "b" * 40), "the base compiler names no commit that it was built from (its revision: '')"),
        (
            ("a" * 40, "1234567-dirty"),
            "the head compiler names no commit that it was built from (its revision: '1234567-dirty')",
        ),
        (("a" * 40, "b" * 40), "the clone iree: has no commit bbbbbbbbbb"),
    ],
)
@pytest.mark.usefixtures("history")
def test_a_revision_that_nobody_has_is_told(report: Run, clone: Clone, revisions: Revisions, why: str) -> None:
    told = report(revisions, "--source", str(clone.directory))
    assert told["notes"][-1] == f"commits of the compiler were not looked up to the end: {why}"


def test_one_revision_on_both_sides_has_no_suspects_and_no_note(report: Run, history: Revisions, clone: Clone) -> None:
    told = report((history[1], history[1]), "--source", str(clone.directory))
    assert not any("commits of the compiler" in note for note in told["notes"])
    assert all("suspects" not in root for root in told["root_causes"])


@pytest.fixture
def hub(clone: Clone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub("octo/iree") as hub:
        hub.set_history(clone.directory)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        (tmp_path / "own.yml").write_text("schema: code-size-config/1\ncompiler: {repository: octo/iree}\n")
        yield hub
        hub.assert_contract()


def test_github_says_the_same_in_few_requests_and_once(report: Run, history: Revisions, hub: FakeGitHub) -> None:
    """Strangers, too: nothing here has a token."""
    clone_says = report(history, "--source", str(Path("iree").absolute()), config="own.yml")["roots"]
    told = report(history, "--suspects", config="own.yml")
    for name, root in told["roots"].items():
        assert root.get("suspects") == clone_says[name].get("suspects"), name
    asked = [one["path"] for one in hub.traffic]
    assert len(asked) == 2 + 1 + 2 * 2 + 6, "two trees, LLVM's commits, lists of two files on two sides, six diffs"
    assert report(history, "--suspects", config="own.yml")["roots"] == told["roots"]
    assert len(hub.traffic) == len(asked) + 1, "what revisions have never changes; LLVM's commits were refused"


@pytest.mark.parametrize(
    ("status", "headers", "why"),
    [
        (403, {"X-RateLimit-Remaining": "0", "Retry-After": "3600"}, "GitHub limits the rate of requests"),
        (404, {}, "not found, or the token may not see it"),
    ],
)
def test_what_github_refuses_costs_one_line(
    report: Run, history: Revisions, hub: FakeGitHub, status: int, headers: dict[str, str], why: str
) -> None:
    hub.fail_next("GET", "/commits", status, headers=headers, times=9)
    told = report(history, "--suspects", config="own.yml")
    (note,) = (note for note in told["notes"] if "commits of the compiler" in note)
    assert why in note
    assert len([one for one in hub.traffic if "/commits" in one["path"]]) == 1
