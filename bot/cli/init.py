"""`init`: write a configuration and workflows for a repository, and what to do next."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from bot.cli.grammar import Arguments, Parser
from bot.errors import UsageError

EXAMPLES = ("git init demo", "cd demo", "code-size-bot init")
WORKFLOWS = ("code-size.yml", "code-size-post.yml")
"""The workflows that are always written: all on one runner, and its trusted half."""
WEEKLY = "code-size-weekly.yml"
"""The workflow of the weekly summary, which is written if somebody asks for it."""
COMMANDS_WORKFLOW = "code-size-commands.yml"
"""The workflow of commands in a comment, which is written if somebody asks for it."""
PLACEHOLDER = "OWNER/REPO@v1"
_ACTION = re.compile(
    r"(?!.*\.\.)(\./[\w./-]*|[A-Za-z0-9][\w-]*/[\w./-]+@[\w./-]+)", re.ASCII
)
_USES = re.compile(rf"uses: {re.escape(PLACEHOLDER)}( #.*)$", re.MULTILINE)
_COMMIT = re.compile(r"@[0-9a-f]{40}$")
_NEEDS = re.compile(r"^# Needs: .*\n(?:# .*\n)*(?:#\n)?", re.MULTILINE)


def arguments(parser: Parser) -> None:
    parser.description = (
        f"{parser.description}\n\nThe command finds the models (.mlir, .mlirbc), the"
        " file that pins the compiler, and the default branch. In a repository that"
        " builds IREE, copy configs/workflows/iree-pkgci.yml instead."
    )
    about = "address of this action: OWNER/REPO@COMMIT"
    parser.add_argument("--action", default="", metavar="ACTION", help=about)
    about = "also write the workflow of a weekly summary of slow growth"
    parser.add_argument("--weekly", action="store_true", help=about)
    about = "also write the workflow of commands in a comment"
    parser.add_argument("--commands", action="store_true", help=about)
    parser.add_argument("--force", action="store_true", help="replace existing files")


def run(arguments: Arguments) -> None:
    """Write the configuration and the workflows, and print the next steps.

    Raises:
        UsageError: The action is wrong, there is no repository, or a file exists.
            Nothing is written then.
    """
    from bot.cli.showing import for_log
    from bot.config.configuration import CONFIG_NAMES, load_config
    from bot.config.starter import configuration, discover, offer_lines
    from bot.show.escape import visible
    from bot.system.files import write_atomically
    from bot.system.git import Git, repository_of

    action = arguments.action
    if action and not _ACTION.fullmatch(action):
        hint = "write OWNER/REPO@COMMIT, or ./ for the repository's own"
        raise UsageError(f"{action!r} is not an action", where="--action", hint=hint)
    root = repository_of(Path(), arguments.cancel).top
    if root is None:
        raise UsageError(
            "is not in a git repository",
            where=str(Path.cwd()),
            hint="make one: git init",
        )
    git = Git(root, arguments.cancel)
    offer = discover(root, git)
    branch = git.default_branch() or "main"
    config = CONFIG_NAMES[0]
    for name in CONFIG_NAMES:
        if os.path.lexists(root / name):
            config = name
            break
    texts = {config: configuration(root, config, offer)}
    for file in _workflow_files(arguments):
        texts[f".github/workflows/{file}"] = workflow(file, branch, action)
    existing = [name for name in texts if os.path.lexists(root / name)]
    if existing and not arguments.force:
        raise UsageError(
            "already exists",
            where=", ".join(existing),
            hint="--force replaces it without a copy",
        )
    for name, text in texts.items():
        write_atomically(root / name, text.encode())
    load_config(root / config)  # fails now if the written configuration is not valid
    lines = [f"wrote {os.path.relpath(root / name)}" for name in texts]
    if not arguments.quiet:
        discovered = [*offer_lines(offer), f"default branch: {branch}"]
        lines = [*discovered, "", *lines, "", "next:"]
        for number, step in enumerate(_steps(config, branch, action), 1):
            lines.append(f"{number}. {step}")
    print(for_log("\n".join(map(visible, lines))), flush=True)


def _workflow_files(arguments: Arguments) -> list[str]:
    """Return the workflows that are always written, and those that were asked for."""
    files = list(WORKFLOWS)
    if arguments.weekly:
        files.append(WEEKLY)
    if arguments.commands:
        files.append(COMMANDS_WORKFLOW)
    return files


def workflow(file: str, branch: str, action: str) -> str:
    """Return a workflow for this default branch and this action.

    With an action, it lacks the comment `# Needs: …` at its top.
    """
    from bot.config.configuration import configs_dir

    text = (configs_dir() / "workflows" / file).read_text(encoding="utf-8")
    if branch != "main":
        import json

        escaped = re.sub(r"([*+?!\[\]\\])", r"\\\1", branch)
        text = text.replace(
            "branches: [main]", f"branches: [{json.dumps(escaped, ensure_ascii=False)}]"
        )
    if not action:
        return text
    text = _USES.sub(lambda match: f"uses: {action}{_remark(action, match[1])}", text)
    return _NEEDS.sub("", text)


def _remark(action: str, unpinned: str) -> str:
    """Return the remark behind the action, for zizmor and the reader.

    A pinned action needs no remark. `unpinned`: the remark of an action that is not.
    """
    if action.startswith("./"):
        return (
            " # zizmor: ignore[self-repository] actionlint does not know the newer"
            " form yet"
        )
    if _COMMIT.search(action):
        return ""
    return unpinned


def _steps(config: str, branch: str, action: str) -> Iterator[str]:
    from bot.core.acceptance import APPROVAL_LABEL

    if not action:
        yield (
            f"Replace {PLACEHOLDER} in all workflows by the address of the action and"
            " the commit of a release. Or run `code-size-bot init --force --action"
            " ADDRESS@COMMIT`."
        )
    yield f"Edit {config}: set the targets that you ship, and the allowed growth."
    yield (
        "On GitHub, open Settings > Actions > General. Allow this action, and those of"
        " `actions/`. If your organisation limits permissions, allow `write` for"
        " pull-requests, checks and contents."
    )
    yield (
        f"Create the label that accepts findings: gh label create {APPROVAL_LABEL}. It"
        " counts only if somebody with write access sets it."
    )
    yield (
        f"Commit, and push to {branch}. That run stores the first baseline, on the"
        " branch code-size-data."
    )
    yield (
        'Open a pull request. The bot reports in a comment, in the check "code size'
        f' ({branch})" and in the job summary. There is no comment if nothing changed,'
        " unless the configuration has `comment: always`."
    )
    yield (
        "To block a merge on growth, require that check in the branch protection of"
        f" {branch}."
    )
