"""bot.github.sides and bot.github.opening: which commits, configurations, models and compilers are the two sides of an event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from action_stage import MODEL, Stage
from fake_wheels import entries, wheel_name, write_wheel
from github_runner import git

from bot.compiler import wheels

pytestmark = pytest.mark.slow


def install_release(stage: Stage, version: str) -> None:
    """A release whose compiler is a fake, as it is in the cache once it was fetched."""
    fake = stage.compiler(
        f"release-{version}",
        [{"do": "differ"}] if version == "3.13.0" else [],
        version=version,
    )
    wheel = write_wheel(
        stage.home / wheel_name(version), entries(fake, version.encode())
    )
    wheels._unpack_into(wheel, wheels.release_home(version, stage.home / "cache"))


# --- pull requests ---------------------------------------------------------------------------------------------------


def test_the_base_is_the_first_parent_of_the_merge_commit_also_when_main_went_on(
    stage: Stage,
) -> None:
    main = stage.main()
    head, merge = stage.open_pull({"models/a.mlir": MODEL.format("a") + "// longer\n"})
    later = stage.origin.push_main(
        "Later", {"models/later.mlir": MODEL.format("later")}
    )
    ran = stage.pull(head, merge)
    assert ran.code == 0, ran.error
    assert ran.report.baseline.sha == main and ran.report.head.source.sha == merge
    assert ran.report.base.source.sha == main
    (body,) = stage.comments()
    assert main[:10] in body and merge[:10] in body and later[:10] not in body
    assert "first parent of the merge commit" in body
    assert (
        ran.states == {"a on vmvx": "changed"} and "later" not in ran.report.head.models
    )


@pytest.mark.parametrize("lie", ["an older merge", "a later merge", "no merge"])
def test_a_commit_that_is_no_merge_of_this_head_is_refused_and_that_is_said(
    stage: Stage, lie: str
) -> None:
    stage.main()
    first, older = stage.open_pull({"notes.txt": "one\n"})
    second, later = stage.open_pull({"notes.txt": "two\n"})  # on top of the first
    head, merge = {
        "an older merge": (second, older),
        "a later merge": (first, later),
        "no merge": (first, first),
    }[lie]
    ran = stage.pull(head, merge)
    assert (
        ran.code == 2
        and merge[:10] in ran.error
        and "is not the merge commit" in ran.error
    )
    assert (
        stage.conclusions == ["failure"]
        and ran.summary
        and ran.outputs["verdict"] == "unknown"
    )
    refusals = ["is not the merge commit" in body for body in stage.comments()]
    assert refusals == ([True] if head == second else []), (
        "of an older head the check alone is told"
    )


def test_a_requirements_file_is_named_from_the_top_of_the_repository(
    stage: Stage,
) -> None:
    """As the README has it: the configuration is in .github, and the pin is not."""
    install_release(stage, "3.12.0")
    text = stage.config(
        compiler={"requirements": "requirements.txt"}, models=["../models/*.mlir"]
    )
    files = {
        ".github/code-size.yml": text,
        "code-size.yml": None,
        "requirements.txt": "iree-base-compiler==3.12.0\n",
    }
    stage.main()
    stage.origin.push_main("Elsewhere", files)
    ran = stage.pull(*stage.open_pull({"notes.txt": "one\n"}))
    assert ran.code == 0 and ran.report.head.compiler.version == "3.12.0", ran.error


BROKEN: dict[str, tuple[dict[str, str], dict[str, Any], dict[str, str | None], str]] = {
    "a pin of no release": (
        {"pins/requirements.txt": "iree-base-compiler>=3\n"},
        {"compiler": {"requirements": "pins/requirements.txt"}},
        {"notes.txt": "one\n"},
        "pins/requirements.txt:1: ",
    ),
    "a broken configuration": (
        {},
        {},
        {"code-size.yml": "schema: code-size-config/1\nmodel: []\n"},
        "code-size.yml:2: ",
    ),
    "an empty model": ({}, {}, {"models/b.mlir": "\n"}, "models/b.mlir: is empty"),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_a_broken_file_is_named_as_the_repository_has_it(
    stage: Stage, mistake: str
) -> None:
    files, keys, change, line = BROKEN[mistake]
    stage.main(files, **keys)
    ran = stage.pull(*stage.open_pull(change))
    assert ran.code == 2 and ran.error.startswith(line), ran.error
    assert line.strip(": ") in stage.comments()[0] and stage.conclusions == ["failure"]


def test_the_configuration_of_the_input_is_used_on_both_sides_and_has_to_be_there(
    stage: Stage,
) -> None:
    stage.main(
        {"ci/size.yml": stage.config(models=["*.mlir"]), "ci/x.mlir": MODEL.format("x")}
    )
    pull = stage.open_pull({"ci/x.mlir": MODEL.format("x") + "// more\n"})
    assert stage.pull(*pull, config="ci/size.yml").states == {"x on vmvx": "changed"}
    ran = stage.pull(*pull, config="ci/other.yml")
    assert ran.code == 2 and ran.error.startswith(
        "ci/other.yml: does not exist at this commit (commit one"
    )
    assert "ci/other.yml" in stage.comments()[0]
    ran = stage.pull(*pull, config="/etc/hostname")
    assert ran.code == 2 and ran.error.startswith(
        "/etc/hostname: leaves the repository"
    ), ran.error


# --- inputs that name files -------------------------------------------------------------------------------------------


def built(stage: Stage, name: str, *versions: str) -> Path:
    """A directory of wheels as a build leaves it: the compiler's, and another one."""
    dist = stage.home / name
    for version in versions:
        fake = stage.compiler(
            f"{name}-{version}",
            [{"do": "differ"}] if name == "dist" else [],
            version=version,
        )
        write_wheel(
            dist / wheel_name(version), entries(fake, f"{name} {version}".encode())
        )
    write_wheel(dist / "iree_base_runtime-3.13.0-py3-none-any.whl", {})
    return dist


