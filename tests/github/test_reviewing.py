"""bot.github.reviewing: baselines in their order, pushes, shards, and the rules that a pull request is held against."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL, Stage
from github_runner import MARKER, event, git
from replacing import replace

from bot.core.baseline import Entry, kept
from bot.core.snapshot_json import from_json
from bot.store.entries import path_of, unpack


def longer(name: str) -> str:
    return MODEL.format(name) + "// longer\n"


def compiles(stage: Stage, name: str = "one") -> int:
    """How many models a fake compiled so far; what its options are does not count."""
    log = stage.home / name / "calls.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return sum(json.loads(line)["kind"] == "direct" for line in lines)


# --- baselines, in their order ---------------------------------------------------------------------------------------


def test_the_stored_snapshot_of_the_base_is_used(stage: Stage) -> None:
    main = stage.main()
    assert stage.push(main).code == 0
    (stored,) = stage.store.entries()
    marked = replace(stage.store.load(stored), notes=("this one was stored",))
    (stage.home / "store" / path_of(stored)).unlink()
    stage.store.save(stored, marked)
    ran = stage.pull(*stage.open_pull({"models/a.mlir": longer("a")}))
    assert ran.code == 0, ran.error
    assert ran.report.base.notes == ("this one was stored",)
    assert (
        ran.report.baseline.rule == "first parent of the merge commit; stored snapshot"
    )
    assert (ran.report.baseline.sha, ran.report.baseline.distance) == (main, 0)
    assert ran.states == {"a on vmvx": "changed"}


def test_the_nearest_ancestor_that_gives_the_same_is_used(stage: Stage) -> None:
    first = stage.main()
    stage.push(first)
    for number in range(3):
        last = stage.origin.push_main(f"Words {number}", {"README.md": f"{number}\n"})
    ran = stage.pull(*stage.open_pull({"models/a.mlir": longer("a")}))
    assert ran.code == 0, ran.error
    assert ran.report.base.source.sha == first and ran.report.baseline.sha == last
    assert (
        ran.report.baseline.distance == 3
        and "measured 3 commits before it" in stage.comments()[0]
    )


@pytest.mark.parametrize("lacks", ["another model", "too far", "another report"])
def test_what_gives_something_else_or_is_too_far_or_another_report_s_is_not_used(
    stage: Stage, lacks: str
) -> None:
    near = {
        "store": "directory",
        "directory": str(stage.home / "store"),
        "ancestors": 1,
    }
    stage.push(
        stage.main(
            baseline=near, report_id="other" if lacks == "another report" else "default"
        )
    )
    (stored,) = stage.store.entries()
    assert (stored.report_id == "other") is (lacks == "another report")
    if lacks == "too far":
        stage.origin.push_main("Words", {"README.md": "1\n"})
    last = {
        "another model": {"models/a.mlir": longer("a")},
        "too far": {"README.md": "2\n"},
        "another report": {"code-size.yml": stage.config()},
    }[lacks]
    second = stage.origin.push_main("Last", last)
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert (
        ran.report.base.source.sha == second and ran.report.baseline.distance is None
    ), ran.error
    assert "measured in this run" in ran.report.baseline.rule and ran.states == {
        "a on vmvx": "same"
    }


def test_a_damaged_baseline_is_skipped_for_an_older_one_or_the_base_and_the_next_push_writes_it_anew(
    stage: Stage,
) -> None:
    first = stage.main()
    stage.push(first)
    (good,) = stage.store.entries()
    last = stage.origin.push_main("Words", {"README.md": "1\n"})
    stage.store.save(replace(good, sha=last), stage.store.load(good))
    paths = [
        stage.home / "store" / path_of(replace(good, sha=sha)) for sha in (last, first)
    ]
    pull = stage.open_pull({"notes.txt": "one\n"})
    paths[0].write_bytes(paths[0].read_bytes()[:-9])
    ran = stage.pull(*pull)
    assert ran.code == 0 and ran.report.base.source.sha == first, ran.error
    assert (ran.report.baseline.sha, ran.report.baseline.distance) == (last, 1)
    paths[1].write_bytes(paths[1].read_bytes()[:-9])
    ran = stage.pull(*pull)
    assert ran.code == 0 and ran.states == {"a on vmvx": "same"}, ran.error
    assert "measured in this run" in ran.report.baseline.rule and ran.report.notes == ()
    assert all(f"{path}: is not a complete xz file" in ran.said for path in paths)
    assert stage.comments() == [] and stage.conclusions == ["success", "success"]
    assert stage.push(last).code == 0
    unpack(paths[0].read_bytes(), str(paths[0]))
    assert stage.pull(*pull).report.baseline.distance == 0


def test_of_several_baselines_of_one_commit_the_newest_stands_for_an_unknown_compiler(
    stage: Stage,
) -> None:
    main = stage.main()
    stage.push(main)
    (first,) = stage.store.entries()
    whole = stage.store.load(first)
    for age, digest in enumerate(("f", "0", "8")):
        entry = replace(first, digest=digest * 64)
        stage.store.save(entry, replace(whole, notes=(digest,)))
        os.utime(
            stage.home / "store" / path_of(entry),
            (4_000_000_000 - age, 4_000_000_000 - age),
        )
    head, merge = stage.open_pull({"models/a.mlir": longer("a")})
    ran = stage.pull(head, merge, head=stage.spec("one"))
    assert (
        ran.report.base.notes == ("f",)
        and "stored snapshot" in ran.report.baseline.rule
    )
    assert stage.pull(head, merge).report.base.notes == whole.notes, (
        "the digest is known here, and decides"
    )


def test_a_base_that_cannot_be_measured_is_said_and_fails_the_check(
    stage: Stage,
) -> None:
    stage.main(compiler={"head": "/no/such/compiler"})
    ran = stage.pull(*stage.open_pull({"code-size.yml": stage.config()}))
    assert (
        ran.code == 5
        and ran.outputs["verdict"] == ran.report.verdict.status == "unknown"
    ), ran.error
    assert (
        "report.json: no verdict: No baseline: /no/such/compiler: is not a compiler"
        in ran.said
    )
    assert ran.report.broke.startswith(
        "No baseline: /no/such/compiler: is not a compiler"
    )
    assert (
        ran.states == {"a on vmvx": "unmeasured"} and ran.outputs["unmeasured"] != "0"
    )
    (body,) = stage.comments()
    assert "No baseline" in body and "/no/such/compiler" in body
    assert (
        "**Code size: unknown, because nothing could be compared** · 0 of 1 build"
        " compared: 1 not measured on base" in body
    )
    assert "✅" not in body and "compiler not known → " in body
    assert stage.conclusions == ["failure"]
    assert (
        ran.snapshot("head.json").cells[0].measured
        and ran.snapshot("base.json").cells == ()
    )


def test_a_base_that_cannot_be_measured_any_more_was_once(stage: Stage) -> None:
    main = stage.main()
    stage.push(main)
    (stage.home / "one" / "bin" / "iree-compile").unlink()
    stage.compiler("two", [{"do": "differ"}])
    ran = stage.pull(*stage.open_pull({"code-size.yml": stage.config("two")}))
    assert ran.code == 0 and ran.report.broke == "", ran.error
    assert "stored snapshot" in ran.report.baseline.rule and ran.states == {
        "a on vmvx": "changed"
    }


def test_a_head_compiler_alone_says_nothing_of_the_base(stage: Stage) -> None:
    main = stage.main()
    head, merge = stage.open_pull({"models/a.mlir": longer("a")})
    ran = stage.pull(head, merge, head=stage.spec("one"))
    assert (
        "No baseline: the head compiler is an input of this run" in ran.report.broke
    ), ran.error
    stage.push(main, head=stage.spec("one"))
    ran = stage.pull(head, merge, head=stage.spec("one"))
    assert ran.report.broke == "" and ran.states == {"a on vmvx": "changed"}


def test_nothing_measured_at_all_is_no_verdict_with_a_whole_report(
    stage: Stage,
) -> None:
    stage.compiler("one", [{"do": "fail", "kind": "direct"}])
    stage.main()
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert ran.code == 5 and "no build could be measured on either side" in ran.said
    assert ran.outputs["verdict"] == "unknown" and stage.conclusions == ["failure"]
    assert (
        ran.out / "report.json"
    ).is_file() and "already failing on base" in stage.comments()[0]


@pytest.mark.slow
def test_a_model_that_only_head_cannot_compile_in_time_warns_with_the_limit(
    stage: Stage,
) -> None:
    stage.compiler("two", [{"do": "hang", "model": "// model b", "kind": "direct"}])
    two = {"targets": ["vmvx"], "timeout_seconds": 2}
    stage.main({"models/b.mlir": MODEL.format("b")}, **two)
    ran = stage.pull(*stage.open_pull({"code-size.yml": stage.config("two", **two)}))
    assert ran.code == 0 and ran.states == {
        "a on vmvx": "same",
        "b on vmvx": "unmeasured",
    }, ran.error
    assert ran.outputs["verdict"] == "warn" and stage.conclusions == ["neutral"]
    assert "1 of 2 builds compared: 1 timed out on head" in stage.comments()[0]
    assert stage.hub.check_runs[0]["output"]["title"].startswith(
        "⚠️ Code size: 1 of 2 builds compared: 1 timed out on head"
    )


def test_a_repository_that_went_away_ends_the_run(stage: Stage) -> None:
    stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    merged = stage.home / "gone.git"

    def leave() -> None:
        stage.origin.bare.rename(merged)

    stage.before_act = leave
    ran = stage.pull(head, merge, command="measure")
    assert ran.code == 3 and "cannot reach origin" in ran.error, ran.error


# --- rules -----------------------------------------------------------------------------------------------------------


def test_a_pull_request_is_judged_and_drawn_by_what_its_base_says(stage: Stage) -> None:
    files = {
        "look/comment.md.j2": "{{ marker }}\nbase's own words\n",
        "models/b.mlir": MODEL.format("b"),
    }
    stage.main(files, states={"removed": "fail"}, fail_job=True, templates="look")
    relaxed = stage.config(states={"removed": "pass"}, templates="look")
    ran = stage.pull(
        *stage.open_pull(
            {
                "models/b.mlir": None,
                "code-size.yml": relaxed,
                "look/comment.md.j2": "head's words\n",
            }
        )
    )
    assert ran.code == 1 and ran.outputs["verdict"] == "fail", ran.error
    assert "base's own words" in (ran.out / "comment.md").read_text()


def test_thresholds_that_change_are_noted_and_lines_that_move_are_not(
    stage: Stage,
) -> None:
    rules = [{"metrics": ["artifact_bytes"], "fail": "500%"}, {"metrics": ["*"]}]
    stage.main()
    changed = stage.config(thresholds=rules)
    ran = stage.pull(*stage.open_pull({"code-size.yml": changed}))
    assert ran.code == 0 and any(
        "changes the thresholds" in note for note in ran.report.notes
    ), ran.error
    assert "the thresholds of its base apply" in stage.comments()[0]
    stage.origin.push_main("The same", {"code-size.yml": changed})
    ran = stage.pull(
        *stage.open_pull({"code-size.yml": f"# moved\n\n{changed}"}, 2), number=2
    )
    assert ran.code == 0 and not any(
        "thresholds" in note for note in ran.report.notes
    ), ran.error


# --- pushes ----------------------------------------------------------------------------------------------------------


def test_a_push_is_stored_once_and_one_elsewhere_not_at_all(stage: Stage) -> None:
    main = stage.main()
    git(stage.origin.work, "push", "-q", "origin", "main:other")
    payload = event("push.branch") | {
        "ref": "refs/heads/other",
        "after": main,
        "deleted": False,
    }
    ran = stage.run("push", payload, main, ref="refs/heads/other")
    assert (
        ran.code == 0
        and "nothing to do" in ran.said
        and list(stage.store.entries()) == []
    )
    ran = stage.push(main)
    (entry,) = stage.store.entries()
    assert (
        ran.code == 0
        and entry.sha == main
        and entry.report_id == "default"
        and "stored" in ran.said
    )
    assert stage.store.load(entry) == kept(ran.snapshot("head.json"))
    count = compiles(stage)
    again = stage.push(main)
    assert "nothing to measure" in again.said and "of the same commit" in again.said
    text_only = stage.push(stage.origin.push_main("Words", {"README.md": "one\n"}))
    assert "nothing to measure" in text_only.said and "1 commit older" in text_only.said
    assert len(stage.store.entries()) == 1 and compiles(stage) == count
    second = stage.origin.push_main("Another model", {"models/a.mlir": longer("a")})
    stage.push(second)
    assert [stored.sha for stored in stage.store.entries() if stored != entry] == [
        second
    ]


def test_the_data_branch_is_the_store_under_actions(stage: Stage) -> None:
    main = stage.main(baseline={"store": "auto", "branch": "sizes"})
    ran = stage.push(main)
    assert ran.code == 0, ran.error
    listed = git(
        stage.origin.bare, "ls-tree", "-r", "--name-only", "sizes"
    ).splitlines()
    (path,) = [name for name in listed if name.startswith("snapshots/")]
    assert f"/default/{main[:2]}/{main}." in path
    tip = git(stage.origin.bare, "rev-parse", "sizes")
    assert (
        "nothing to measure" in stage.push(main).said
        and git(stage.origin.bare, "rev-parse", "sizes") == tip
    )
    ran = stage.pull(*stage.open_pull({"models/a.mlir": longer("a")}))
    assert "stored snapshot" in ran.report.baseline.rule and ran.states == {
        "a on vmvx": "changed"
    }


# --- shards ----------------------------------------------------------------------------------------------------------


def suite(stage: Stage) -> str:
    models = {f"models/{name}.mlir": MODEL.format(name) for name in "bcd"}
    return stage.main(models, targets=["vmvx", "llvm-cpu-x86_64"])


def measured_parts(
    stage: Stage, head: str, merge: str, count: int
) -> tuple[str, list[Path]]:
    """The plan, and the file of each of its shards."""
    planned = stage.pull(head, merge, command="plan", shards=str(count))
    assert planned.code == 0, planned.error
    plan = planned.outputs["matrix"]
    assert json.loads(planned.printed) == json.loads(plan)
    files = []
    for row in json.loads(plan)["include"]:
        ran = stage.pull(head, merge, command="measure", shard=row["shard"], plan=plan)
        assert ran.code == 0, ran.error
        files.append(ran.out / f"head-{row['shard'].replace('/', '-of-')}.json")
        assert len(from_json(files[-1].read_text()).cells) == row["cells"]
    return plan, files


@pytest.mark.parametrize("stored", [False, True])
def test_shards_together_are_the_unsharded_run(stage: Stage, stored: bool) -> None:
    main = suite(stage)
    if stored:
        stage.push(main)
    head, merge = stage.open_pull({"models/a.mlir": longer("a")})
    plan, files = measured_parts(stage, head, merge, 3)
    assert [row["shard"] for row in json.loads(plan)["include"]] == [
        "1/3",
        "2/3",
        "3/3",
    ]
    joined = stage.pull(head, merge, plan=plan, parts=" ".join(map(str, files)))
    whole = stage.pull(head, merge)
    assert joined.code == whole.code == 0, joined.error
    for name in ("head.json", "base.json", "report.json"):
        assert (joined.out / name).read_bytes() == (whole.out / name).read_bytes(), name
    assert [cell.compiles for cell in joined.report.head.cells].count(1) == len(
        joined.report.head.cells
    ) - 2
    assert (
        joined.states == whole.states
        and sum(state == "changed" for state in joined.states.values()) == 2
    )


def test_a_compiler_that_only_the_matrix_has_is_not_missed(stage: Stage) -> None:
    stage.compiler("two", [{"do": "differ", "model": "// model a"}])
    main = suite(stage)
    stage.push(main)
    head, merge = stage.open_pull(
        {"code-size.yml": stage.config("two", targets=["vmvx", "llvm-cpu-x86_64"])}
    )
    plan, files = measured_parts(stage, head, merge, 2)
    (stage.home / "two" / "bin" / "iree-compile").unlink()
    joined = stage.pull(head, merge, plan=plan, parts=" ".join(map(str, files)))
    assert (
        joined.code == 0 and "changed builds are not compiled twice" in joined.said
    ), joined.error
    assert sum(state == "changed" for state in joined.states.values()) == 2


def test_a_lost_shard_is_named_and_its_cells_are_unmeasured(stage: Stage) -> None:
    suite(stage)
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    plan, files = measured_parts(stage, head, merge, 2)
    lost = from_json(files[0].read_text())
    files[0].unlink()
    ran = stage.pull(
        head, merge, plan=plan, parts=f"{files[0]} {files[1].parent}/*.json"
    )
    assert ran.code == 0, ran.error
    note = (
        f"shard 1/2 is lost, with its {len(lost.cells)}"
        f" build{'s' * (len(lost.cells) > 1)}"
    )
    assert note in ran.report.head.notes and "shard 1/2 is lost" in stage.comments()[0]
    assert {key for key, state in ran.states.items() if state == "unmeasured"} == {
        str(cell.key) for cell in lost.cells
    }
    same = 8 - len(lost.cells)
    assert ran.outputs["same"] == str(same)
    assert ran.outputs["verdict"] == "warn" and stage.conclusions == ["neutral"]
    assert (
        f"{same} of 8 builds compared: {len(lost.cells)} not measured on head"
        in stage.comments()[0]
    )


def test_a_shard_names_the_cells_that_failed(stage: Stage) -> None:
    stage.compiler("one", [{"do": "fail", "model": "// model b", "kind": "direct"}])
    suite(stage)
    ran = stage.pull(
        *stage.open_pull({"notes.txt": "one\n"}), command="measure", shard="1/1"
    )
    failures = [line for line in ran.news.said if line.startswith("failed: ")]
    assert ran.code == 0 and [line.split(": ")[1] for line in failures] == [
        "b on llvm-cpu-x86_64",
        "b on vmvx",
    ], ran.said
    assert all(line.split(": ", 2)[2] for line in failures)


def test_parts_and_plans_that_do_not_fit_are_one_line(stage: Stage) -> None:
    stage.main()
    pull = stage.open_pull({"notes.txt": "one\n"})
    part = str(stage.pull(*pull).out / "head.json")
    planned = stage.pull(*pull, command="plan", shards="1").outputs["matrix"]
    of_others = "the plan: has 1 shards, and 1/8 is not among them"
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"command": "measure", "shard": "1/8", "plan": planned}, of_others),
        (
            {"parts": "parts/*.json", "plan": '{"include": []}'},
            "input parts: match no file",
        ),
        ({"command": "plan"}, "input shards: is missing"),
        *(
            (
                {"command": "measure", "parts": part, "plan": plan},
                "input plan: is not a plan",
            )
            for plan in ("no plan", "[]", '{"include": [{}]}', '{"include": 1}')
        ),
    ]
    for inputs, line in refusals:
        ran = stage.pull(*pull, **inputs)
        assert ran.code == 2 and ran.error.startswith(line), ran.error
        assert "match" not in line or line in ran.summary
        assert stage.conclusions == ["success"], (
            "the verdict of the same merge commit stays"
        )


def test_a_plan_is_made_without_the_store_if_need_be(stage: Stage) -> None:
    suite(stage)
    stage.push(git(stage.origin.bare, "rev-parse", "main"))
    (stored,) = stage.store.entries()
    (stage.home / "store" / path_of(stored)).write_bytes(b"torn")
    ran = stage.pull(
        *stage.open_pull({"notes.txt": "one\n"}), command="plan", shards="2"
    )
    assert ran.code == 0 and len(json.loads(ran.outputs["matrix"])["include"]) == 2, (
        ran.error
    )
    assert "skipped a stored baseline that is damaged" in ran.said


def test_a_push_is_joined_from_its_parts(stage: Stage) -> None:
    main = suite(stage)
    plan = stage.push(main, command="plan", shards="2").outputs["matrix"]
    parts = [
        stage.push(main, command="measure", shard=f"{index}/2", plan=plan).out
        for index in (1, 2)
    ]
    ran = stage.push(main, plan=plan, parts=f"{parts[0]}/head-*.json")
    assert ran.code == 2 and re.search(
        r"^input parts: lack \d of 8 builds, such as .* on ", ran.error
    ), ran.error
    assert stage.store.entries() == [], "a baseline that lacks a shard is not stored"
    ran = stage.push(
        main, plan=plan, parts=" ".join(f"{part}/head-*.json" for part in parts)
    )
    (entry,) = stage.store.entries()
    assert (
        ran.code == 0
        and isinstance(entry, Entry)
        and len(stage.store.load(entry).cells) == 8
    ), ran.error


def test_parts_of_another_compiler_or_commit_are_refused(stage: Stage) -> None:
    """As `nightly` is another one by the time that they are joined: it would be stored under that one's digest."""
    main = stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    _, (of_pull,) = measured_parts(stage, head, merge, 1)
    of_main = stage.push(main, command="measure", shard="1/1").out / "head-1-of-1.json"
    ran = stage.push(main, parts=str(of_pull))
    assert ran.code == 2 and ran.error.startswith(
        f"input parts: are of commit {merge[:10]}, but {main[:10]} is needed"
    )
    stage.compiler("one", [{"do": "differ"}], version="3.13.0rc2")
    for ran in (
        stage.push(main, parts=str(of_main)),
        stage.pull(head, merge, parts=str(of_pull)),
    ):
        assert ran.code == 2, ran.said
        assert re.match(
            r"input parts: are of compiler 3.13.0rc1 \(\w+\), and here it is"
            r" 3.13.0rc2 \(",
            ran.error,
        )
    assert stage.store.entries() == [] and stage.conclusions == ["failure"]


# --- by hand, with an audience ---------------------------------------------------------------------------------------


def test_a_run_by_hand_goes_to_the_summary_or_has_its_own_comment_on_a_pull_request(
    stage: Stage,
) -> None:
    stage.main()
    stage.origin.push_main("Second", {"models/a.mlir": longer("a")})
    stage.open_pull({"notes.txt": "one\n"})
    ran = stage.dispatch()
    assert ran.code == 0 and ran.outputs["changed"] == "1" and "vmvx" in ran.summary, (
        ran.error
    )
    assert stage.hub.comments(1) == [] and stage.hub.check_runs == []
    ran = stage.dispatch(pull_request="1")
    assert ran.code == 0, ran.error
    marker = MARKER.replace("default", "default.manual")
    assert (
        len(stage.comments(marker)) == 1
        and stage.comments() == []
        and stage.hub.check_runs == []
    )
    assert ran.outputs["comment-url"].endswith(str(stage.hub.comments(1)[0]["id"]))
