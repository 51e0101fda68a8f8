"""The workflows ready to copy: least permissions, pinned actions, nothing of a pull request in a shell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from places import ROOT

from bot.config.configuration import CompilerKeys, load_config
from bot.core.acceptance import APPROVAL_LABEL

WORKFLOWS = sorted((ROOT / "configs" / "workflows").glob("*.yml"))
ACTION = ROOT / "action.yml"
BOT = "OWNER/REPO@v1"
# What each kind of job may do; the kind is the command that it gives the bot.
MAY = {
    "prepare": {"contents": "read", "pull-requests": "read"},
    "gate": {"contents": "read", "pull-requests": "write"},
    "measure": {"contents": "read"},
    "plan": {"contents": "read"},
    "pages": {"contents": "read"},
    "report": {"contents": "read", "pull-requests": "write", "checks": "write"},
    "post": {
        "contents": "read",
        "pull-requests": "write",
        "checks": "write",
        "actions": "read",
    },
    "store": {"contents": "write", "pull-requests": "read"},
    "weekly": {"contents": "read"},
}
TAKES_TOKEN = {"gate", "report", "post", "store", "pages", "weekly"}
STORE_TOKEN = "${{ secrets.CODE_SIZE_STORE_TOKEN }}"
# The workflow whose baselines are in another repository: who has the token for it.
OTHER_STORE = "code-size-other-store.yml"
TAKES_STORE_TOKEN = {(OTHER_STORE, "prepare"), (OTHER_STORE, "store")}
# Jobs that publish what another job of the same run has made: they check out nothing,
# and run GitHub's actions alone.
DEPLOYS = {("code-size-pages.yml", "deploy"): {"pages": "write", "id-token": "write"}}
# Jobs that fetch with a token what another job of the same run measures: the same.
PREPARES = {("iree-pkgci.yml", "prepare"): {"actions": "read"}}
WITHOUT_BOT = {**DEPLOYS, **PREPARES}
REPORT_ID = "default"
OURS = "code-size"
AFTER_MERGE = "after-merge"
"""The job that reports a push; the other jobs that report are for pull requests."""
# The commit that a job after the gate of a comment checks out.
PINNED = "${{ needs.gate.outputs.sha }}"


@cache
def parsed(path: Path) -> dict[str, Any]:
    """The workflow; YAML 1.1 takes its key `on` for True."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    workflow["on"] = workflow.pop(True)
    return dict(workflow)


def read(path: Path) -> dict[str, Any]:
    """The workflow, for a test that may change it."""
    return deepcopy(parsed(path))


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
    return [
        (file, job, step)
        for file, job, step in steps()
        if str(step.get("uses", "")).startswith(action)
    ]


def command_of(job: dict[str, Any]) -> str:
    """The command that a job gives the bot; empty for a job without it."""
    names = [
        step["with"]["command"] for step in job["steps"] if step.get("uses") == BOT
    ]
    return str(names[0]) if names else ""


def by_command(command: str) -> set[tuple[str, str]]:
    return {(file, name) for file, name, job in jobs() if command_of(job) == command}


def test_every_job_has_its_own_least_permissions_and_time_limit() -> None:
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert (
            text.startswith("# ")
            and "# Needs: " in text
            and read(path)["permissions"] == {}
        ), path
    for file, name, job in jobs():
        where = f"{file}: {name}"
        assert 0 < job["timeout-minutes"] <= 240, where
        allowed = WITHOUT_BOT.get((file, name)) or MAY[command_of(job)]
        assert all(
            access in {"read", allowed.get(scope)}
            for scope, access in job["permissions"].items()
        ), where
        assert set(job["permissions"]) <= set(allowed), where


def test_no_job_that_compiles_has_a_token_that_can_write_or_hands_one_to_the_bot() -> (
    None
):
    assert {file for file, _ in by_command("measure")} == {
        file for file, _, job in jobs() if command_of(job) in {"report", "store"}
    }
    for file, name, job in jobs():
        (inputs,) = [
            step["with"] for step in job["steps"] if step.get("uses") == BOT
        ] or [{}]
        if command_of(job) != "prepare":
            assert ("github-token" in inputs) is (command_of(job) in TAKES_TOKEN), (
                f"{file}: {name}"
            )
        assert ("store-token" in inputs) is ((file, name) in TAKES_STORE_TOKEN), (
            f"{file}: {name}"
        )
        assert (
            str(job).count("secrets.")
            == str(job).count(STORE_TOKEN)
            == ("store-token" in inputs)
        )
        if command_of(job) == "measure":
            assert job["permissions"] == {"contents": "read"}, f"{file}: {name}"
            assert "secrets." not in str(job) and "github.token" not in str(job), (
                f"{file}: {name}"
            )