def test_wheels_of_both_sides_by_a_directory_and_by_a_glob(stage: Stage) -> None:
    stage.main(compiler=None)
    base = built(stage, "dist-base", "3.12.0")
    head = built(stage, "dist", "3.13.0")
    pull = stage.open_pull({"notes.txt": "one\n"})
    ran = stage.pull(*pull, base=str(base), head=f"{head}/*.whl")
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}, ran.error
    assert (ran.report.base.compiler.version, ran.report.head.compiler.version) == (
        "3.12.0",
        "3.13.0",
    )
    assert ran.report.baseline.rule.endswith(
        f"input base: {base}; measured in this run"
    )


def test_what_could_be_two_compilers_or_none_is_one_line_and_no_pass(
    stage: Stage,
) -> None:
    stage.main()
    two = built(stage, "two", "3.12.0", "3.13.0")
    none = built(stage, "none")
    pull = stage.open_pull({"notes.txt": "one\n"})
    messages = {
        f"{two}": "two: several wheels fit this machine: iree_base_compiler-3.12.0",
        f"{two}/*.whl": (
            "*.whl: several wheels fit this machine: iree_base_compiler-3.12.0"
        ),
        f"{none}": f"{none}: holds no iree-compile, and no iree_base_compiler wheel",
        f"{none}/*.whl": f"{none}/*.whl: matches 1 wheel, but none is of the compiler",
    }
    for head, line in messages.items():
        ran = stage.pull(*pull, head=head)
        assert (
            ran.code in (2, 4) and ran.error.startswith(line) and "\n" not in ran.error
        ), ran.error
        assert ran.outputs["verdict"] == "unknown" and "✅" not in "".join(
            stage.comments()
        )
    ran = stage.pull(*pull, base=str(none))
    assert ran.code == 5 and ran.report.broke.startswith(
        f"No baseline: {none}: holds no iree-compile"
    ), ran.error


# --- what leaves the repository --------------------------------------------------------------------------------------


def link(stage: Stage, name: str, target: Path) -> tuple[str, str]:
    """A pull request that makes `name` a link to a file of the machine."""
    git(stage.origin.work, "checkout", "-q", "-b", "topic-1", "main")
    path = stage.origin.work / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target)
    return stage.open_pull({"notes.txt": "linked\n"})


@pytest.mark.parametrize(
    "name", ["models/b.mlir", "code-size.yml", "requirements.txt", "templates/x.j2"]
)
def test_a_link_that_leaves_the_repository_is_refused(stage: Stage, name: str) -> None:
    secret = stage.home / "secret.mlir"
    secret.write_text("the-secret: of the machine\n")
    stage.main(
        {
            "requirements.txt": "iree-base-compiler==3.13.0\n",
            "templates/notes.txt": "ours\n",
        },
        compiler={"requirements": "requirements.txt"},
        templates="templates",
    )
    ran = stage.pull(*link(stage, name, secret))
    assert ran.code == 2 and ran.error.startswith(f"{name}: leaves the repository"), (
        ran.error
    )
    assert "the-secret" not in ran.error + ran.summary + "".join(stage.comments())
    assert "leaves the repository" in stage.comments()[0]


