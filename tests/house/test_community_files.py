"""What a contributor meets first: a template, and hooks that say what `make check` says, which runs their schemas."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml
from places import ROOT

HOOKS: dict[str, Any] = {
    hook["id"]: hook
    for repository in yaml.safe_load(
        (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    )["repos"]
    for hook in repository["hooks"]
}
DEVELOPMENT = re.findall(
    r'^  "([\w.-]+==[\w.]+)",$',
    (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_the_template_of_pull_requests_names_files_that_are_there() -> None:
    text = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+\.(?:md|py))`", text)
    assert named and [name for name in named if not (ROOT / name).exists()] == []


def test_hooks_are_pinned_as_make_check_is() -> None:
    pins = {pin for hook in HOOKS.values() for pin in hook["additional_dependencies"]}
    assert pins and pins <= set(DEVELOPMENT)
    for hook in HOOKS.values():
        (pin,) = hook["additional_dependencies"]
        assert hook["entry"].split()[0] == pin.partition("==")[0]


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_every_hook_looks_at_files_that_there_are(hook: dict[str, Any]) -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [
        name for name in listed.stdout.splitlines() if re.search(hook["files"], name)
    ]
    hooked = [
        name
        for name in names
        if not ("exclude" in hook and re.search(hook["exclude"], name))
    ]
    assert hooked