def test_after_the_compilers_only_an_upload_runs() -> None:
    """The cache is saved by the step that restored it, after all others."""
    for file, name in by_command("measure"):
        uses = [
            step["uses"].partition("@")[0] for step in of(file)["jobs"][name]["steps"]
        ]
        assert uses[uses.index("OWNER/REPO") + 1 :] == ["actions/upload-artifact"], (
            f"{file}: {name}"
        )


def test_no_job_with_a_token_that_can_write_shares_files_with_a_compiler() -> None:
    """Jobs have machines of their own: an artifact comes over, into a folder that the bot alone reads."""
    for file, name, job in jobs():
        if command_of(job) not in {"report", "store", "post"}:
            continue
        where = f"{file}: {name}"
        assert not [step for step in job["steps"] if "actions/cache" in step["uses"]], (
            where
        )
        downloads = [
            step["with"] for step in job["steps"] if "download-artifact" in step["uses"]
        ]
        (bot,) = [step["with"] for step in job["steps"] if step["uses"] == BOT]
        folders = [bot[name] for name in ("measured", "baselines") if name in bot]
        assert [download["path"] for download in downloads] == folders, where
        # A compiler under review can put another artifact under a name, but not under
        # an id.
        for download in downloads:
            by_id = download.get("artifact-ids")
            assert by_id == (
                None
                if download["path"] == bot["measured"]
                else "${{ needs.prepare.outputs.baselines }}"
            )
        assert bot.get("measured", "code-size-measured") == "code-size-measured", where


def measuring_before(job: dict[str, Any]) -> str:
    """The job whose files a job takes; another one may prepare."""
    needs = job["needs"]
    return str(needs if isinstance(needs, str) else needs[-1])


def test_what_is_measured_is_reported_also_where_measuring_failed() -> None:
    for file, name in by_command("report"):
        if name == AFTER_MERGE:
            continue
        job = of(file)["jobs"][name]
        need = measuring_before(job)
        condition = " ".join(job["if"].split())
        assert "!cancelled()" in condition, f"{file}: {name}"
        assert (
            f"(needs.{need}.result == 'success' || needs.{need}.result == 'failure'"
            in condition
        )
        is_prepared = "prepare" in job["needs"]
        assert ("|| needs.prepare.result == 'failure')" in condition) is is_prepared
        (bot,) = [step["with"] for step in job["steps"] if step["uses"] == BOT]
        assert bot["outcome"] == f"${{{{ needs.{need}.result }}}}"
        measuring = of(file)["jobs"][need]
        (before,) = [step["with"] for step in measuring["steps"] if step["uses"] == BOT]
        same = {"config", "base", "head", "models", "targets", "flags", "asked"}
        assert {key: bot.get(key) for key in same} == {
            key: before.get(key) for key in same
        }, f"{file}: {name}"
        (step,) = [step for step in measuring["steps"] if step["uses"] == BOT]
        assert step["timeout-minutes"] < measuring["timeout-minutes"], (
            "so that a hanging compiler is a failure"
        )
        if "pull_request" in condition:
            assert (
                "github.event.pull_request.head.repo.full_name == github.repository"
                in condition
            )
            assert "github.actor != 'dependabot[bot]'" in condition


def test_only_a_push_that_was_measured_is_stored_and_judged_after_the_merge() -> None:
    storing = by_command("store")
    judging = {(file, AFTER_MERGE) for file, _ in storing}
    assert judging == {
        (file, name) for file, name in by_command("report") if name == AFTER_MERGE
    }
    for file, name in storing | judging:
        job = of(file)["jobs"][name]
        need = measuring_before(job)
        assert (
            job["if"]
            == f"github.event_name == 'push' && !cancelled() && needs.{need}.result =="
            " 'success'"
        )