@pytest.mark.parametrize("pattern", ["../../../*.mlir", "{home}/*.mlir"])
def test_models_of_elsewhere_are_refused(
    stage: Stage, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.home / "deep").mkdir()
    (stage.home / "other.mlir").write_text(MODEL.format("other"))
    monkeypatch.setattr("tempfile.tempdir", str(stage.home / "deep"))
    stage.main()
    ran = stage.pull(
        *stage.open_pull(
            {"code-size.yml": stage.config(models=[pattern.format(home=stage.home)])}
        )
    )
    assert ran.code == 2 and "leaves the repository" in ran.error, ran.error


# --- by hand ---------------------------------------------------------------------------------------------------------


def history(stage: Stage) -> tuple[str, str]:
    """Two commits on main, of which the second changes the model."""
    first = stage.main()
    git(stage.origin.work, "tag", "-a", "v1", "-m", "one", first)
    git(stage.origin.work, "branch", "old", first)
    git(stage.origin.work, "push", "-q", "origin", "v1", "old")
    return first, stage.origin.push_main(
        "Second", {"models/a.mlir": MODEL.format("a") + "// second\n"}
    )


def test_a_git_ref_is_a_side_with_its_own_files_also_where_it_looks_like_a_release(
    stage: Stage,
) -> None:
    first, second = history(stage)
    branches = ("3.13.x", "3.13-fixes", "v3.13.0")
    git(
        stage.origin.work,
        "push",
        "-q",
        "origin",
        *(f"{first}:refs/heads/{name}" for name in branches),
    )
    for ref in (first, "v1", "old", "ref:old", "refs/heads/old", *branches):
        ran = stage.dispatch(base=ref)
        assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}, ran.error
        assert (ran.report.base.source.sha, ran.report.head.source.sha) == (
            first,
            second,
        )
        assert "input base:" in ran.report.baseline.rule and ran.summary


def test_without_a_base_it_is_the_first_parent_where_there_is_one(stage: Stage) -> None:
    first, second = history(stage)
    before = stage.dispatch()
    assert (before.report.baseline.sha, before.report.head.source.sha) == (
        first,
        second,
    ), before.error
    assert "first parent of the head commit" in before.report.baseline.rule
    ran = stage.dispatch(head=str(before.out / "head.json"))
    assert ran.code == 2 and ran.error.startswith("input base: no base side"), ran.error
    ran = stage.dispatch(first)
    assert ran.code == 2 and ran.error.startswith("input base: no base side"), ran.error
    ran = stage.dispatch(base="no-such-branch")
    assert ran.code == 2 and ran.error.startswith(
        "input base: 'no-such-branch' is neither a SPEC nor a git ref"
    )
    assert "\n" not in ran.error and ran.summary


def test_a_commit_that_begins_with_a_digit_is_no_release(stage: Stage) -> None:
    stage.main()
    for number in range(100):
        sha = stage.origin.push_main(f"try {number}", {"notes.txt": f"{number}\n"})
        if sha[0].isdigit():
            break
    stage.origin.push_main("Last", {"models/a.mlir": MODEL.format("a") + "// last\n"})
    ran = stage.dispatch(base=sha)
    assert ran.code == 0 and ran.report.base.source.sha == sha, ran.error


def test_a_release_is_a_side(stage: Stage) -> None:
    install_release(stage, "3.12.0")
    stage.main()
    ran = stage.dispatch(base="3.12.0", head="iree-base-compiler==3.12.0")
    assert ran.code == 0 and ran.states == {"a on vmvx": "same"}, ran.error


def test_models_targets_and_flags_are_selected(stage: Stage) -> None:
    stage.main(
        {"models/b.mlir": MODEL.format("b")}, targets=["vmvx", "llvm-cpu-x86_64"]
    )
    stage.origin.push_main("Second", {"notes.txt": "two\n"})
    ran = stage.dispatch(models="b", targets="vm*", flags="--iree-opt-level=O2")
    assert ran.states == {"b on vmvx": "same"} and ran.code == 0, ran.error
    assert "--iree-opt-level=O2" in ran.report.head.flags
    assert any(
        "--iree-opt-level=O2" in call
        for call in (stage.home / "one" / "calls.jsonl").read_text().splitlines()
    )


