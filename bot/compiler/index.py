"""Find out whether the package index has a release at all.

A missing answer never counts as a no.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bot.compiler.wheels import pip
from bot.core.spec import Places
from bot.system.cancel import Cancel
from bot.system.files import temporary_directory

_PATIENCE_SECONDS = 120
# What pip's log says of a place that gave no list of files.
_UNANSWERED = re.compile(
    r"Could not fetch URL (?P<url>\S+): (?P<reason>.*)|Location '(?P<path>[^']*)' is"
    r" ignored|Skipping page"
)
_OFFERED = re.compile(r"^\S+ Available versions: (.+)$", re.MULTILINE)


def is_missing(release: str, places: Places, cancel: Cancel) -> bool:
    """Return True if every place answered, and none has a file of this release.

    A release for other machines alone is not missing. False if a place did not
    answer, or has nothing of the project: then it is unknown.
    """
    with temporary_directory("index-") as scratch:
        log = scratch / "log"
        argv = (
            "index",
            "versions",
            places.project,
            "--pre",
            f"--log={log}",
            *places.argv,
        )
        pip(*argv, cancel=cancel, timeout_seconds=_PATIENCE_SECONDS)
        text = ""
        if log.is_file():
            text = log.read_text(encoding="utf-8", errors="replace")
    for match in _UNANSWERED.finditer(text):
        if not _is_empty_index(match, places.project):
            return False
    releases = set(_versions(text, places.project))
    return bool(releases) and Version(release) not in releases


def _is_empty_index(match: re.Match[str], project: str) -> bool:
    """Return True if an index answered that it does not have the project."""
    place = match["url"] or match["path"] or ""
    is_of_project = canonicalize_name(
        place.rstrip("/").rpartition("/")[2]
    ) == canonicalize_name(project)
    return is_of_project and (
        match["reason"] is None or match["reason"].startswith("404 ")
    )


def _versions(text: str, project: str) -> Iterator[Version]:
    """Return the versions of all files of the project that pip saw.

    They may be for any machine.
    """
    name = re.sub(
        "[-_.]+", "[-_.]+", re.escape(canonicalize_name(project)).replace(r"\-", "-")
    )
    listed = list[str]()
    for line in _OFFERED.findall(text):
        listed += map(str.strip, line.split(","))
    files = re.findall(rf"(?i:{name})-(\d[^-/\s]*)-[^/\s]*\.whl", unquote(text))
    for version in (*listed, *files):
        try:
            yield Version(version)
        except InvalidVersion:  # a file of before PEP 440
            continue
