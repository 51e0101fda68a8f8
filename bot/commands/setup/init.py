"""`init`: a configuration and workflows for a repository, and what to do next."""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.compiler.repository import repository_of
from bot.core.rules.acceptance import APPROVAL_LABEL
from bot.errors import OutputError, UsageError
from bot.inputs.config import CONFIG_NAMES, Config, configs_dir, load_config
from bot.inputs.discovery import Found, discover
from bot.system.files import write_atomically
from bot.system.git import Git
from bot.system.processes import Cancel

WORKFLOWS = ("code-size.yml", "code-size-post.yml")
"""Of the workflows ready to copy, those that are written: everything on one runner, and its trusted half."""
PLACEHOLDER = "OWNER/REPO@v1"
_ACTION = re.compile(r"\./[\w./-]*|[\w.-]+/[\w./-]+@[\w./-]+")
_USES = re.compile(rf"uses: {re.escape(PLACEHOLDER)}( #.*)$", re.MULTILINE)
_COMMIT = re.compile(r"@[0-9a-f]{40}$")
_NEEDS = re.compile(r"^# Needs: .*\n(?:# .*\n)*(?:#\n)?", re.MULTILINE)
_LEFT_OUT_TOLD = 8

_CONFIG = """\
# What code-size-bot measures in this repository, and what it lets through: written by `code-size-bot init`, for you to
# change. A key that is left out has its packaged default; what is commented out below is an example of it.
schema: code-size-config/1

{compiler}

{models}

# Without this key all of these are measured.
# targets:
{targets}

# Compiler flags for every cell, beside those of its target.
# flags: [--iree-opt-level=O2]

# How much may grow. For each cell and metric the FIRST rule that matches decides, so special cases come first and a
# rule for everything comes last. A level is exceeded by growth beyond `absolute` and `relative` (both), or by a value
# above `limit`.
# thresholds:
#   - name: code size
#     metrics: [artifact_bytes, executable_bytes]
#     warn: {{absolute: 1KiB, relative: 1%}}
#     fail: {{absolute: 4KiB, relative: 5%}}
#   - name: everything else
#     metrics: ["*"]
#     warn: 10%

# `always` comments also where nothing changed; `fail_job: true` makes the job red where the verdict is fail.
# comment: always
# fail_job: true
"""
_PINNED = """\
# The compiler of a commit is the release that this file pins there, so that a pull request which changes the pin shows
# what the other release does to the code. It pinned {compiler} when this was written.
compiler: {{requirements: {pin}}}"""
_UNPINNED = """\
# The compiler of every commit: a release that code-size-bot knows, as no requirements or constraints file and no
# pyproject.toml here pins iree-base-compiler. Name yours; better, pin it in such a file and write
# {{requirements: FILE}}.
compiler: {{head: {compiler}}}"""
_MODELS = """\
# Globs relative to this file. Models are .mlir or .mlirbc; weights do not belong into them.
models:
{globs}"""
_NO_MODELS = """\
# No model was found here, so that the packaged suite is measured. Globs are relative to this file.
# models: ["models/*.mlir"]"""


@dataclass(frozen=True, slots=True)
class Started:
    """What `init` has done.

    Attributes:
        written: the files, as paths that can be opened from here.
        notes: what was found, and what was not taken; one line each.
        steps: what is left for a person to do.
    """

    written: tuple[Path, ...]
    notes: tuple[str, ...]
    steps: tuple[str, ...]


def init(directory: Path, action: str, force: bool, cancel: Cancel) -> Started:
    """Write a configuration and workflows for the repository that holds `directory`.

    Args:
        action: what the workflows use, such as `acme/code-size-bot@COMMIT`; empty where it is not known yet.
        force: write over what is there.

    Raises:
        UsageError: something is there already, or the action is none. Nothing was written then.
        OutputError: a file cannot be written.
    """
    if action and not _ACTION.fullmatch(action):
        hint = "write OWNER/REPO@COMMIT, or ./ for the repository's own"
        raise UsageError(f"{action!r} is no action", where="--action", hint=hint)
    if not directory.is_dir():
        raise OutputError("is no directory", where=str(directory), hint="name the repository's directory")
    top = repository_of(directory, cancel).top
    git = Git(top, cancel) if top else None
    root = top or directory.resolve()
    found, branch = discover(root, git), (git and git.default_branch()) or "main"
    texts = _texts(root, found, branch, action)
    _require_new(root, texts, force)
    for name, text in texts.items():
        write_atomically(root / name, text.encode())
    name = next(iter(texts))
    config = load_config(root / name)
    return Started(
        tuple(Path(os.path.relpath(root / name)) for name in texts),
        tuple(_notes(root, found, config, branch, in_git=git is not None)),
        tuple(_steps(name, branch, action, in_git=git is not None)),
    )


def _texts(root: Path, found: Found, branch: str, action: str) -> dict[str, str]:
    """File → what is to be in it; the configuration first. One that is there already keeps its place."""
    name = next((name for name in CONFIG_NAMES if os.path.lexists(root / name)), CONFIG_NAMES[-1])
    workflows = {f".github/workflows/{file}": workflow(file, branch, action) for file in WORKFLOWS}
    return {name: configuration(root, name, found), **workflows}


