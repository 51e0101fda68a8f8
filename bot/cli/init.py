"""`init`: a configuration and workflows for a repository, and what to do next."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.options import Arguments, Parser, directory
from bot.errors import BotError, OutputError, UsageError

if TYPE_CHECKING:
    from bot.config.starter import Offer
    from bot.system.processes import Cancel

EXAMPLES = ("--action OWNER/REPO@COMMIT",)
WORKFLOWS = ("code-size.yml", "code-size-post.yml")
"""Of the workflows ready to copy, those that are written: everything on one runner, and its trusted half."""
IN_PKGCI = {"iree-pkgci.yml": "pkgci_code_size.yml", "code-size-post.yml": "code-size-post.yml"}
"""Those of a repository that builds the compiler, and how they are called there."""
PLACEHOLDER = "OWNER/REPO@v1"
_ACTION = re.compile(r"(?!.*\.\.)(\./[\w./-]*|[A-Za-z0-9][\w-]*/[\w./-]+@[\w./-]+)", re.ASCII)
_USES = re.compile(rf"uses: {re.escape(PLACEHOLDER)}( #.*)$", re.MULTILINE)
_COMMIT = re.compile(r"@[0-9a-f]{40}$")
_SHORTENED = re.compile(r"@[0-9a-f]{7,39}$", re.IGNORECASE)
_ON_GITHUB = re.compile(
    r"(?:https://|git@|ssh://git@)github\.com[/:]([A-Za-z0-9][\w-]*/[\w.-]+?)(?:\.git)?/?", re.ASCII
)
_NEEDS = re.compile(r"^# Needs: .*\n(?:# .*\n)*(?:#\n)?", re.MULTILINE)


def arguments(parser: Parser) -> None:
    description = "Finds its models (.mlir and .mlirbc), the file that pins its compiler, and its default branch."
    parser.description = f"{parser.description}. {description}"
    where = "a directory of the repository (default: the current one)"
    parser.add_argument("--directory", type=directory, default=Path(), metavar="DIR", help=where)
    action = (
        "what the workflows use: OWNER/REPO@COMMIT of this action (default: where this program was installed from, "
    )
    action += "if that is a commit on GitHub, else to be filled in)"
    parser.add_argument("--action", default="", metavar="ACTION", help=action)
    parser.add_argument("--force", action="store_true", help="write over files that are there")


def run(arguments: Arguments) -> None:
    """Raises UsageError where something is there already, or the action is none: nothing was written then."""
    from bot.cli.showing import for_log
    from bot.config.configuration import load_config
    from bot.config.starter import discover
    from bot.show.escape import visible
    from bot.system.files import write_atomically
    from bot.system.git import Git, repository_of

    action, place = arguments.action, arguments.directory
    if action and not _ACTION.fullmatch(action):
        hint = "write OWNER/REPO@COMMIT, or ./ for the repository's own"
        raise UsageError(f"{action!r} is no action", where="--action", hint=hint)
    if _SHORTENED.search(action):
        what = f"{action!r} names a shortened commit, which GitHub does not look for"
        raise UsageError(what, where="--action", hint="write all of its 40 digits")
    if not place.is_dir():
        raise OutputError("is no directory", where=str(place), hint="name the repository's directory")
    top = repository_of(place, arguments.cancel).top
    git = Git(top, arguments.cancel) if top else None
    root = top or place.resolve()
    offer, branch = discover(root, git), (git and git.default_branch()) or "main"
    action = action or installed_from(arguments.cancel)
    texts = _texts(root, offer, branch, action)
    there = [name for name in texts if os.path.lexists(root / name)]
    if there and not arguments.force:
        raise UsageError("already there", where=", ".join(there), hint="--force writes over it, and keeps no copy")
    for name, text in texts.items():
        write_atomically(root / name, text.encode())
    name = next(iter(texts))
    load_config(root / name)  # what is written has to be taken
    lines = [f"wrote {os.path.relpath(root / name)}" for name in texts]
    if not arguments.quiet:
        steps = enumerate(_steps(name, branch, action, offer, in_git=git is not None), 1)
        lines[:0] = [*_notes(root, offer, branch, in_git=git is not None), ""]
        if action and not arguments.action:
            lines.insert(0, f"action: {action}, where this program was installed from (--action names another)")
        lines += ["", "next:", *(f"{number}. {step}" for number, step in steps)]
    print(for_log("\n".join(map(visible, lines))), flush=True)


def installed_from(cancel: Cancel) -> str:
    """`OWNER/REPO@COMMIT` on GitHub that this program is of; empty where that is not known.

    pip writes down where a distribution came from (PEP 610). Of a checkout it is `origin`, if that has its commit.
    """
    import json
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    from bot.system.git import Git

    known = (one.read_text("direct_url.json") for one in metadata.distributions(name="code-size-bot"))
    source = json.loads(next(filter(None, known), "{}"))
    url, commit = str(source.get("url", "")), str(source.get("vcs_info", {}).get("commit_id", ""))
    if url.startswith("file://"):
        git = Git(Path(unquote(urlsplit(url).path)), cancel)
        with suppress(BotError):
            url, commit = git.text("remote", "get-url", "origin"), git.text("rev-parse", "HEAD")
            commit = commit if git.text("branch", "--remotes", "--contains", commit, "--list", "origin/*") else ""
    address = _ON_GITHUB.fullmatch(url)
    return f"{address[1]}@{commit}" if address and re.fullmatch("[0-9a-f]{40}", commit) else ""


def _texts(root: Path, offer: Offer, branch: str, action: str) -> dict[str, str]:
    """File → what is to be in it; the configuration first. One that is there already keeps its place."""
    from bot.config.configuration import CONFIG_NAMES
    from bot.config.starter import configuration

    usual = CONFIG_NAMES[0 if offer.builds else -1]
    name = next((name for name in CONFIG_NAMES if os.path.lexists(root / name)), usual)
    files = IN_PKGCI if offer.builds else dict(zip(WORKFLOWS, WORKFLOWS, strict=True))
    workflows = {f".github/workflows/{there}": workflow(file, branch, action) for file, there in files.items()}
    if offer.builds:
        post = f".github/workflows/{WORKFLOWS[1]}"
        workflows[post] = workflows[post].replace("workflows: [code size, code size sharded]", "workflows: [PkgCI]")
    return {name: configuration(root, name, offer), **workflows}


def workflow(file: str, branch: str, action: str) -> str:
    """A workflow ready to copy, for this default branch and this action; what it needs is no longer said, but done."""
    from bot.config.configuration import configs_dir

    text = (configs_dir() / "workflows" / file).read_text(encoding="utf-8")
    if branch != "main":
        import json

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


def _notes(root: Path, offer: Offer, branch: str, *, in_git: bool) -> Iterator[str]:
    from bot.config.starter import offer_lines

    if not in_git:
        yield f"{root} is in no git repository: all files below it were looked through"
    yield from offer_lines(offer)
    yield f"default branch: {branch}" if in_git else f"default branch: taken to be {branch}"


def _steps(config: str, branch: str, action: str, offer: Offer, *, in_git: bool) -> Iterator[str]:
    from bot.core.publication import APPROVAL_LABEL

    if not in_git:
        yield "Put the files into a git repository, at the same places from its top."
    if not action:
        yield (
            f"In both workflows write the action's address and the commit of a release in place of {PLACEHOLDER} (init "
            "--force --action ADDRESS@COMMIT does it)."
        )
    yield f"Look through {config}: which targets you ship, what may grow."
    if offer.builds:
        yield (
            "Paste the job from the first lines of pkgci_code_size.yml into .github/workflows/pkgci.yml, and leave it "
            "out of the needs of pkgci_summary: a verdict stops no merge before you want it to."
        )
        yield (
            'Add "code_size" to DEFAULT_SCHEDULE_ONLY_JOBS in build_tools/github_actions/configure_ci.py. Then it runs '
            "after each merge, and in a pull request whose description ends with the line `ci-extra: code_size`."
        )
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
        f'Open a pull request. What it changes is shown in a comment, in the check "code size ({branch})" and in the '
        "summary of its run; where nothing changed there is no comment, unless the configuration says "
        f"`comment: always`. If growth is to stop a merge, require that check in the protection of {branch}."
    )
