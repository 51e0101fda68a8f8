"""The workflows ready to copy: least permissions, pinned actions, nothing of a pull request in a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from places import ROOT

from bot.config.configuration import CompilerKeys, load_config

WORKFLOWS = sorted((ROOT / "configs" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"
BOT = "OWNER/REPO@v1"
MOST_PER_FORK_JOB = {"contents": "read", "pull-requests": "write", "checks": "write", "actions": "read"}
# Every job with more than those, and what for.
FURTHER = {
    ("code-size.yml", "baseline"): {"contents": "write"},
    ("code-size-sharded.yml", "store"): {"contents": "write"},
    ("iree-pkgci.yml", "baseline"): {"contents": "write"},
}
# Jobs that publish what another job of the same run has made: they check out nothing, and run GitHub's actions alone.
DEPLOYS = {("code-size-pages.yml", "deploy"): {"pages": "write", "id-token": "write"}}


def read(path: Path) -> dict[str, Any]:
    """The workflow; YAML 1.1 takes its key `on` for True."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)
    return dict(found)


def of(file: str) -> dict[str, Any]:
    return read(ROOT / "configs" / "workflows" / file)


def triggers(workflow: dict[str, Any]) -> set[str]:
    return set(workflow["on"])


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield path.name, name, job


def steps() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file, name, job in jobs():
        for step in job["steps"]:
            yield file, name, step


