"""A configuration that fits a repository, as text: for `init`, and for a run that finds none."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from bot.config.configuration import configs_dir, load_config
from bot.config.discovery import Found

_LEFT_OUT_TOLD = 8
_TEXT_CHARS = 20_000
"""Of a starter that is shown: GitHub's comments hold 65,536, and names of files may be anything."""

_CONFIG = """\
# What code-size-bot measures in this repository, and what it lets through: a beginning, for you
# to change. A key that is left out has its packaged default; what is commented out below is an
# example of it.
schema: code-size-config/1

{compiler}

{models}

# Without this key all of these are measured.
# targets:
{targets}

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
# models: ["models/*.mlir"]"""


def configuration(root: Path, name: str, found: Found) -> str:
    """The configuration `name` below `root`, with what was found."""
    up = "../" * name.count("/")
    default = load_config(None, models=False)
    if found.pin:
        compiler = _PINNED.format(compiler=found.compiler, pin=_quoted(found.pin))
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


def shown_starter(root: Path, name: str, found: Found) -> str:
    """The configuration as it is shown to people: without the models where their names are longer than anyone reads."""
    text = configuration(root, name, found)
    return text if len(text) <= _TEXT_CHARS else configuration(root, name, replace(found, models=()))


def found_lines(found: Found) -> Iterator[str]:
    """What a configuration is made of, and what was not taken; one line each."""
    whole = load_config(None)
    targets = sum(1 for target in whole.targets if not target.unsupported)
    whose = "of this repository" if found.models else "of the packaged suite, as none was found here"
    yield f"models: {len(found.models or whole.models)} {whose}, on {targets} targets"
    left_out = sorted(found.left_out.items())
    yield from (f"  not {name}: {why}" for name, why in left_out[:_LEFT_OUT_TOLD])
    if len(left_out) > _LEFT_OUT_TOLD:
        yield f"  and {len(left_out) - _LEFT_OUT_TOLD} more files were left out; add to `models` those you want"
    yield from (f"  no pin: {line}" for line in found.unpinned)
    yield (
        f"compiler: {found.compiler}, as {found.pin} pins it"
        if found.pin
        else f"compiler: {packaged_compiler()}, a release that the bot knows; no file here pins one, so check it"
    )
