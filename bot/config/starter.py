"""The first configuration of a repository: what it has that can be measured, and a file that fits it, as text.

Names of files are relative to the directory that is looked through, with slashes. A repository that builds the compiler
itself has no models in this sense, and pins no compiler.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from bot.config.configuration import MODEL_SUFFIXES, configs_dir, load_config
from bot.config.requirements import asks_for_compiler, pinned_compiler
from bot.core.record import Small
from bot.errors import ConfigError
from bot.system.git import Git

MOST_MODELS = 20  # a pull request waits for each of them; who wants more writes them down
MOST_BYTES = 32 << 20  # of a model: a larger one holds weights, which no dispatch is made of
_LOOKED_FOR = (*(f"*{suffix}" for suffix in MODEL_SUFFIXES), "*requirements*", "*constraints*", "*pyproject.toml")

_FOREIGN = re.compile(
    r"\..+|(?:build|bazel|cmake-build|dist|out|venv|env)(?:[-_.].*)?|third[-_]?party|externals?|vendor(?:ed)?"
    r"|node_modules|site-packages|__pycache__",
    re.IGNORECASE,
)
_TESTS = re.compile(r"(?:unit)?tests?|test[-_]?data|lit", re.IGNORECASE)
_SAMPLES = re.compile(r"samples?|examples?|demos?|tutorials?|builtins?", re.IGNORECASE)
_TENSOR = re.compile(rb"\btensor<|!torch\.|!hal\.buffer_view")
_INSIDES = re.compile(rb"\b(?:(?:hal|stream)\.executable|vm\.module|transform\.|pdl\.pattern)")
"""What compilers write between a model and its code, and what steers them."""
_BUILDS = ("compiler/setup.py", "compiler/version.json", ".github/workflows/pkgci.yml")
"""Files of a repository that builds the compiler, and tests what it has built."""
_TORCH_MODELS = "tests/external/iree-test-suites/torch_models"
_LIT_TEST = re.compile(rb"^[ \t]*//[ \t]*RUN:", re.MULTILINE)
_HEAD_BYTES = 8192
_BYTECODE, _LFS = b"ML\xefR", b"version https://git-lfs."
# The better file for a pin comes first.
_PIN_FILES = (
    re.compile(r"requirements\.txt"),
    re.compile(r"[\w.-]*requirements[\w.-]*(?:/[\w.-]+)?\.txt"),
    re.compile(r"[\w.-]*constraints[\w.-]*\.txt"),
    re.compile(r"pyproject\.toml"),
    re.compile(r"[\w.-]*(?:requirements|constraints)[\w.-]*\.in"),
)


class Offer(Small, frozen=True):
    """What a repository offers."""

    models: tuple[str, ...]  # those to measure, sorted; their stems are unique
    left_out: Mapping[str, str]  # file that could be taken for a model → why it is not one of them
    pin: str = ""  # the file that pins the compiler; empty where there is none
    compiler: str = ""  # the SPEC that it pins
    unpinned: tuple[str, ...] = ()  # one line for every better file that names the compiler without pinning one release
    # file of a part of the repository that has none of the models → the compiler that it pins
    others: Mapping[str, str] = {}
    builds: bool = False  # the repository builds the compiler
    suite: str = ""  # its folder in the layout of torch_models; empty where there is none


def discover(top: Path, git: Git | None) -> Offer:
    """Look through a directory: through what git tracks or would track, else through all that is not hidden."""
    if all((top / name).is_file() for name in _BUILDS):
        return Offer((), {}, builds=True, suite=_TORCH_MODELS if (top / _TORCH_MODELS).is_dir() else "")
    listed = list[str]()
    if git:
        text = git.text("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *_LOOKED_FOR)
        listed = sorted(set(text.split("\0")) - {""})
    else:
        for directory, folders, files in os.walk(top):
            folders[:] = sorted(folder for folder in folders if not _FOREIGN.fullmatch(folder))
            listed += [Path(directory, file).relative_to(top).as_posix() for file in sorted(files)]
    names = [name for name in listed if (top / name).is_file()]
    models, left_out = _models(top, [name for name in names if name.endswith(MODEL_SUFFIXES)])
    return Offer(models, left_out, *_pin(top, names, models))


def _models(top: Path, names: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    left_out = {name: why for name in sorted(names) if (why := _unfit(top, name))}
    fit = set(names) - left_out.keys()
    samples = {name for name in fit if any(map(_SAMPLES.fullmatch, name.split("/")[:-1]))}
    if fit - samples:
        left_out |= dict.fromkeys(samples, "in a folder of samples, where there are models elsewhere")
    by_stem: dict[str, str] = {}
    for name in sorted(fit - left_out.keys(), key=lambda name: (name.count("/"), name)):
        first = by_stem.setdefault(Path(name).stem, name)
        if first != name:
            left_out[name] = f"it has the same name as {first}, and reports name models by it"
    by_size = sorted(by_stem.values(), key=lambda name: ((top / name).stat().st_size, name))
    beyond = f"beyond the {MOST_MODELS} smallest models: each adds to the time of a pull request's run"
    left_out |= dict.fromkeys(by_size[MOST_MODELS:], beyond)
    return tuple(sorted(by_size[:MOST_MODELS])), left_out


def _unfit(top: Path, name: str) -> str:
    path = top / name
    if not name.isprintable():
        return "its name has characters that do not print"
    folders = name.split("/")[:-1]
    if any(map(_FOREIGN.fullmatch, folders)):
        return "in a folder of builds, of others' code, or hidden"
    if any(map(_TESTS.fullmatch, folders)):
        return "in a folder of tests"
    if not path.resolve().is_relative_to(top.resolve()):
        return "a link that leaves the repository"
    if name.endswith(".onnx"):
        return "ONNX, which the action's image does not import"
    if path.stat().st_size > MOST_BYTES:
        return f"larger than {MOST_BYTES >> 20} MiB: keep weights out of the file, as parameters or arguments"
    try:
        data = path.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not data.strip():
        return "empty"
    if data.startswith(_LFS):
        return "a pointer of Git LFS, and the bot fetches no large files"
    if data.startswith(_BYTECODE):
        return ""
    if not name.endswith(".mlir"):
        return "not MLIR bytecode"
    if _LIT_TEST.search(data[:_HEAD_BYTES]):
        return "a test of a compiler: it has RUN lines"
    if b"func" not in data:
        return "defines no function"
    if _INSIDES.search(data[:_HEAD_BYTES]) or not _TENSOR.search(data):
        return "no model, but a part of one or of a compiler: no function of tensors"
    return ""


def _pin(top: Path, names: Iterable[str], models: Sequence[str]) -> tuple[str, str, tuple[str, ...], dict[str, str]]:
    """The best file that pins the compiler, what it pins, what is wrong with better ones, and what other parts pin."""
    unpinned: list[str] = []
    others: dict[str, str] = {}
    for name in sorted(filter(_rank, names), key=lambda name: (name.count("/"), _rank(name), name)):
        with suppress(ConfigError):  # a file that cannot be read
            if asks_for_compiler(top / name):
                try:
                    pinned = pinned_compiler(top / name)
                    if _is_theirs(name, models):
                        return name, pinned, tuple(unpinned), others
                    others[name] = pinned
                except ConfigError as error:
                    unpinned.append(error.line.replace(f"{top}/", ""))
    return "", "", tuple(unpinned), others


def _is_theirs(name: str, models: Sequence[str]) -> bool:
    """True where a file pins what compiles the models: it is at the top, or all of them are of its own project."""
    folder = PurePosixPath(name).parent
    if re.fullmatch(r"[\w.-]*(?:requirements|constraints)[\w.-]*", folder.name):
        folder = folder.parent
    return not folder.parts or (bool(models) and all(PurePosixPath(one).is_relative_to(folder) for one in models))


def _rank(name: str) -> int:
    """From 1, the best kind of file for a pin; 0 for any other file."""
    *folders, _ = parts = name.split("/")
    if any(map(_FOREIGN.fullmatch, folders)):
        return 0
    ends = ["/".join(parts[-count:]) for count in (1, 2)]
    matching = (rank for rank, kind in enumerate(_PIN_FILES, 1) if any(kind.fullmatch(end) for end in ends))
    return next(matching, 0)


_LEFT_OUT_TOLD = 8
_TEXT_CHARS = 20_000  # of a starter that is shown: GitHub's comments hold 65,536, and names of files may be anything

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
_BUILT = """\
# No compiler: the head is what the same run has built, the base what the default branch stored."""
_SUITES = """\
# The suite that comes with code-size-bot, and beside it the modules of a suite of this repository.
models: [default]
suites:
  - torch_models: {suite}"""
