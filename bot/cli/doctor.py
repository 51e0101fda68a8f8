"""`doctor`: what is here, what is missing, and how to fix it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bot.cli.grammar import Arguments, Parser
from bot.cli.options import add_cache, spec
from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bot.core.spec import Places
    from bot.system.cancel import Cancel

EXAMPLES = ("code-size-bot doctor", "code-size-bot doctor 3.13.0")
_NEEDED_FREE_BYTES = 2 << 30
# What was looked at, what was found, and how to fix it (empty where all is well)
Check = tuple[str, str, str]


def arguments(parser: Parser) -> None:
    about = "compiler to check as well"
    parser.add_argument("compiler", nargs="*", type=spec, metavar="SPEC", help=about)
    add_cache(parser)


def run(arguments: Arguments) -> int:
    if examine(arguments.cache, arguments.cancel, arguments.compiler):
        return 0
    return 2


def examine(cache: Path, cancel: Cancel, specs: Sequence[str] = ()) -> bool:
    """Print a line for each check and each compiler.

    Return True where nothing has to be fixed.
    """
    from bot.config.configuration import CONFIG_NAMES

    paths = map(Path, CONFIG_NAMES)
    # the file that the action takes if this directory is the top of the repository
    config_file = next(filter(Path.is_file, paths), None)
    checks = [*_tools(cancel), *_sources(cancel), *_optional()]
    checks.append(_loaded("default suite", None, "install the bot again"))
    if config_file:
        checks.append(
            _loaded(
                "configuration", config_file, "correct the file: most commands read it"
            )
        )
    else:
        none = f"not found ({', '.join(CONFIG_NAMES)}): code-size-bot init writes one"
        checks.append(("configuration", none, ""))
    checks.append(_cache(cache))
    if specs:
        places = _places(config_file)
        checks += [_reader(spec, cache, cancel, places) for spec in specs]
    for subject, result, hint in checks:
        print(
            f"{'missing' if hint else 'ok':8}{subject:16}{result}"
            + (f" -> {hint}" if hint else "")
        )
    return not any(hint for _, _, hint in checks)


def _tools(cancel: Cancel) -> Iterator[Check]:
    import shutil

    from bot.system.processes import run

    version = ".".join(map(str, sys.version_info[:3]))
    yield (
        "Python",
        version,
        "" if sys.version_info >= (3, 10) else "use Python 3.10 or newer",
    )
    if shutil.which("git") is None:
        yield "git", "not found", "install git: the report names commits with it"
    else:
        yield "git", run(["git", "--version"], cancel=cancel).output.strip(), ""
    pip = run([sys.executable, "-I", "-m", "pip", "--version"], cancel=cancel)
    if pip.ok:
        yield "pip", " ".join(pip.output.split()[:2]), ""
    else:
        yield (
            "pip",
            "not found",
            "run python -m ensurepip: the bot fetches releases with pip",
        )


def _sources(cancel: Cancel) -> Iterator[Check]:
    """Check the package index, where compilers come from."""
    from bot.compiler.wheels import offered
    from bot.core.spec import PROJECT, Places

    try:
        versions = offered(Places(), cancel, briefly=True)
        stable = [version for version in versions if not version.is_prerelease]
        yield (
            "package index",
            f"has {PROJECT} {stable[-1] if stable else 'in no release'}",
            "",
        )
    except BotError as error:
        mend = "check the network and PIP_INDEX_URL, or use a compiler on this machine"
        yield "package index", error.what, mend


def _optional() -> Iterator[Check]:
    """Check what only some users need."""
    from importlib.metadata import PackageNotFoundError, version

    from bot.compiler import ptxas
    from bot.running import runner
    from bot.system.confined import isolation

    try:
        onnx = version("onnx")
    except PackageNotFoundError:
        onnx = (
            "not installed, and only .onnx models need it: pip install"
            " 'code-size-bot[onnx]'"
        )
    yield "onnx (optional)", onnx, ""
    assembler = ptxas.installed()
    runtime = runner.installed()
    need = (
        "not installed, and only machine code of cuda targets needs it:"
        f" {ptxas.HOW_TO_GET_IT}"
    )
    yield "ptxas (cuda)", assembler.version if assembler else need, ""
    need = (
        "not installed, and only commands that run artifacts need it:"
        f" {runner.HOW_TO_GET_IT}"
    )
    yield "runtime (run)", runtime.version if runtime else need, ""
    yield "commands", isolation(), ""  # what those of other compilers are kept from


def _loaded(subject: str, path: Path | None, hint: str) -> Check:
    from bot.config.configuration import load_config
    from bot.config.requirements import pinned_here
    from bot.show.filters import plural

    try:
        config = load_config(path)
        summary = (
            f"{plural(len(config.models), 'model')},"
            f" {plural(len(config.targets), 'target')}"
        )
        if path and (file := config.compiler.requirements):
            summary += f", {pinned_here(config, 'head', path.parent).spec} of {file}"
    except BotError as error:
        return subject, error.line, hint
    return subject, f"{path}: {summary}" if path else summary, ""


def _places(config_file: Path | None) -> Places:
    """Return where the configuration finds wheels; the index alone without a valid one."""
    from bot.compiler.wheels import INDEX
    from bot.config.configuration import load_config

    if config_file is None:
        return INDEX
    try:
        return load_config(config_file, models=False).places
    except BotError:
        return INDEX


def _cache(cache: Path) -> Check:
    import shutil

    from bot.system.files import write_atomically

    probe = cache / ".doctor"
    try:
        write_atomically(probe, b"")
        probe.unlink()
    except BotError as error:
        return "cache", error.line, "choose another one with --cache or CODE_SIZE_CACHE"
    free = shutil.disk_usage(cache).free
    hint = "free 2 GiB: an unpacked compiler takes up to 400 MB"
    if free > _NEEDED_FREE_BYTES:
        hint = ""
    return "cache", f"{cache}, {free >> 30} GiB free", hint


def _reader(spec: str, cache: Path, cancel: Cancel, places: Places) -> Check:
    """Check what reads the IR: more than half of all metrics come from it."""
    from bot.compiler.toolchain import resolve

    try:
        toolchain = resolve(
            spec, cache=cache, cancel=cancel, say=lambda _: None, places=places
        )
    except BotError as error:
        return "compiler", error.line, "name another one"
    if toolchain.bindings is None:
        hint = (
            "put a Python that fits the wheel's tag on PATH: without it most metrics"
            " are n/a"
        )
        return "compiler", f"{spec}: IR read by {toolchain.no_bindings}", hint
    return (
        "compiler",
        f"{spec}: IR read by its own MLIR bindings, with {toolchain.python}",
        "",
    )