def test_groups_and_artifacts_carry_the_workflow_and_the_report_id() -> None:
    """Two workflows, or two configurations, then neither cancel each other nor overwrite a report."""
    groups = []
    names = []
    for file, name, job in jobs():
        group = job["concurrency"]["group"]
        assert f"-${{{{ github.workflow }}}}-{REPORT_ID}" in group, f"{file}: {name}"
        groups.append((file, group))
        for step in job["steps"]:
            inputs = step.get("with", {})
            artifact = str(inputs.get("name") or inputs.get("pattern") or "")
            if "-artifact@" in step["uses"] and artifact.startswith(OURS):
                assert (
                    "${{ github.workflow }}" in artifact
                    and f"-{REPORT_ID}-" in artifact
                ), f"{file}: {name}"
            if "upload-artifact@" in step["uses"]:
                names.append((file, name, artifact))
    assert len(groups) == len(set(groups))
    for file, name, artifact in names:
        same_run = [name for name in names if name[0] == file and name[2] == artifact]
        events = {str(of(file)["jobs"][job].get("if", "")) for _, job, _ in same_run}
        assert len(events) == len(same_run), (
            f"{file}: {name}: two jobs of one run write {artifact}"
        )


def test_a_merge_queue_is_measured_and_reported() -> None:
    for file in ("code-size.yml", "code-size-sharded.yml"):
        assert "merge_group" in triggers(of(file))
        (job,) = [
            of(file)["jobs"][name]
            for job_file, name in by_command("report")
            if job_file == file and name == "report"
        ]
        assert "github.event_name == 'merge_group'" in job["if"]


def test_labels_that_accept_start_a_run_and_others_cancel_none() -> None:
    for file in ("code-size.yml", "code-size-sharded.yml"):
        first = next(iter(of(file)["jobs"].values()))
        assert f"startsWith(github.event.label.name, '{APPROVAL_LABEL}')" in first["if"]


def test_a_job_that_deploys_takes_what_a_job_for_pushes_and_people_made_and_runs_no_code_of_ours() -> (
    None
):
    for (file, name), permissions in DEPLOYS.items():
        workflow_jobs = of(file)["jobs"]
        job = workflow_jobs[name]
        source = workflow_jobs[workflow_jobs[name]["needs"]]
        assert job["permissions"] == permissions and "if" not in job, (
            "it runs where the other one has ended well"
        )
        assert all(
            re.match(r"actions/(configure|deploy)-pages@", step["uses"])
            for step in job["steps"]
        )
        assert triggers(of(file)) == {"workflow_run", "workflow_dispatch"}
        assert of(file)["on"]["workflow_run"]["branches"] == ["main"]
        either, conditions = source["if"].split(" || ")
        assert either == "github.event_name == 'workflow_dispatch'"
        assert conditions.split(" && ") == [
            "github.event.workflow_run.event == 'push'",
            "github.event.workflow_run.conclusion == 'success'",
            "github.event.workflow_run.head_repository.full_name == github.repository",
        ]
        (upload,) = [
            step
            for step in source["steps"]
            if step["uses"].startswith("actions/upload-pages-artifact@")
        ]
        (bot,) = [step for step in source["steps"] if step["uses"] == BOT]
        assert (
            bot["with"]["command"] == "pages"
            and upload["with"]["path"] == f"{bot['with']['out']}/"
        )


def test_pages_follow_the_workflows_that_store_baselines() -> None:
    ours = {
        of(file)["name"]
        for file, _ in by_command("store")
        if "push" in triggers(of(file))
    }
    assert set(of("code-size-pages.yml")["on"]["workflow_run"]["workflows"]) == ours


def test_no_job_has_a_shell_script_or_leaves_its_token_and_strangers_reach_the_default_branch_only() -> (
    None
):
    for file, name, job in jobs():
        where = f"{file}: {name}"
        inputs = [step.get("with", {}) for step in job["steps"]]
        actions = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
        assert not any("run" in step for step in job["steps"]), (
            f"{where}: there is no script to write a value into"
        )
        checkouts = [
            step_inputs
            for action, step_inputs in zip(actions, inputs, strict=True)
            if action == "actions/checkout"
        ]
        data = [
            checkout for checkout in checkouts if checkout.get("ref", PINNED) != PINNED
        ]
        assert len(checkouts) - len(data) == ((file, name) not in WITHOUT_BOT), where
        assert all(
            checkout["persist-credentials"] is False for checkout in checkouts
        ), where
        assert all(
            (item["ref"], item["path"]) == ("code-size-data", ".code-size-data")
            for item in data
        ), where
        (bot,) = [step["with"] for step in job["steps"] if step.get("uses") == BOT] or [
            {}
        ]
        copies = [
            step_inputs["path"]
            for step_inputs in inputs
            if "artifact-ids" in step_inputs
        ]
        assert [*(item["path"] for item in data), *copies] == (
            [bot["baselines"]] if "baselines" in bot else []
        ), where
        # a stranger can trigger it, with a token of the base repository
        if "workflow_run" in str(job.get("if", "")):
            assert "actions/cache" not in actions, where
            assert not any(
                {"ref", "repository"} & set(step_inputs) for step_inputs in inputs
            ), where


