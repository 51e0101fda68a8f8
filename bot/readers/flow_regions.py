"""Read the dispatch regions of a program from its text at the phase `flow`.

Numbers in names are left out.

Format: `flow.executable private @main_dispatch_0 {` holds one function; `flow.dispatch
@main_dispatch_0::@…` is a place where the program launches it (3.8.0 to 3.13.0).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping

_EXECUTABLE = re.compile(
    r'^  flow\.executable [^\n]*?@("?)(?P<name>[^\s"{]+)\1.*?^  \}$',
    re.MULTILINE | re.DOTALL,
)
_SITE = re.compile(r'flow\.dispatch @"?([^\s":]+)"?::')
_ORDINAL = re.compile(r"_dispatch_\d+")


def named_regions(text: str) -> Mapping[str, str]:
    """Return executable → the digest of its region."""
    regions = dict[str, str]()
    for match in _EXECUTABLE.finditer(text):
        unnumbered = _ORDINAL.sub("_dispatch", match[0])
        regions[match["name"]] = hashlib.sha256(unnumbered.encode()).hexdigest()
    return regions


def regions_of(text: str) -> Mapping[str, int]:
    """Return digest of a region → how many places of the program launch it."""
    sites = Counter(_SITE.findall(text))
    regions = Counter[str]()
    for name, digest in named_regions(text).items():
        regions[digest] += max(1, sites[name])
    return regions


def distance(base: Mapping[str, int], head: Mapping[str, int]) -> int:
    """Return how many regions only one of two programs has."""
    difference = Counter(base)
    difference.subtract(head)
    return sum(map(abs, difference.values()))
