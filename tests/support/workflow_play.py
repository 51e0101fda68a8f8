"""A workflow ready to copy, played: each job has a machine of its own, and its steps do what GitHub's actions do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from fake_github import FakeGitHub
from git_server import GitServer, header_of
from github_runner import (
    Payload,
    Run,
    run_action,
    runner_variables,
)
from places import ROOT

BOT = "OWNER/REPO@v1"
_SHA = re.compile(r"[0-9a-f]{40}")
_EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")


@dataclass
class Machine:
    """What one job has: a workspace, a folder on PATH, and a token."""

    home: Path
    permissions: Mapping[str, str]
    token: str
    # the actions that got the token as an input, in their order
    handed: list[str] = field(default_factory=list)
    # the names of the secrets that a step got
    secrets: set[str] = field(default_factory=set)
    # `steps.ID.outputs.NAME` → its value
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def programs(self) -> Path:
        return self.home / "bin"

    @property
    def may_write(self) -> bool:
        return "write" in self.permissions.values()


@dataclass
class Play:
    """One run of a workflow."""

    home: Path
    file: str
    hub: FakeGitHub
    git: GitServer
    readable: str  # the token of a job that may read
    writable: str  # the token of a job that may write
    cache: Path | None = None  # of the jobs that compile; None: what the workflow says
    secrets: dict[str, str] = field(default_factory=dict)  # of the repository
    # of a run that a person started
    inputs: dict[str, str] = field(default_factory=dict)
    # job → what happens when it has ended
    after: dict[str, Callable[[], object]] = field(default_factory=dict)
    run_id: int = 100
    artifact_id: int = 0  # of the last artifact
    machines: dict[str, Machine] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)

    @property
    def workflow(self) -> dict[str, Any]:
        loaded: dict[str, Any] = yaml.safe_load(
            (ROOT / "configs" / "workflows" / self.file).read_text()
        )
        return loaded

    def play(
        self,
        event: str,
        payload: Payload,
        sha: str,
        ref: str,
        *jobs: str,
        after: Sequence[str] = (),
    ) -> Run:
        """Run these jobs, one after the other; the run of the bot in the last one.

        `after`: the jobs of the same run that have ended.
        """
        if not after:
            self.run_id += 1
            self.results.clear()
        for name in jobs:
            job = self.workflow["jobs"][name]
            permissions = job["permissions"]
            token = self.writable if "write" in permissions.values() else self.readable
            machine = Machine(self.home / f"{self.run_id}-{name}", permissions, token)
            machine.workspace.mkdir(parents=True)
            machine.programs.mkdir()
            self.machines[name] = machine
            self.results[name] = "success"
            for step in job["steps"]:
                if not self.step(machine, name, step, event, payload, sha, ref):
                    self.results[name] = "failure"
            self.after.get(name, lambda: None)()
        return self.runs[jobs[-1]]

    def step(
        self,
        machine: Machine,
        name: str,
        step: dict[str, Any],
        event: str,
        payload: Payload,
        sha: str,
        ref: str,
    ) -> bool:
        """Do one step; False where it failed and that fails the job."""
        inputs = {
            key: self.value(str(value), machine)
            for key, value in step.get("with", {}).items()
        }
        action = step["uses"].partition("@")[0]
        if self.results[name] == "failure" and step.get("if") != "always()":
            return True
        if (
            "if" in step
            and step["if"] != "always()"
            and not self.value(f"${{{{ {step['if']} }}}}", machine)
        ):
            return True
        machine.secrets |= {
            secret for secret, text in self.secrets.items() if text in inputs.values()
        }
        if any(machine.token in value for value in inputs.values()):
            machine.handed.append(action)
        artifact = self.artifact(inputs.get("name", ""), inputs.get("artifact-ids", ""))
        if action == "actions/checkout":
            fetched = self.checkout(machine, inputs, sha)
            return fetched or bool(step.get("continue-on-error"))
        if action == "actions/upload-artifact":
            uploaded = machine.workspace / inputs["path"]
            if uploaded.is_dir():
                shutil.copytree(uploaded, artifact, dirs_exist_ok=True, symlinks=True)
                self.artifact_id += 1
                shutil.copytree(
                    uploaded, self.artifact("", str(self.artifact_id)), symlinks=True
                )
                machine.outputs[f"steps.{step.get('id')}.outputs.artifact-id"] = str(
                    self.artifact_id
                )
        if action == "actions/download-artifact":
            if not artifact.is_dir():
                return bool(step.get("continue-on-error"))
            shutil.copytree(artifact, machine.workspace / inputs["path"], symlinks=True)
        if step["uses"].startswith(BOT):
            self.runs[name] = self.bot(machine, inputs, event, payload, sha, ref)
            step_outputs = self.runs[name].outputs.items()
            machine.outputs |= {
                f"steps.{step.get('id')}.outputs.{output}": text
                for output, text in step_outputs
            }
            return self.runs[name].code == 0
        return True

    def artifact(self, name: str, number: str = "") -> Path:
        """The files of an artifact of this run by its name, or by the id that no later artifact has."""
        return (
            self.home
            / f"artifacts-{self.run_id}"
            / (f"id-{number}" if number else f"name-{name}")
        )

    def value(self, text: str, machine: Machine) -> str:
        """The text with its expressions worked out."""
        values = {"github.workflow": "test", "github.token": machine.token}
        results = dict.fromkeys(self.workflow["jobs"], "skipped") | self.results
        values |= {f"needs.{name}.result": result for name, result in results.items()}
        values |= {f"secrets.{name}": secret for name, secret in self.secrets.items()}
        values |= {f"inputs.{name}": value for name, value in self.inputs.items()}
        values |= machine.outputs
        for name, job in self.workflow["jobs"].items():
            for output, expression in job.get("outputs", {}).items():
                job_outputs = (
                    self.machines[name].outputs if name in self.results else {}
                )
                match = _EXPRESSION.fullmatch(expression)
                values[f"needs.{name}.outputs.{output}"] = (
                    job_outputs.get(match[1], "") if match else ""
                )
        return _EXPRESSION.sub(lambda match: values.get(match[1], "x"), text)

    def checkout(self, machine: Machine, inputs: Mapping[str, str], sha: str) -> bool:
        """As actions/checkout with persist-credentials: false; False where there is no such ref."""
        assert inputs["persist-credentials"] == "False"
        top = machine.workspace / inputs.get("path", "")
        top.mkdir(exist_ok=True)
        depth = inputs.get("fetch-depth", "1")
        ref = inputs.get("ref", sha)
        if not _SHA.fullmatch(ref):
            ref = f"refs/heads/{ref}"
        options = [] if depth == "0" else [f"--depth={depth}"]
        options += [f"--filter={inputs['filter']}"] if "filter" in inputs else []
        as_reader = ("-c", f"http.extraheader={header_of(machine.token)}")
        commands = [
            ["init", "-q"],
            ["remote", "add", "origin", f"{self.git.url}/origin.git"],
            [*as_reader, "fetch", "-q", "--no-tags", *options, "origin", ref],
            [*as_reader, "checkout", "-q", "--detach", "FETCH_HEAD"],
        ]
        environment = {
            **os.environ,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
        }
        done = (
            subprocess.run(
                ["git", *command], cwd=top, env=environment, capture_output=True
            )
            for command in commands
        )
        return all(process.returncode == 0 for process in done)

    def bot(
        self,
        machine: Machine,
        inputs: Mapping[str, str],
        event: str,
        payload: Payload,
        sha: str,
        ref: str,
    ) -> Run:
        """Run the action once on a machine, as the job of a workflow."""
        (machine.home / "event.json").write_text(json.dumps(payload))
        if self.cache is not None and inputs.get("command") == "measure":
            inputs = {**inputs, "cache": str(self.cache)}
        variables = runner_variables(
            machine.home,
            hub=self.hub,
            name=event,
            sha=sha,
            ref=ref,
            run_id=self.run_id,
            workspace=machine.workspace,
        )
        variables |= {
            "GITHUB_SERVER_URL": self.git.url,
            "ACTIONS_RUNTIME_TOKEN": "runtime-token",
            "PATH": f"{machine.programs}:{os.environ['PATH']}",
        }
        return run_action(
            machine.home, machine.workspace, inputs=inputs, variables=variables
        )
