"""The trusted half: it finds the pull request by itself, and believes no artifact."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from github_runner import MARKER, Origin, git
from hypothesis import HealthCheck, given, settings
from json_texts import to_json
from posting_stage import (
    BASE,
    FOREIGN,
    HEAD,
    MERGE,
    NUMBER,
    OLDER,
    Stage,
    side,
    sides,
    zipped,
)
from replacing import replace
from strategies import snapshots

from bot.core.baseline import Entry
from bot.core.snapshot import CompilerInfo, Dispatch, Snapshot, SourceInfo
from bot.store.entries import pack, path_of
from bot.system.guard import SCRIPT


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage.opened(tmp_path) as opened_stage:
        yield opened_stage


# --- post: which pull request ----------------------------------------------------------------------------------------


def test_the_report_of_a_fork_is_reported_by_the_trusted_half(stage: Stage) -> None:
    stage.save(side(BASE))
    stage.grown()
    ran = stage.post()
    assert (ran.code, ran.error) == (0, "")
    assert (
        "stored snapshot" in stage.body
        and "own workflow run" in stage.body
        and "2,000,000" in stage.body
    )
    assert (
        stage.conclusions == ["failure"] and stage.hub.check_runs[0]["head_sha"] == HEAD
    )
    assert [finding.value for finding in stage.state.findings] == [2_000_000]
    assert (
        ran.outputs["verdict"] == "fail"
        and "#issuecomment-" in ran.outputs["comment-url"]
    )
    assert {path.name for path in ran.out.iterdir()} >= {
        "base.json",
        "head.json",
        "report.json",
        "comment.md",
    }
    assert [request["authorization"] for request in stage.hub.blob_requests] == [None]


def test_the_event_names_the_pull_request_and_not_the_artifact_of_which_the_newest_counts(
    stage: Stage,
) -> None:
    stage.hub.add_pull(8, FOREIGN, merge_sha=OLDER, base_sha=BASE)
    stage.upload(b"of the first attempt")
    stage.upload(
        sides(
            side(BASE),
            side(MERGE, 2_000_000),
            report_json='{"pull": 8}',
            comment_md="#8 octo/repo#8",
        )
    )
    stage.pull(HEAD, "1" * 40)  # GitHub has merged anew since
    assert (
        stage.post().code == 0
        and "2,000,000" in stage.body
        and stage.hub.comments(8) == []
    )


def tried_default(option: str) -> dict[str, Any]:
    """Return a changed default and its trial, with text as a stranger writes it."""
    tried = {"status": "proved", "moved_bytes": 100, "restored_bytes": 100}
    where = {"dispatch": "<b>@everyone</b>", "model": "bert", "target": "vmvx"}
    return {"option": option, "base": "<b>", "head": "on", "tried": tried | where}


def with_defaults(*defaults: dict[str, Any]) -> str:
    """Return the file that the run of a fork has beside its snapshots."""
    measured = {"schema": "code-size-measured/1", "changed_defaults": defaults}
    return json.dumps(measured)


def test_the_changed_defaults_of_a_fork_are_in_its_report(stage: Stage) -> None:
    stage.save(side(BASE))
    measured = with_defaults(tried_default("--iree-x"))
    stage.upload(sides(side(BASE), side(MERGE, 2_000_000), measured_json=measured))
    ran = stage.post()
    assert (ran.code, ran.error) == (0, "")
    assert [tried.option for tried in ran.report.changed_defaults] == ["--iree-x"]
    assert "default of --iree-x" in stage.body and "own workflow run" in stage.body
    assert "<b>" not in stage.body


def test_a_fork_cannot_make_up_a_flag_that_differs(stage: Stage) -> None:
    stage.save(side(BASE))
    tried = {"status": "proved", "moved_bytes": 100, "restored_bytes": 100}
    row = {"removed": "", "added": "--made-up", "tried": tried}
    measured = {"schema": "code-size-measured/1", "changed_flags": [row]}
    stage.upload(
        sides(side(BASE), side(MERGE, 2_000_000), measured_json=json.dumps(measured))
    )
    ran = stage.post()
    assert (ran.code, ran.error, ran.report.changed_flags) == (0, "", ())
    assert "--made-up" not in stage.body


def test_a_changed_default_that_is_no_option_is_refused(stage: Stage) -> None:
    measured = with_defaults(tried_default("[click](https://evil.example)"))
    stage.upload(sides(side(BASE), side(MERGE), measured_json=measured))
    ran = stage.post()
    assert ran.code == 2 and "artifact measured.json" in ran.error
    assert "https://evil.example" not in stage.body


@pytest.mark.parametrize("change", [{"head_sha": FOREIGN}, {"state": "closed"}])
def test_a_report_that_is_about_no_open_pull_request_is_dropped(
    stage: Stage, change: dict[str, str]
) -> None:
    stage.grown()
    if "head_sha" in change:  # it comes meanwhile
        stage.hub.before(
            "GET", r"/artifacts$", lambda: stage.hub.set_pull(NUMBER, **change)
        )
        ran = stage.post()
        assert ran.code == 0 and stage.bodies == [] and "newer head" in ran.said
    stage.hub.set_pull(NUMBER, **change)
    before = stage.writes
    ran = stage.post()
    assert (
        ran.code == 0
        and "dropped" in ran.said
        and stage.writes == before
        and not ran.out.exists()
    )


# --- post: what the artifact says of itself --------------------------------------------------------------------------


def _lies() -> dict[str, bytes]:
    base = side(BASE)
    head = side(MERGE)
    return {
        "no commit": sides(base, side(None)),
        "a commit that is none": sides(base, side("../../../user")),
        "an unknown commit": sides(base, side("9" * 40)),
        "no merge": sides(base, side(HEAD)),
        "the base": sides(base, side(BASE)),
        "a merge of another head": sides(base, side("1" * 40)),
        "a merge with the parents exchanged": sides(base, side("2" * 40)),
        "a merge of three": sides(base, side("3" * 40)),
        "a merge onto a commit of the fork": sides(side(FOREIGN), side("4" * 40)),
        "another base": sides(side(FOREIGN), head),
        "a base without a commit": sides(side(None), head),
        "a base that is an address": sides(side("main...topic"), head),
        "an older base that nobody stored": sides(side(OLDER), head),
        "a merge of what was put on top of the head": sides(base, side("6" * 40)),
    }


@pytest.mark.parametrize("lie", _lies())
def test_an_artifact_about_other_commits_is_refused(stage: Stage, lie: str) -> None:
    stage.hub.add_commit(FOREIGN, [OLDER])
    stage.hub.add_commit("1" * 40, [BASE, FOREIGN])
    stage.hub.add_commit("2" * 40, [HEAD, BASE])
    stage.hub.add_commit("3" * 40, [BASE, HEAD, FOREIGN])
    stage.hub.add_commit("4" * 40, [FOREIGN, HEAD])
    stage.hub.add_commit("5" * 40, [HEAD])
    stage.hub.add_commit("6" * 40, [BASE, "5" * 40])
    stage.upload(_lies()[lie])
    ran = stage.post()
    assert (
        ran.code == 2 and "artifact" in ran.error and "does not belong to" in ran.error
    )
    assert "Code size: unknown" in stage.body and "does not belong to" in stage.body
    assert stage.conclusions == ["failure"] and not ran.news.reports


def test_a_stored_base_is_preferred_to_the_artifact_s_where_it_is_of_that_compiler(
    stage: Stage,
) -> None:
    stage.save(side(BASE, 70_000, compiler=CompilerInfo("1", "r", "9" * 64, "1")))
    stage.grown()
    ran = stage.post()
    assert "own run" in ran.report.baseline.rule and not any(
        "baseline" in note for note in ran.report.notes
    )
    shutil.rmtree(stage.home / "store")
    stage.save(side(BASE, 50_000))
    stage.upload(sides(side(BASE, 2_000_000), side(MERGE, 2_000_000)))
    ran = stage.post()
    assert ran.report.base.cells[0].value("artifact_bytes") == 50_000
    assert (
        ran.outputs["verdict"] == "fail"
        and "stored snapshot" in ran.report.baseline.rule
    )
    stage.save(side(OLDER, 60_000))
    stage.upload(sides(side(OLDER), side(MERGE)))
    ran = stage.post()
    assert ran.code == 0 and f"of its ancestor {OLDER[:10]}" in ran.report.baseline.rule
    assert ran.report.base.cells[0].value("artifact_bytes") == 60_000


def test_a_base_that_the_run_did_not_find_is_said_to_be_missing(stage: Stage) -> None:
    stage.upload(
        sides(side(BASE, compiler=CompilerInfo("", "", ""), cells=()), side(MERGE))
    )
    ran = stage.post()
    assert (
        ran.code == 5
        and "No baseline" in stage.body
        and stage.conclusions == ["failure"]
    )
    assert ran.outputs["verdict"] == "unknown"


def test_a_fork_that_brings_the_configuration_has_its_first_report(
    stage: Stage,
) -> None:
    (stage.workspace / "code-size.yml").unlink()
    nothing = Snapshot(CompilerInfo("", "", ""), SourceInfo(BASE), ())
    stage.upload(sides(nothing, side(MERGE)))
    ran = stage.post()
    assert (ran.code, ran.error, ran.outputs["verdict"]) == (
        0,
        "",
        "warn",
    ) and stage.conclusions == ["neutral"]
    assert (
        "🆕 **Code size is measured from now on: 1 model on 1 target, 100,000 B**"
        in stage.body
    )
    assert (
        "brings a configuration, which the base commit does not have. Nothing was"
        " compared." in stage.body
    )
    assert "own workflow run; this report cannot check its numbers" in stage.body


def test_a_damaged_baseline_stands_for_no_ancestor(stage: Stage) -> None:
    path = stage.home / "store" / path_of(Entry("default", OLDER, "e" * 64))
    path.parent.mkdir(parents=True)
    path.write_bytes(pack(side(OLDER))[:-9])
    stage.upload(sides(side(OLDER), side(MERGE)))
    ran = stage.post()
    assert ran.code == 2 and "does not belong to the base" in stage.body
    assert (
        "skipped a stored baseline that is damaged" in ran.said
        and str(path) in ran.said
    )


def test_the_data_branch_is_read_with_git_and_nothing_else_is_run(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = list[str]()
    start = subprocess.Popen.__init__

    def noted(child: Any, argv: Any, *arguments: Any, **named: Any) -> None:
        # which ends children with this process
        programs.extend([Path(argv[0]).name] if SCRIPT not in argv else [])
        start(child, argv, *arguments, **named)

    origin = Origin.create(tmp_path)
    packed = origin.work / path_of(Entry("default", BASE, "e" * 64))
    packed.parent.mkdir(parents=True)
    packed.write_bytes(pack(side(BASE, 40_000)))
    git(origin.work, "checkout", "-q", "-b", "code-size-data")
    origin.commit("stored", {})
    git(origin.work, "push", "-q", "origin", "code-size-data")
    (stage.workspace / "code-size.yml").write_text(
        "schema: code-size-config/1\nbaseline: {store: data-branch}\n"
    )
    git(stage.workspace, "init", "-q")
    git(stage.workspace, "remote", "add", "origin", origin.bare.as_uri())
    stage.grown()
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "__init__", noted)
        ran = stage.post()
    assert (
        ran.code == 0
        and ran.report.base.cells[0].value("artifact_bytes") == 40_000
        and set(programs) == {"git"}
    )
    git(
        stage.workspace, "remote", "set-url", "origin", (tmp_path / "gone.git").as_uri()
    )
    ran = stage.post()
    assert ran.code == 0 and "could not be read" in stage.body


def _packs() -> dict[str, tuple[bytes, str]]:
    base = to_json(side(BASE))
    head = to_json(side(MERGE))
    files = {"base.json": base, "head.json": head}
    newer = head.replace("code-size-snapshot/1", "code-size-snapshot/9")
    return {
        "no zip": (b"PK nothing", "zip archive"),
        "nothing": (b"", "zip archive"),
        "a way out": (zipped({**files, "../../x": ""}), "has the unexpected file"),
        "no head": (zipped({"base.json": base}), "head.json: is missing"),
        "no base": (zipped({"head.json": head}), "base.json: is missing"),
        "no JSON": (zipped({**files, "head.json": "{"}), "artifact head.json"),
        "deep JSON": (
            zipped({**files, "head.json": "[" * 100_000}, zipfile.ZIP_STORED),
            "artifact head.json",
        ),
        "another object": (zipped({**files, "head.json": "[]"}), "artifact head.json"),
        "a later version": (
            zipped({**files, "head.json": newer}),
            "artifact head.json",
        ),
        "no UTF-8": (zipped({**files, "base.json": b"\xff\xfe"}), "not UTF-8"),
    }


@pytest.mark.parametrize("kind", _packs())
def test_what_is_no_report_is_refused_in_one_line(stage: Stage, kind: str) -> None:
    data, message = _packs()[kind]
    stage.upload(data)
    ran = stage.post()
    assert ran.code == 2 and message in ran.error and len(ran.error) < 600
    assert "Code size: unknown" in stage.body and stage.conclusions == ["failure"]
    url = str(stage.hub.comments(NUMBER)[0]["html_url"])
    assert ran.outputs == {
        "verdict": "unknown",
        "report-path": str(ran.out),
        "comment-url": url,
    }


@pytest.mark.parametrize(
    ("kind", "message"),
    [("expired", "has expired"), ("meanwhile", "expired"), ("huge", "too large")],
)
def test_an_artifact_that_cannot_be_fetched_is_reported(
    stage: Stage, kind: str, message: str
) -> None:
    if kind == "huge":
        stage.upload(bytes(100 << 20))
    else:
        stage.grown(expired=kind == "expired")
        stage.hub.fail_next("GET", r"/zip$", 410)
    ran = stage.post()
    assert (
        ran.code == (3 if kind == "meanwhile" else 2)
        and message in ran.error
        and message in stage.body
    )
    assert "Code size: unknown" in stage.body and stage.hub.blob_requests == []


def test_rules_and_words_are_not_the_artifact_s(stage: Stage) -> None:
    forged = {
        "verdict": {"status": "pass", "findings": []},
        "schema": "code-size-report/1",
    }
    evil = f"{MARKER}\n@everyone [all is well](https://evil.example)"
    stage.upload(
        sides(
            side(BASE),
            side(MERGE, 2_000_000),
            report_json=json.dumps(forged),
            comment_md=evil,
            summary_md=evil,
            report_html="<script>evil</script>",
        )
    )
    ran = stage.post()
    assert ran.outputs["verdict"] == "fail"
    texts = [stage.body, ran.summary, *(path.read_text() for path in ran.out.iterdir())]
    assert not [text for text in texts if "evil" in text or "everyone" in text]
    check = stage.hub.check_runs[0]
    assert "evil" not in json.dumps(check)


def test_the_rules_are_those_of_the_checkout(stage: Stage) -> None:
    stage.configure('thresholds: [{name: none, metrics: ["*"]}]\n')
    stage.grown()
    assert stage.post().outputs["verdict"] == "pass"
    stage.configure("thresholds: 7\n")  # one that cannot be read is as good as none
    ran = stage.post()
    assert ran.outputs["verdict"] == "fail" and "packaged configuration" in ran.said


@pytest.mark.parametrize("count", [10**8, 9 * 10**15, 1 << 53])
def test_numbers_of_an_artifact_are_no_sizes_of_memory(
    stage: Stage, count: int
) -> None:
    base = side(BASE)
    head = side(MERGE, 2_000_000)
    vast = Dispatch(
        executable="main_dispatch_0",
        name="main_dispatch_0",
        kind="matmul",
        sites=count,
        code_bytes=count,
    )
    head = replace(
        head, cells=tuple(replace(cell, dispatches=(vast,)) for cell in head.cells)
    )
    stage.upload(sides(base, head))
    ran = stage.post()
    assert (
        ran.code == 2
        and f"code_bytes of 'main_dispatch_0' is {count:,}, and artifact_bytes is"
        in ran.error
    )
    assert ran.outputs["verdict"] == "unknown" and "code_bytes of" in stage.body


def _sourced(snapshot: Snapshot, sha: str) -> Snapshot:
    return replace(snapshot, source=SourceInfo(sha))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(base=snapshots(), head=snapshots())
def test_any_two_snapshots_make_a_report(
    tmp_path_factory: Any, base: Snapshot, head: Snapshot
) -> None:
    with Stage.opened(tmp_path_factory.mktemp("any")) as stage:
        stage.upload(sides(_sourced(base, BASE), _sourced(head, MERGE)))
        ran = stage.post()
        code = 5 if ran.outputs["verdict"] == "unknown" else 0
        assert (ran.code, ran.error) == (code, "") and len(stage.conclusions) == 1