def test_the_bot_runs_once_in_every_job_with_inputs_of_the_action() -> None:
    uses = used(BOT)
    assert [(file, name) for file, name, _ in uses] == [
        (f, name) for f, name, _ in jobs() if (f, name) not in WITHOUT_BOT
    ]
    action = yaml.safe_load(ACTION.read_text(encoding="utf-8"))
    for file, name, step in uses:
        assert set(step.get("with", {})) <= set(action["inputs"]), f"{file}: {name}"
    outputs = re.findall(
        r"steps\.bot\.outputs\.([\w-]+)",
        "".join(path.read_text() for path in WORKFLOWS),
    )
    assert outputs and set(outputs) <= set(action["outputs"])


def test_what_is_uploaded_and_cached_is_what_the_bot_writes() -> None:
    for file, name, step in [*used("actions/upload-artifact@"), *used("actions/cache")]:
        where = f"{file}: {name}"
        inputs = step["with"]
        if (file, name) in PREPARES:
            continue
        (bot,) = [
            step["with"]
            for step in of(file)["jobs"][name]["steps"]
            if step.get("uses") == BOT
        ]
        if "key" in inputs:
            prefixes = inputs["restore-keys"].splitlines()
            assert (
                inputs["path"] == bot["cache"] and "github.run_id" in inputs["key"]
            ), where
            assert inputs["key"].startswith(prefixes[0]) or len(prefixes) == 1, where
            assert prefixes[-1] == "code-size-", (
                "any earlier run's cells are better than none"
            )
            continue
        assert inputs["path"] == bot["out"] + "/" and inputs["overwrite"], where
        assert step.get("if") == (
            None if "shard" in bot or bot["command"] == "prepare" else "always()"
        ), where


def test_nothing_that_a_pull_request_or_a_person_measures_reaches_the_cache_of_the_main_branch() -> (
    None
):
    """GitHub keeps what a pull request or a merge queue saves for its ref.

    A manual run saves for the main branch.
    """
    for file, name, _ in used("actions/cache@"):
        job = of(file)["jobs"][name]
        assert command_of(job) == "measure", f"{file}: {name}"
        by_hand = "workflow_dispatch" in triggers(of(file))
        excluded = "github.event_name != 'workflow_dispatch'" in str(job.get("if", ""))
        assert not by_hand or excluded, f"{file}: {name}"
        assert not triggers(of(file)) & {
            "workflow_run",
            "pull_request_target",
            "issue_comment",
        }, f"{file}: {name}"
    assert {(file, name) for file, name, _ in used("actions/cache/restore@")} == {
        ("code-size.yml", "measure-manual")
    }


def test_a_comment_is_read_by_the_bot_alone_and_a_command_shares_no_cache_and_cancels_nothing() -> (
    None
):
    workflow = of("code-size-commands.yml")
    assert workflow["on"] == {"issue_comment": {"types": ["created"]}}
    workflow_jobs = workflow["jobs"]
    starts = (
        "github.event.issue.pull_request && startsWith(github.event.comment.body,"
        " '/code-size')"
    )
    assert workflow_jobs["gate"]["if"] == starts and str(workflow_jobs).count(
        "github.event"
    ) == starts.count("github.event")
    assert [
        step["uses"].partition("@")[0] for step in workflow_jobs["gate"]["steps"]
    ] == [
        "actions/checkout",
        "OWNER/REPO",
    ]
    assert "ref" not in workflow_jobs["gate"]["steps"][0]["with"], (
        "the default branch, which strangers cannot change"
    )
    for name, job in workflow_jobs.items():
        assert job["concurrency"]["cancel-in-progress"] is False
        assert job["concurrency"]["group"].endswith("-${{ github.run_id }}")
        assert "actions/cache" not in str(job)
        first = job["steps"][0]["with"]
        assert name == "gate" or first["ref"] == PINNED


