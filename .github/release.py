"""Check the tag of a release, print its notes, and publish an action that builds nothing.

`publish` makes one commit on top of the tagged one. It differs from it in one line of
action.yml: `image: Dockerfile` becomes the image that was built from the tagged commit,
by its digest. The tag vX.Y.Z moves onto that commit, and so does vX, if no later X.* is
released. Branches stay where they are: there the action is built from its Dockerfile. A
version that was published with another image is left alone: what people have pinned
does not change.

Only the standard library and git are used; .github/workflows/release.yml runs it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_TAG = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_IMAGE = re.compile(r"ghcr\.io/[a-z0-9._-]+/[a-z0-9._-]+@sha256:[0-9a-f]{64}")
_BUILT = re.compile(r"^( +image: )Dockerfile$", re.MULTILINE)
_NAME, _MAIL = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
)


class Refused(Exception):
    """Why there is no release, as one line."""


def check(top: Path, tag: str) -> str:
    """The version of a tag, where program and changelog are ready for it."""
    match = _TAG.fullmatch(tag)
    if not match:
        raise Refused(f"{tag!r} is no tag of a release: write vX.Y.Z")
    version = tag.removeprefix("v")
    written = re.search(
        r'^__version__ = "(.*)"$',
        (top / "bot/__init__.py").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    if not written or written[1] != version:
        raise Refused(
            f"bot/__init__.py says {written[1] if written else 'nothing'}, the tag"
            f" {version}"
        )
    notes(top, tag)
    return version


def notes(top: Path, tag: str) -> str:
    """What CHANGELOG.md says of the tag's version, whose section has a date."""
    version, text = (
        tag.removeprefix("v"),
        (top / "CHANGELOG.md").read_text(encoding="utf-8"),
    )
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        if re.fullmatch(
            rf"\[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}", heading
        ):
            return rest.strip() + "\n"
    raise Refused(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'")


def released(action: str, image: str) -> str:
    """action.yml with a published image in place of the Dockerfile."""
    if not _IMAGE.fullmatch(image):
        raise Refused(f"{image!r} is no image of ghcr.io with its digest")
    text, count = _BUILT.subn(rf"\g<1>docker://{image}", action)
    if count != 1:
        raise Refused(f"action.yml has {count} lines 'image: Dockerfile', not one")
    return text


def git(
    top: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> str:
    """What one git command prints."""
    argv = ["git", "-C", str(top), *arguments]
    done = subprocess.run(
        argv,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"git {arguments[0]} failed")
    return done.stdout.strip()


def publish(top: Path, tag: str, image: str) -> str:
    """Move the tags of a release onto the commit whose action uses `image`; its SHA."""
    check(top, tag)
    source = git(top, "rev-parse", "HEAD")
    made = _commit(top, source, tag, image)
    listed = (
        line.split("\t")
        for line in git(top, "ls-remote", "origin", "refs/tags/v*").splitlines()
    )
    refs = {ref: sha for sha, ref in listed}
    mine = f"refs/tags/{tag}"
    stands_at = refs.get(f"{mine}^{{}}") or refs.get(mine)
    if stands_at not in (source, made):
        raise Refused(
            f"{tag} stands at {stands_at or 'nothing'}, not at {source}: take the next"
            " version"
        )
    moved = [mine, *([_major(tag)] if _is_latest(tag, refs) else [])]
    leases = [f"--force-with-lease={ref}:{refs.get(ref, '')}" for ref in moved]
    git(top, "push", "--atomic", *leases, "origin", *(f"{made}:{ref}" for ref in moved))
    return made


def _commit(top: Path, source: str, tag: str, image: str) -> str:
    """Make a commit on top of `source`, and return its SHA.

    It depends on the arguments alone, so that a second publication makes the same one.
    """
    action = top / "action.yml"
    action.write_text(
        released(git(top, "show", f"{source}:action.yml") + "\n", image),
        encoding="utf-8",
    )
    git(top, "add", "action.yml")
    when = git(top, "show", "--no-patch", "--format=%cI", source)
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in _identity(when).items()
    }
    words = f"{tag}: the action uses its published image"
    return git(
        top,
        "commit-tree",
        git(top, "write-tree"),
        "-p",
        source,
        "-m",
        words,
        environment=who,
    )


def _identity(when: str) -> dict[str, str]:
    return {"NAME": _NAME, "EMAIL": _MAIL, "DATE": when}


def _major(tag: str) -> str:
    return f"refs/tags/{tag.partition('.')[0]}"


def _numbers(ref: str) -> tuple[int, ...] | None:
    match = _TAG.fullmatch(ref.removeprefix("refs/tags/"))
    return tuple(map(int, match.groups())) if match else None


def _is_latest(tag: str, refs: Mapping[str, str]) -> bool:
    """Whether no tag of the same major version is later."""
    own = _numbers(tag)
    others = [numbers for ref in refs if (numbers := _numbers(ref))]
    return own is not None and own == max(
        numbers for numbers in [own, *others] if numbers[0] == own[0]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one step of the release."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("check", "notes", "publish"))
    parser.add_argument("tag")
    parser.add_argument("--image", default="", help="for publish: NAME@DIGEST")
    arguments = parser.parse_args(argv)
    top = Path.cwd()
    try:
        if arguments.step == "publish":
            print(publish(top, arguments.tag, arguments.image))
        else:
            print({"check": check, "notes": notes}[arguments.step](top, arguments.tag))
    except Refused as error:
        raise SystemExit(f"release: {error}") from None
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
