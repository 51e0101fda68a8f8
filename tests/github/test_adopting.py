"""The pull request that brings the configuration: what is measured from now on, and never more than was compared."""

from __future__ import annotations

import re

import pytest
from action_stage import MODEL, Stage
from test_comment import assert_harmless
from test_opening import install_release

pytestmark = pytest.mark.slow

A, B = MODEL.format("a"), MODEL.format("b")


def first_line(stage: Stage) -> str:
    (body,) = stage.comments()
    return next(line for line in body.splitlines() if not line.startswith("<!--"))


def test_without_a_model_on_base_nothing_is_compared_and_that_is_said(stage: Stage) -> None:
    main = stage.origin.push_main("Nothing yet", {"README.md": "# Hello\n"})
    files = {"code-size.yml": stage.config(targets=["vmvx", "llvm-cpu-x86_64"]), "models/a.mlir": A, "models/b.mlir": B}
    ran = stage.pull(*stage.open_pull(files))
    assert ran.code == 0, ran.error
    assert set(ran.states.values()) == {"new"} and len(ran.states) == 4
    assert ran.outputs["verdict"] == "warn" and stage.conclusions == ["neutral"]
    size = sum(cell.value("artifact_bytes") or 0 for cell in ran.report.head.cells)
    assert first_line(stage) == f"🆕 **Code size is measured from now on: 2 models on 2 targets, {size:,} B** · 4 new"
    (body,) = stage.comments()
    assert "brings the configuration `code-size.yml`, which the base commit has not: " in body
    assert "nothing changed" not in body and "identical" not in body
    assert "Every build: artifact, executables and stack" in body
    assert ran.report.baseline.sha == main
    assert_harmless(re.sub(r"<!--.*?-->|\[workflow run\]\(<[^>]*>\)", "", body))
    assert stage.hub.check_runs[0]["output"]["title"].startswith("🆕 Code size is measured from now on: 2 models")


def test_models_that_base_has_are_compared_under_the_new_configuration(stage: Stage) -> None:
    stage.origin.push_main("Models", {"models/a.mlir": A, "models/b.mlir": B})
    files = {"code-size.yml": stage.config(), "models/b.mlir": B + "// longer\n", "models/c.mlir": MODEL.format("c")}
    ran = stage.pull(*stage.open_pull(files))
    assert ran.code == 0, ran.error
    assert ran.states == {"a on vmvx": "same", "b on vmvx": "changed", "c on vmvx": "new"}
    assert first_line(stage).endswith(" · 1 changed at the same size, 1 new")
    assert "it has no code-size.yml, so the head's says what of it is measured" in ran.report.baseline.rule


def test_where_nothing_else_changes_there_is_a_comment_all_the_same(stage: Stage) -> None:
    stage.origin.push_main("Models", {"models/a.mlir": A})
    ran = stage.pull(*stage.open_pull({".github/code-size.yml": stage.config(models=["../models/*.mlir"])}))
    assert ran.states == {"a on vmvx": "same"} and ran.code == 0, ran.error
    assert ran.outputs["verdict"] == "pass" and stage.conclusions == ["success"]
    assert "measured from now on: 1 model on 1 target" in first_line(stage)
    assert first_line(stage).endswith(" · 1 of 1 build bit-identical")


def test_each_side_has_its_own_pin_and_base_the_heads_where_it_has_none(stage: Stage) -> None:
    for version in ("3.12.0", "3.13.0"):
        install_release(stage, version)
    pinned = stage.config(compiler={"requirements": "requirements.txt"})
    stage.origin.push_main("Models", {"models/a.mlir": A, "requirements.txt": "iree-base-compiler==3.12.0\n"})
    files = {"code-size.yml": pinned, "requirements.txt": "iree-base-compiler==3.13.0\n"}
    ran = stage.pull(*stage.open_pull(files))
    assert (ran.report.base.compiler.version, ran.report.head.compiler.version) == ("3.12.0", "3.13.0"), ran.error
    assert ran.states == {"a on vmvx": "changed"}
    stage.origin.push_main("No pin", {"requirements.txt": "numpy\n"})
    ran = stage.pull(*stage.open_pull(files, 2), number=2)
    assert (ran.report.base.compiler.version, ran.report.head.compiler.version) == ("3.13.0", "3.13.0"), ran.error
    assert ran.states == {"a on vmvx": "same"}


def test_what_does_not_compile_from_the_start_does_not_fail_it_unless_nothing_does(
    stage: Stage,
) -> None:
    stage.compiler("two", [{"model": "bad", "do": "fail"}])
    stage.origin.push_main("Nothing yet", {"README.md": "# Hello\n"})
    files = {"code-size.yml": stage.config("two"), "models/a.mlir": A, "models/bad.mlir": MODEL.format("bad")}
    ran = stage.pull(*stage.open_pull(files))
    assert ran.code == 0 and ran.outputs["verdict"] == "warn", ran.error
    assert "· 1 of 2 builds newly broken" in first_line(stage) and "| `bad` | `vmvx` | n/a |" in stage.comments()[0]
    ran = stage.pull(*stage.open_pull({"models/a.mlir": None}))
    assert ran.code == 5 and ran.outputs["verdict"] == "unknown" and stage.conclusions == ["neutral", "failure"]
    assert first_line(stage).startswith("⚪ **Code size: unknown")


def test_a_compiler_that_only_the_head_has_leaves_base_alone(stage: Stage) -> None:
    stage.origin.push_main("Models", {"models/a.mlir": A})
    ran = stage.pull(*stage.open_pull({"code-size.yml": stage.config()}), head=stage.spec("one"))
    assert ran.code == 0 and ran.states == {"a on vmvx": "new"}, ran.error
    assert "base is not measured: the head compiler is an input of this run" in stage.comments()[0]


def test_a_link_on_base_that_leaves_the_repository_is_refused(stage: Stage) -> None:
    (stage.home / "secret.mlir").write_text("the-secret\n")
    stage.origin.push_main("Nothing yet", {"README.md": "# Hello\n"})
    (stage.origin.work / "models").mkdir()
    (stage.origin.work / "models/a.mlir").symlink_to(stage.home / "secret.mlir")
    stage.origin.push_main("A link", {"notes.txt": "one\n"})
    ran = stage.pull(*stage.open_pull({"code-size.yml": stage.config(), "models/a.mlir": None, "models/b.mlir": B}))
    assert ran.states == {"b on vmvx": "new"}, ran.error


def test_a_run_by_hand_with_a_ref_that_has_none_compares_that_refs_files(stage: Stage) -> None:
    first = stage.origin.push_main("Models", {"models/a.mlir": A})
    stage.origin.push_main("The bot", {"code-size.yml": stage.config(), "models/a.mlir": A + "// longer\n"})
    ran = stage.dispatch(base=first)
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}, ran.error
    assert "from now on" not in ran.summary