_MODELS = """\
# Globs relative to this file. Models are .mlir or .mlirbc; weights do not belong into them.
models:
{globs}"""
_NO_MODELS = """\
# No model was found here, so that the packaged suite is measured. Globs are relative to this
# file.
# models: ["models/*.mlir"]"""


def configuration(root: Path, name: str, offer: Offer) -> str:
    """The configuration `name` below `root`, with what it offers."""
    up = "../" * name.count("/")
    default = load_config(None, models=False)
    if offer.builds:
        compiler = _BUILT
    elif offer.pin:
        is_plain = re.fullmatch(r"[\w./-]+", offer.pin, re.ASCII)
        pin = offer.pin if is_plain else json.dumps(offer.pin, ensure_ascii=False)
        compiler = _PINNED.format(compiler=offer.compiler, pin=pin)
    else:
        compiler = _UNPINNED.format(compiler=packaged_compiler())
    globs = "\n".join(f"  - {json.dumps(up + one, ensure_ascii=False)}" for one in _globs(root, offer.models))
    models = _MODELS.format(globs=globs) if globs else _NO_MODELS
    if offer.suite:
        models = _SUITES.format(suite=up + offer.suite)
    targets = "\n".join(f"#   - {target.name}" for target in default.targets if not target.unsupported)
    return _CONFIG.format(compiler=compiler, models=models, targets=targets)