def test_what_is_selected_is_selected_in_snapshots_and_stored_baselines_too(
    stage: Stage,
) -> None:
    main = stage.main({"models/b.mlir": MODEL.format("b")})
    stage.push(main)
    whole = stage.dispatch(base=main)
    assert whole.states == {"a on vmvx": "same", "b on vmvx": "same"}, whole.error
    for base, head in (
        (main, ""),
        (str(whole.out / "base.json"), ""),
        *[(str(whole.out / "base.json"),) * 2],
    ):
        ran = stage.dispatch(models="b", base=base, head=head)
        assert ran.code == 0 and ran.states == {"b on vmvx": "same"}, ran.error
    ran = stage.dispatch(
        models="c", base=str(whole.out / "base.json"), head=str(whole.out / "head.json")
    )
    assert (
        ran.code == 2 and "input models c: matches no model (known: a, b)" in ran.error
    )


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize("prefix", ["", "ref:"])
def test_a_shortened_commit_is_refused_with_how_to_get_all_of_it(
    stage: Stage, side: str, prefix: str
) -> None:
    first, _ = history(stage)
    ran = stage.dispatch(**{side: f"{prefix}{first[:9]}"})
    assert (
        ran.code == 2
        and ran.error
        == f"input {side}: '{first[:9]}' is a shortened commit, and other commits can"
        f" begin with it (give the full SHA, which `git rev-parse {first[:9]}`"
        " prints in your clone, or name a branch or tag)"
    )
    assert "shortened commit" in ran.summary


def test_the_inputs_of_a_pull_request_name_snapshots_and_compilers(
    stage: Stage,
) -> None:
    stage.compiler("two", [{"do": "differ"}], version="3.14.0")
    main = stage.main()
    head, merge = stage.open_pull({"notes.txt": "one\n"})
    ran = stage.pull(head, merge, base=stage.spec("one"), head=stage.spec("two"))
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}, ran.error
    assert (
        ran.report.baseline.sha == main
        and "first parent of the merge commit" in ran.report.baseline.rule
    )
    (stage.home / "dist").mkdir()
    (stage.home / "dist/snapshot.json").write_bytes(
        (ran.out / "head.json").read_bytes()
    )
    for base in (str(ran.out / "head.json"), str(stage.home / "dist")):
        ran = stage.pull(head, merge, base=base)
        assert ran.code == 0 and ran.report.base.compiler.version == "3.14.0", ran.error
        assert ran.report.baseline.rule == f"input base: {base}"


# --- paths -----------------------------------------------------------------------------------------------------------


def test_paths_are_the_workspaces_wherever_the_program_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a Docker action it runs in the workspace.

    By another way to start it that need not be so.
    """
    first, _ = history(stage)
    whole = stage.dispatch(base=first)
    elsewhere = stage.home / "elsewhere"
    elsewhere.mkdir()

    def prepare() -> None:
        workspace = stage.home / f"run-{stage.runs}" / "workspace"
        (workspace / "parts").mkdir()
        (workspace / "parts/head.json").write_bytes(
            (whole.out / "head.json").read_bytes()
        )
        (workspace / "before.json").write_bytes((whole.out / "base.json").read_bytes())
        monkeypatch.setattr("os.chdir", lambda _path: None)

    stage.before_act = prepare
    monkeypatch.chdir(elsewhere)
    ran = stage.dispatch(
        base="before.json", parts="parts/*.json", out="reports/one", cache="kept"
    )
    workspace = stage.home / f"run-{stage.runs}" / "workspace"
    assert ran.code == 0 and ran.states == {"a on vmvx": "changed"}, ran.error
    assert (workspace / "reports/one/report.json").is_file() and ran.outputs[
        "report-path"
    ] == "reports/one"
    assert not list(elsewhere.iterdir())


def test_the_report_s_directory_is_reported_as_later_steps_name_it(
    stage: Stage,
) -> None:
    first, _ = history(stage)
    before = stage.dispatch(base=first)
    names = {
        "base": str(before.out / "base.json"),
        "head": str(before.out / "head.json"),
    }
    assert stage.dispatch(**names, out="").outputs["report-path"] == "code-size-report"
    assert stage.dispatch(**names, out="./deep/er/").outputs["report-path"] == "deep/er"
    assert before.outputs["report-path"] == str(before.out), (
        "it was named from outside of the workspace"
    )
