"""Find the models and the compiler pin of a repository, and write its configuration.

File names are relative to the top of the repository, with slashes.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from bot.config.configuration import configs_dir, load_config
from bot.config.requirements import sought_compiler
from bot.core.record import Small
from bot.errors import ConfigError
from bot.system.git import Git

MOST_MODELS = 20  # a pull request waits for each model; users can add more by hand
MOST_BYTES = 32 << 20  # of a model: a larger file holds weights, which give no dispatch
# of a file name: names come from anybody, and comments show them
_MOST_CHARACTERS = 200
_SUFFIXES = (".mlir", ".mlirbc")
_LOOKED_FOR = (
    *(f"*{suffix}" for suffix in _SUFFIXES),
    "*requirements*",
    "*constraints*",
    "*pyproject.toml",
)
_FOREIGN = re.compile(
    r"\..+|(?:build|bazel|cmake-build|dist|out|venv|env)(?:[-_.].*)?|third[-_]?party|externals?|vendor(?:ed)?"
    r"|node_modules|site-packages|(?:unit)?tests?|test[-_]?data|lit",
    re.IGNORECASE,
)
_PINS = re.compile(
    r"(?:.*/)?(?:pyproject\.toml|[\w.-]*(?:requirements|constraints)[\w.-]*(?:/[\w.-]+)?\.txt)",
    re.ASCII,
)


class Offer(Small, frozen=True):
    """The models and the compiler pin that were found in a repository."""

    models: tuple[str, ...]  # the models to measure, sorted; their stems are unique
    left_out: int  # number of other files with the suffix of a model
    pin: str = ""  # the file that pins the compiler, or empty
    compiler: str = ""  # the SPEC that the file pins


def discover(top: Path, git: Git) -> Offer:
    """Return the smallest models, and the outermost file that pins one release.

    Only files that git tracks or would track count. Folders of tests, builds and
    third-party code are skipped.
    """
    listed = git.names(
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *_LOOKED_FOR,
    )
    files = {name for name in listed if (top / name).is_file()}
    names = [name for name in files if _is_offered(top, name)]
    names.sort(key=lambda name: (name.count("/"), name))
    by_stem: dict[str, str] = {}
    for name in names:
        if name.endswith(_SUFFIXES) and 0 < (top / name).stat().st_size <= MOST_BYTES:
            by_stem.setdefault(Path(name).stem, name)
    smallest = sorted(
        by_stem.values(), key=lambda name: ((top / name).stat().st_size, name)
    )[:MOST_MODELS]
    left_out = sum(name.endswith(_SUFFIXES) for name in files) - len(smallest)
    for name in filter(_PINS.fullmatch, names):
        with suppress(ConfigError):
            return Offer(
                models=tuple(sorted(smallest)),
                left_out=left_out,
                pin=name,
                compiler=sought_compiler(top / name, top).spec,
            )
    return Offer(tuple(sorted(smallest)), left_out)


def _is_offered(top: Path, name: str) -> bool:
    """Return True for a file of the repository's own, with a name fit for the starter."""
    if not name.isprintable() or len(name) > _MOST_CHARACTERS:
        return False
    if any(map(_FOREIGN.fullmatch, name.split("/")[:-1])):
        return False
    return (top / name).resolve().is_relative_to(top.resolve())


_CONFIG = """\
# The configuration of code-size-bot: what it measures, and how much may grow. Edit this file.
# A missing key has its packaged default. The lines behind a # are examples.
schema: code-size-config/1

{compiler}

{models}

# Targets to measure. Defaults to all default targets: `code-size-bot targets` lists them.
# targets: [llvm-cpu-x86_64, vmvx]

# Compiler flags for every build. They follow the flags of the target.
# flags: [--iree-opt-level=O2]

# How much may grow. For each build and metric, the FIRST matching rule decides. Write special
# rules first, and end with a rule for everything. Growth exceeds a level only if it exceeds
# both `absolute` and `relative`. A value exceeds a level if it is above `limit`.
# thresholds:
#   - name: code size
#     metrics: [artifact_bytes, executable_bytes]
#     warn: {{absolute: 1KiB, relative: 1%}}
#     fail: {{absolute: 4KiB, relative: 5%}}
#   - name: everything else
#     metrics: ["*"]
#     warn: 10%

# `comment: always` also writes a comment if nothing changed.
# `fail_job: true` also fails the job if the verdict is fail.
# `after_merge: issue` opens one issue while the default branch exceeds the thresholds.
# comment: always
# fail_job: true
# after_merge: issue
"""
_PINNED = """\
# The bot reads the compiler release of each commit from this file. A pull request that changes
# the pin therefore shows what the other release does to the code. The pin is now
# {compiler}.
compiler: {{requirements: {pin}}}"""
_UNPINNED = """\
# The compiler of every commit: a release that code-size-bot was tested with. No requirements
# file, constraints file or pyproject.toml here pins iree-base-compiler. Write your release here,
# or pin it in such a file and write {{requirements: FILE}}.
compiler: {{head: {compiler}}}"""
_MODELS = """\
# Models to measure: globs of .mlir or .mlirbc files, relative to this file. Leave the weights
# of a model out of these files.
models:
{globs}"""
_NO_MODELS = """\
# No model was found here, so the bot measures its packaged suite. Globs are relative to this
# file.
# models: ["{folder}models/*.mlir"]"""


def configuration(root: Path, name: str, offer: Offer) -> str:
    """Return the text of the configuration `name`, for a repository at `root`."""
    up = "../" * name.count("/")
    compiler = _UNPINNED.format(compiler=packaged_compiler())
    models = _NO_MODELS.format(folder=up)
    if offer.pin:
        compiler = _PINNED.format(
            compiler=offer.compiler, pin=json.dumps(offer.pin, ensure_ascii=False)
        )
    if offer.models:
        lines = []
        for pattern in _globs(root, offer.models):
            lines.append(f"  - {json.dumps(up + pattern, ensure_ascii=False)}")
        models = _MODELS.format(globs="\n".join(lines))
    return _CONFIG.format(compiler=compiler, models=models)


def packaged_compiler() -> str:
    """Return the release on the head side of the packaged configuration."""
    return load_config(configs_dir() / "default.yml", models=False).compiler.head


def _globs(root: Path, models: Sequence[str]) -> Iterator[str]:
    """Yield one glob for a folder whose files of one kind are all models, else each model."""
    kinds: dict[str, list[str]] = {}
    for model in models:
        folder, _, file = model.rpartition("/")
        kinds.setdefault(
            f"{glob.escape(folder)}/*{Path(file).suffix}".removeprefix("/"), []
        ).append(model)
    for pattern, members in sorted(kinds.items()):
        is_whole = len(members) > 1 and set(glob.glob(pattern, root_dir=root)) == set(
            members
        )
        yield from [pattern] if is_whole else map(glob.escape, members)


def offer_lines(offer: Offer) -> Iterator[str]:
    """Yield one line for each thing that was found and written into the configuration."""
    yield (
        f"models: {len(offer.models)} of this repository"
        if offer.models
        else "models: the packaged suite, because no model was found here"
    )
    if offer.left_out:
        yield (
            f"skipped: {offer.left_out} .mlir or .mlirbc files: in folders of tests,"
            " builds or third-party code, empty, with a duplicate name, larger than"
            f" {MOST_BYTES >> 20} MiB, or not among the {MOST_MODELS} smallest"
        )
    yield (
        f"compiler: {offer.compiler}, pinned by {offer.pin}"
        if offer.pin
        else (
            f"compiler: {packaged_compiler()}, a tested release; no file here pins one,"
            " so check it"
        )
    )
