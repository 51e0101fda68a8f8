"""The first configuration of a repository: its models and the file that pins its compiler, in a commented text.

Names of files are relative to the top of the repository, with slashes.
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

MOST_MODELS = 20  # a pull request waits for each of them; who wants more writes them down
MOST_BYTES = 32 << 20  # of a model: a larger one holds weights, which no dispatch is made of
_MOST_CHARACTERS = 200  # of a name: the configuration is shown in a comment, and names may be anything
_SUFFIXES = (".mlir", ".mlirbc")
_LOOKED_FOR = (*(f"*{suffix}" for suffix in _SUFFIXES), "*requirements*", "*constraints*", "*pyproject.toml")
_FOREIGN = re.compile(
    r"\..+|(?:build|bazel|cmake-build|dist|out|venv|env)(?:[-_.].*)?|third[-_]?party|externals?|vendor(?:ed)?"
    r"|node_modules|site-packages|(?:unit)?tests?|test[-_]?data|lit",
    re.IGNORECASE,
)
_PINS = re.compile(
    r"(?:.*/)?(?:pyproject\.toml|[\w.-]*(?:requirements|constraints)[\w.-]*(?:/[\w.-]+)?\.txt)", re.ASCII
)


class Offer(Small, frozen=True):
    """What a repository offers."""

    models: tuple[str, ...]  # those to measure, sorted; their stems are unique
    left_out: int  # how many other files have a model's suffix
    pin: str = ""  # the file that pins the compiler; empty where there is none
    compiler: str = ""  # the SPEC that it pins


def discover(top: Path, git: Git) -> Offer:
    """Look through what git tracks, or would track: the smallest models, and the outermost file that pins one release.

    Folders of tests, builds and others' code are not looked into.
    """
    text = git.text("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_LOOKED_FOR)
    listed = [name for name in sorted(set(text.split("\0")) - {""}) if (top / name).is_file()]
    names = sorted(
        (
            name
            for name in listed
            if name.isprintable()
            and len(name) <= _MOST_CHARACTERS
            and not any(map(_FOREIGN.fullmatch, name.split("/")[:-1]))
            and (top / name).resolve().is_relative_to(top.resolve())
        ),
        key=lambda name: (name.count("/"), name),
    )
    by_stem: dict[str, str] = {}
    for name in names:
        if name.endswith(_SUFFIXES) and 0 < (top / name).stat().st_size <= MOST_BYTES:
            by_stem.setdefault(Path(name).stem, name)
    smallest = sorted(by_stem.values(), key=lambda name: ((top / name).stat().st_size, name))[:MOST_MODELS]
    left_out = sum(name.endswith(_SUFFIXES) for name in listed) - len(smallest)
    for name in filter(_PINS.fullmatch, names):
        with suppress(ConfigError):
            return Offer(tuple(sorted(smallest)), left_out, name, sought_compiler(top / name, top).spec)
    return Offer(tuple(sorted(smallest)), left_out)


_CONFIG = """\
# What code-size-bot measures in this repository, and what it lets through: a beginning, for you
# to change. A key that is left out has its packaged default; what is commented out below is an
# example of it.
schema: code-size-config/1

{compiler}

{models}

# Without this key all default targets are measured; `code-size-bot targets` lists them.
# targets: [llvm-cpu-x86_64, vmvx]

# Compiler flags for every cell, beside those of its target.
# flags: [--iree-opt-level=O2]

# How much may grow. For each cell and metric the FIRST rule that matches decides, so special
# cases come first and a rule for everything comes last. A level is exceeded by growth beyond
# `absolute` and `relative` (both), or by a value above `limit`.
# thresholds:
#   - name: code size
#     metrics: [artifact_bytes, executable_bytes]
#     warn: {{absolute: 1KiB, relative: 1%}}
#     fail: {{absolute: 4KiB, relative: 5%}}
#   - name: everything else
#     metrics: ["*"]
#     warn: 10%

# `always` comments also where nothing changed; `fail_job: true` makes the job red where the
# verdict is fail.
# comment: always
# fail_job: true
"""
_PINNED = """\
# The compiler of a commit is the release that this file pins there, so that a pull request which
# changes the pin shows what the other release does to the code. It pinned
# {compiler} when this was written.
compiler: {{requirements: {pin}}}"""
_UNPINNED = """\
# The compiler of every commit: a release that code-size-bot knows, as no requirements or
# constraints file and no pyproject.toml here pins iree-base-compiler. Name yours; better, pin it
# in such a file and write {{requirements: FILE}}.
compiler: {{head: {compiler}}}"""
_MODELS = """\
# Globs relative to this file. Models are .mlir or .mlirbc; weights do not belong into them.
models:
{globs}"""
_NO_MODELS = """\
# No model was found here, so that the packaged suite is measured. Globs are relative to this
# file.
# models: ["{folder}models/*.mlir"]"""


def configuration(root: Path, name: str, offer: Offer) -> str:
    """The configuration `name` below `root`, with what it offers."""
    up = "../" * name.count("/")
    compiler = _UNPINNED.format(compiler=packaged_compiler())
    models = _NO_MODELS.format(folder=up)
    if offer.pin:
        compiler = _PINNED.format(compiler=offer.compiler, pin=json.dumps(offer.pin, ensure_ascii=False))
    if offer.models:
        globs = (f"  - {json.dumps(up + one, ensure_ascii=False)}" for one in _globs(root, offer.models))
        models = _MODELS.format(globs="\n".join(globs))
    return _CONFIG.format(compiler=compiler, models=models)


def packaged_compiler() -> str:
    """The release that the packaged configuration has on its head side."""
    return load_config(configs_dir() / "default.yml", models=False).compiler.head


def _globs(root: Path, models: Sequence[str]) -> Iterator[str]:
    """One glob for a folder whose files of one kind are all models, else the models by their names."""
    kinds: dict[str, list[str]] = {}
    for model in models:
        folder, _, file = model.rpartition("/")
        kinds.setdefault(f"{glob.escape(folder)}/*{Path(file).suffix}".removeprefix("/"), []).append(model)
    for pattern, members in sorted(kinds.items()):
        is_whole = len(members) > 1 and set(glob.glob(pattern, root_dir=root)) == set(members)
        yield from [pattern] if is_whole else map(glob.escape, members)


def offer_lines(offer: Offer) -> Iterator[str]:
    """What a configuration is made of, one line each."""
    yield (
        f"models: {len(offer.models)} of this repository"
        if offer.models
        else "models: the packaged suite, as none was found here"
    )
    if offer.left_out:
        yield (
            f"left out: {offer.left_out} .mlir or .mlirbc, of tests, builds or others' code, empty, of a name that is "
            f"taken, larger than {MOST_BYTES >> 20} MiB, or not among the {MOST_MODELS} smallest"
        )
    yield (
        f"compiler: {offer.compiler}, as {offer.pin} pins it"
        if offer.pin
        else f"compiler: {packaged_compiler()}, a release that the bot knows; no file here pins one, so check it"
    )