def used(action: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [(file, job, step) for file, job, step in steps() if str(step.get("uses", "")).startswith(action)]


def test_every_job_has_its_own_least_permissions_time_limit_and_concurrency_group() -> None:
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# ") and "# Needs: " in text and read(path)["permissions"] == {}, path
    groups = []
    for file, name, job in jobs():
        where = f"{file}: {name}"
        assert job["permissions"].get("contents") in {"read", "write"} or (file, name) in DEPLOYS, where
        assert 0 < job["timeout-minutes"] <= 240, where
        groups.append((file, job["concurrency"]["group"]))
        allowed = DEPLOYS.get((file, name)) or MOST_PER_FORK_JOB | FURTHER.get((file, name), {})
        assert all(access in {"read", allowed.get(scope)} for scope, access in job["permissions"].items()), where
    assert len(groups) == len(set(groups))


def test_jobs_that_may_more_are_out_of_reach_of_a_fork() -> None:
    events = {(file, name): job.get("if", "") for file, name, job in jobs()}
    for key in FURTHER:
        required = re.match(r"github\.event_name == '(\w+)'(?:\s*&& |$)", events[key])
        assert required and required[1] != "pull_request", key
        assert "||" not in events[key], key


def test_a_job_that_deploys_takes_what_a_job_for_pushes_and_people_made_and_runs_no_code_of_ours() -> None:
    for (file, name), permissions in DEPLOYS.items():
        made = of(file)["jobs"]
        job, source = made[name], made[made[name]["needs"]]
        assert job["permissions"] == permissions and "if" not in job, "it runs where the other one has ended well"
        assert all(re.match(r"actions/(configure|deploy)-pages@", step["uses"]) for step in job["steps"])
        assert triggers(of(file)) == {"workflow_run", "workflow_dispatch"}
        assert of(file)["on"]["workflow_run"]["branches"] == ["main"]
        either, rest = source["if"].split(" || ")
        assert either == "github.event_name == 'workflow_dispatch'"
        assert rest.split(" && ") == [
            "github.event.workflow_run.event == 'push'",
            "github.event.workflow_run.conclusion == 'success'",
            "github.event.workflow_run.head_repository.full_name == github.repository",
        ]
        (upload,) = [step for step in source["steps"] if step["uses"].startswith("actions/upload-pages-artifact@")]
        (bot,) = [step for step in source["steps"] if step["uses"] == BOT]
        assert bot["with"]["command"] == "pages" and upload["with"]["path"] == f"{bot['with']['out']}/"


def test_pages_follow_the_workflows_that_store_baselines() -> None:
    storing = {file for file, name in FURTHER if FURTHER[file, name].get("contents") == "write"}
    ours = {of(file)["name"] for file in storing if "push" in triggers(of(file))}
    assert set(of("code-size-pages.yml")["on"]["workflow_run"]["workflows"]) == ours


def test_every_job_of_the_many_event_workflow_is_for_one_event() -> None:
    workflow = of("code-size.yml")
    wanted = [re.match(r"github\.event_name == '(\w+)'", job["if"]) for job in workflow["jobs"].values()]
    assert sorted(match[1] for match in wanted if match) == sorted(triggers(workflow))


def test_no_job_has_a_shell_script_or_leaves_its_token_and_strangers_reach_the_default_branch_only() -> None:
    for file, name, job in jobs():
        where, given = f"{file}: {name}", [step.get("with", {}) for step in job["steps"]]
        actions = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        assert not any("run" in step for step in job["steps"]), f"{where}: there is no script to write a value into"
        checkouts = [each for action, each in zip(actions, given, strict=True) if action == "actions/checkout"]
        assert len(checkouts) == ((file, name) not in DEPLOYS), where
        assert all(each["persist-credentials"] is False and "ref" not in each for each in checkouts), where
        if "workflow_run" in str(job.get("if", "")):  # a stranger can trigger it, with a token of the base repository
            assert "actions/cache" not in actions, where
            assert not any({"ref", "repository"} & set(each) for each in given), where


def test_the_bot_runs_once_in_every_job_with_inputs_of_the_action() -> None:
    found = used(BOT)
    assert [(file, name) for file, name, _ in found] == [(f, name) for f, name, _ in jobs() if (f, name) not in DEPLOYS]
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    for file, name, step in found:
        assert set(step.get("with", {})) <= set(action["inputs"]), f"{file}: {name}"
    outputs = re.findall(r"steps\.bot\.outputs\.([\w-]+)", "".join(path.read_text() for path in WORKFLOWS))
    assert outputs and set(outputs) <= set(action["outputs"])


def test_what_is_uploaded_and_cached_is_what_the_bot_writes() -> None:
    for file, name, step in [*used("actions/upload-artifact@"), *used("actions/cache")]:
        where, given = f"{file}: {name}", step["with"]
        (bot,) = [other["with"] for other in of(file)["jobs"][name]["steps"] if other.get("uses") == BOT]
        if "key" in given:
            prefixes = given["restore-keys"].splitlines()
            assert given["path"] == bot["cache"] and "github.run_id" in given["key"], where
            assert given["key"].startswith(prefixes[0]) or len(prefixes) == 1, where
            assert prefixes[-1] == "code-size-", "any earlier run's cells are better than none"
            continue
        assert given["path"] == bot["out"] + "/" and given["overwrite"], where
        assert step.get("if") == ("always()" if name != "measure" else None), where


def test_only_main_and_pull_requests_write_the_cache() -> None:
    writers = {(file, name) for file, name, step in used("actions/cache@")}
    assert writers == {
        ("code-size.yml", "review"),
        ("code-size-kernels.yml", "review"),
        ("code-size.yml", "baseline"),
        ("code-size-sharded.yml", "measure"),
        ("code-size-sharded.yml", "report"),
    }


def test_the_trusted_half_follows_every_workflow_that_measures_for_forks() -> None:
    post = of("code-size-post.yml")
    uploading = {file for file, _, step in used("actions/upload-artifact@") if "pull_request" in triggers(of(file))}
    assert set(post["on"]["workflow_run"]["workflows"]) == {of(file)["name"] for file in uploading}


def test_a_lost_shard_stops_neither_the_others_nor_the_report() -> None:
    made = of("code-size-sharded.yml")["jobs"]
    assert made["measure"]["strategy"]["fail-fast"] is False
    assert "!cancelled()" in made["report"]["if"]
    assert "cancelled()" not in made["store"]["if"], "a baseline is stored only if it is whole"
    for name in ("report", "store"):
        (joins,) = [step["with"]["parts"] for step in made[name]["steps"] if step["uses"] == BOT]
        (loads,) = [step["with"] for step in made[name]["steps"] if "download" in step["uses"]]
        assert made[name]["needs"] == ["plan", "measure"]
        assert joins == f"{loads['path']}/*.json"
        (plan,) = [step["with"]["plan"] for step in made[name]["steps"] if step["uses"] == BOT]
        assert plan == "${{ needs.plan.outputs.matrix }}", "`latest` and `nightly` are what they were for the shards"
        assert loads["merge-multiple"] is True


def pasted(begin: str) -> Any:
    """YAML from the head comment of the packaging CI's workflow."""
    lines = (ROOT / "configs/workflows/iree-pkgci.yml").read_text(encoding="utf-8").split("\n#\n")
    (block,) = [part for part in lines if part.startswith(f"#   {begin}")]
    return yaml.safe_load("\n".join(line.removeprefix("#") for line in block.splitlines()))


def test_the_job_to_paste_grants_what_the_called_jobs_ask_for_and_no_more() -> None:
    (job,) = pasted("code_size:").values()
    asked = [one["permissions"] for one in of("iree-pkgci.yml")["jobs"].values()]
    scopes = {scope for one in asked for scope in one}
    assert job["permissions"] == {
        scope: "write" if any(one.get(scope) == "write" for one in asked) else "read" for scope in scopes
    }
    assert "build_packages" in job["needs"] and job["uses"] == "./.github/workflows/pkgci_code_size.yml"


def test_the_configuration_to_paste_is_one_and_names_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "code-size.yml").write_text(yaml.safe_dump(pasted("schema:")))
    config = load_config(tmp_path / "code-size.yml", models=False)
    assert config.compiler == CompilerKeys()


def test_the_wheel_of_the_same_run_is_the_head_and_never_another_ones_baseline() -> None:
    made = of("iree-pkgci.yml")
    assert triggers(made) == {"workflow_call", "workflow_dispatch"}
    assert all(set(inputs["inputs"]) == {"artifact_run_id"} for inputs in made["on"].values())
    for name, job in made["jobs"].items():
        (loads,) = [step["with"] for step in job["steps"] if "download" in step["uses"]]
        (bot,) = [step["with"] for step in job["steps"] if step["uses"] == BOT]
        assert loads["name"] == "linux_x86_64_release_packages" and bot["head"] == loads["path"], name
        assert ("run-id" in loads) == (name == "review")


def test_the_smallest_needs_four_lines_for_the_bot_and_keeps_its_report() -> None:
    lines = (ROOT / "configs" / "workflows" / "minimal.yml").read_text(encoding="utf-8").splitlines()
    at = next(index for index, line in enumerate(lines) if BOT in line and "uses:" in line)
    assert [line.split()[0] for line in lines[at + 1 : at + 5]] == ["with:", "config:", "out:", "-"]
    assert "actions/upload-artifact@" in lines[at + 4]