def packaged_compiler() -> str:
    """The release that the packaged configuration has on its head side."""
    return load_config(configs_dir() / "default.yml", models=False).compiler.head


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


def shown_starter(root: Path, name: str, offer: Offer) -> str:
    """The configuration as it is shown to people: without the models where their names are longer than anyone reads."""
    text = configuration(root, name, offer)
    return text if len(text) <= _TEXT_CHARS else configuration(root, name, replace(offer, models=()))


def offer_lines(offer: Offer) -> Iterator[str]:
    """What a configuration is made of, and what was not taken; one line each."""
    whole = load_config(None)
    targets = sum(1 for target in whole.targets if not target.unsupported)
    if offer.builds:
        yield f"this repository builds the compiler: {', '.join(_BUILDS)}"
        beside = f", and the modules of {offer.suite}" if offer.suite else ""
        yield f"models: {len(whole.models)} of the packaged suite, on {targets} targets{beside}"
        yield "compiler: what a run has built is the head; nothing is pinned here"
        return
    whose = "of this repository" if offer.models else "of the packaged suite, as none was found here"
    yield f"models: {len(offer.models or whole.models)} {whose}, on {targets} targets"
    left_out = sorted(offer.left_out.items())
    yield from (f"  not {name}: {why}" for name, why in left_out[:_LEFT_OUT_TOLD])
    if len(left_out) > _LEFT_OUT_TOLD:
        yield f"  and {len(left_out) - _LEFT_OUT_TOLD} more files were left out; add to `models` those you want"
    yield from (f"  no pin: {line}" for line in offer.unpinned)
    yield from (
        f"  not {name}, which pins {pinned}: it is of a part that has none of these models, or not all. Is it their "
        f"compiler? Then write {{requirements: {name}}}"
        for name, pinned in offer.others.items()
    )
    yield (
        f"compiler: {offer.compiler}, as {offer.pin} pins it"
        if offer.pin
        else f"compiler: {packaged_compiler()}, a release that the bot knows; no file here pins one, so check it"
    )