def test_the_trusted_half_follows_every_workflow_that_measures_for_forks() -> None:
    post = of("code-size-post.yml")
    uploading = {
        file
        for file, _, step in used("actions/upload-artifact@")
        if "pull_request" in triggers(of(file))
    }
    assert set(post["on"]["workflow_run"]["workflows"]) == {
        of(file)["name"] for file in uploading
    }


def test_a_lost_shard_stops_neither_the_others_nor_the_report() -> None:
    workflow_jobs = of("code-size-sharded.yml")["jobs"]
    assert workflow_jobs["measure"]["strategy"]["fail-fast"] is False
    assert "!cancelled()" in workflow_jobs["join"]["if"] and workflow_jobs["join"][
        "needs"
    ] == [
        "plan",
        "measure",
    ]
    (bot,) = [
        step["with"] for step in workflow_jobs["join"]["steps"] if step["uses"] == BOT
    ]
    (loads,) = [
        step["with"]
        for step in workflow_jobs["join"]["steps"]
        if "download" in step["uses"]
    ]
    assert bot["parts"] == f"{loads['path']}/*.json" and loads["merge-multiple"] is True
    assert bot["plan"] == "${{ needs.plan.outputs.matrix }}", (
        "`latest` and `nightly` are what they were for the shards"
    )
    assert workflow_jobs["report"]["needs"] == workflow_jobs["store"]["needs"] == "join"


def pasted(begin: str) -> Any:
    """YAML from the head comment of the packaging CI's workflow."""
    lines = (
        (ROOT / "configs/workflows/iree-pkgci.yml")
        .read_text(encoding="utf-8")
        .split("\n#\n")
    )
    (block,) = [part for part in lines if part.startswith(f"#   {begin}")]
    return yaml.safe_load(
        "\n".join(line.removeprefix("#") for line in block.splitlines())
    )


def test_the_job_to_paste_grants_what_the_called_jobs_ask_for_and_no_more() -> None:
    (job,) = pasted("code_size:").values()
    permissions = [
        grants["permissions"] for grants in of("iree-pkgci.yml")["jobs"].values()
    ]
    scopes = {scope for grants in permissions for scope in grants}
    assert job["permissions"] == {
        scope: "write"
        if any(grants.get(scope) == "write" for grants in permissions)
        else "read"
        for scope in scopes
    }
    assert (
        "build_packages" in job["needs"]
        and job["uses"] == "./.github/workflows/pkgci_code_size.yml"
    )


def test_the_configuration_to_paste_is_one_and_names_no_compiler(
    tmp_path: Path,
) -> None:
    (tmp_path / "code-size.yml").write_text(yaml.safe_dump(pasted("schema:")))
    config = load_config(tmp_path / "code-size.yml", models=False)
    assert config.compiler == CompilerKeys()


def test_the_wheel_of_the_same_run_is_the_head_and_another_run_s_is_fetched_by_a_job_of_its_own() -> (
    None
):
    workflow = of("iree-pkgci.yml")
    assert triggers(workflow) == {"workflow_call", "workflow_dispatch"}
    assert all(
        set(inputs["inputs"]) == {"artifact_run_id"}
        for inputs in workflow["on"].values()
    )
    fetches, uploads = [step["with"] for step in workflow["jobs"]["prepare"]["steps"]]
    assert (
        fetches["name"] == "linux_x86_64_release_packages"
        and fetches["run-id"] == "${{ inputs.artifact_run_id }}"
    )
    loads, bot = (
        next(
            step["with"]
            for step in workflow["jobs"]["measure"]["steps"]
            if word in step["uses"]
        )
        for word in ("download-artifact", "OWNER/REPO")
    )
    assert not {"run-id", "github-token"} & set(loads) and bot["head"] == loads["path"]
    assert "linux_x86_64_release_packages" in loads["name"]
    assert uploads["name"].partition("${{")[0] in loads["name"]
    assert "DEFAULT_POSTSUBMIT_ONLY_JOBS" in (
        ROOT / "configs/workflows/iree-pkgci.yml"
    ).read_text(encoding="utf-8")


def test_the_smallest_has_two_jobs_and_keeps_its_report() -> None:
    workflow_jobs = of("minimal.yml")["jobs"]
    assert list(workflow_jobs) == ["measure", "report"]
    for job in workflow_jobs.values():
        assert len(job["steps"]) <= 4
        assert "actions/upload-artifact@" in job["steps"][-1]["uses"]