def _require_new(root: Path, texts: Mapping[str, str], force: bool) -> None:
    there = [name for name in texts if os.path.lexists(root / name)]
    if there and not force:
        raise UsageError("already there", where=", ".join(there), hint="--force writes over it, and keeps no copy")


def workflow(file: str, branch: str, action: str) -> str:
    """A workflow ready to copy, for this default branch and this action; what it needs is no longer said, but done."""
    text = (configs_dir() / "workflows" / file).read_text(encoding="utf-8")
    if branch != "main":
        escaped = re.sub(r"([*+?!\[\]\\])", r"\\\1", branch)
        text = text.replace("branches: [main]", f"branches: [{json.dumps(escaped, ensure_ascii=False)}]")
    if not action:
        return text
    return _NEEDS.sub("", _USES.sub(lambda match: f"uses: {action}{_remark(action, match[1])}", text))


def _remark(action: str, unpinned: str) -> str:
    """What stands behind the action for zizmor and the reader: nothing is wrong with one that is pinned."""
    if action.startswith("./"):
        return " # zizmor: ignore[self-repository] actionlint does not know the newer form yet"
    return "" if _COMMIT.search(action) else unpinned


def configuration(root: Path, name: str, found: Found) -> str:
    """The configuration `name` below `root`, with what was found."""
    up = "../" * name.count("/")
    default = load_config(None, models=False)
    if found.pin:
        compiler = _PINNED.format(compiler=found.compiler, pin=_quoted(up + found.pin))
    else:
        compiler = _UNPINNED.format(compiler=packaged_compiler())
    globs = "\n".join(f"  - {json.dumps(up + one, ensure_ascii=False)}" for one in _globs(root, found.models))
    models = _MODELS.format(globs=globs) if globs else _NO_MODELS
    targets = "\n".join(f"#   - {target.name}" for target in default.targets if not target.unsupported)
    return _CONFIG.format(compiler=compiler, models=models, targets=targets)


def packaged_compiler() -> str:
    """The release that the packaged configuration has on its head side."""
    return load_config(configs_dir() / "default.yml", models=False).compiler.head or ""


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./-]+", text, re.ASCII) else json.dumps(text, ensure_ascii=False)


def _globs(root: Path, models: Sequence[str]) -> Iterator[str]:
    """One glob for a folder whose files of one kind are all models, else the models by their names."""
    kinds: dict[str, set[str]] = {}
    for model in models:
        path = PurePosixPath(model)
        kinds.setdefault(f"{glob.escape(str(path.parent))}/*{path.suffix}".removeprefix("./"), set()).add(model)
    for pattern, members in sorted(kinds.items()):
        there = {PurePosixPath(name).as_posix() for name in glob.glob(pattern, root_dir=root)}
        if len(members) > 1 and there == members:
            yield pattern
        else:
            yield from (glob.escape(member) for member in sorted(members))


def _notes(root: Path, found: Found, config: Config, branch: str, *, in_git: bool) -> Iterator[str]:
    if not in_git:
        yield f"{root} is in no git repository: all files below it were looked through"
    targets = sum(1 for target in config.targets if not target.unsupported)
    whose = "of this repository" if found.models else "of the packaged suite, as none was found here"
    yield f"models: {len(config.models)} {whose}, on {targets} targets"
    left_out = sorted(found.left_out.items())
    yield from (f"  not {name}: {why}" for name, why in left_out[:_LEFT_OUT_TOLD])
    if len(left_out) > _LEFT_OUT_TOLD:
        yield f"  and {len(left_out) - _LEFT_OUT_TOLD} more files were left out; add to `models` those you want"
    yield from (f"  no pin: {line}" for line in found.unpinned)
    yield (
        f"compiler: {found.compiler}, as {found.pin} pins it"
        if found.pin
        else (f"compiler: {packaged_compiler()}, a release that the bot knows; no file here pins one, so check it")
    )
    yield f"default branch: {branch}" if in_git else f"default branch: taken to be {branch}"


def _steps(config: str, branch: str, action: str, *, in_git: bool) -> Iterator[str]:
    if not in_git:
        yield "Put the files into a git repository, at the same places from its top."
    if not action:
        yield (
            f"In both workflows write the action's address and the commit of a release in place of {PLACEHOLDER} (init "
            "--force --action ADDRESS@COMMIT does it)."
        )
    yield f"Look through {config}: which targets you ship, what may grow."
    yield (
        "On GitHub, Settings > Actions > General: allow this action, and those of `actions/`. Each job asks for the "
        "permissions that it needs; where an organisation limits them, it needs pull-requests, checks and contents: "
        "write."
    )
    yield (
        f"Make the label {APPROVAL_LABEL} (gh label create {APPROVAL_LABEL}): set by someone with write access, it "
        "accepts findings, as `/code-size accept` in a comment does."
    )
    yield f"Commit, and push to {branch}: that run stores the first baseline, on the branch code-size-data."
    yield (
        'Open a pull request. What it changes is shown in a comment, in the check "code size" and in the summary of '
        "its run; where nothing changed there is no comment, unless the configuration says `comment: always`. If "
        "growth is to stop a merge, require that check in the branch protection."
    )
