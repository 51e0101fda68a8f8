"""`doctor`: what is here, what is missing, and how to fix it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.cli.options import Arguments, Parser, add_cache
from bot.errors import BotError
from bot.system.defaults import cores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.system.processes import Cancel


EXAMPLES = ("",)
_NEEDED_FREE_BYTES = 2 << 30


def arguments(parser: Parser) -> None:
    about = "also say who reads the IR of this compiler: its own bindings, with which Python, or those of a release"
    parser.add_argument("compiler", nargs="*", metavar="SPEC", help=about)
    add_cache(parser)


def run(arguments: Arguments) -> int:
    return 0 if examine(arguments.cache, arguments.cancel, arguments.compiler) else 2


class Check(NamedTuple):
    """One line: what was looked at, what was found, and how to fix it (empty where all is well)."""

    what: str
    found: str
    hint: str = ""


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("Python", version, "" if sys.version_info >= (3, 10) else "use Python 3.10 or newer")


def _reader(spec: str, cache: Path, cancel: Cancel) -> Check:
    """Who reads the IR of a compiler, which more than half of all metrics come from."""
    from bot.compiler.bindings import with_reader
    from bot.compiler.toolchain import resolve

    try:
        toolchain = with_reader(resolve(spec, cache, cancel, lambda _: None), cache, cancel, lambda _: None)
    except BotError as error:
        return Check("compiler", error.line, "name another one")
    hint = "" if toolchain.read_by else "put a Python of the wheel's tag on PATH: without it most metrics are n/a"
    return Check("compiler", f"{spec}: IR read by {toolchain.read_by or toolchain.no_bindings}", hint)


def _git(cancel: Cancel) -> Check:
    import shutil

    from bot.system.processes import run

    if shutil.which("git") is None:
        return Check("git", "not found", "install git: without it the report cannot name commits")
    return Check("git", run(["git", "--version"], cancel=cancel).output.strip())


def _pip(cancel: Cancel) -> Check:
    from bot.system.processes import run

    outcome = run([sys.executable, "-m", "pip", "--version"], cancel=cancel)
    if outcome.ok:
        return Check("pip", " ".join(outcome.output.split()[:2]))
    return Check("pip", "not found", "python -m ensurepip: releases are fetched with it")


def _onnx() -> Check:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return Check("onnx (optional)", version("onnx"))
    except PackageNotFoundError:
        return Check("onnx (optional)", "not installed; only .onnx models need it: pip install 'code-size-bot[onnx]'")


def _ptxas() -> Check:
    from bot.compiler.ptxas import HOW_TO_GET_IT, installed

    ptxas = installed()
    need = f"not installed; only the machine code of cuda targets needs it: {HOW_TO_GET_IT}"
    return Check("ptxas (cuda)", ptxas.version if ptxas else need)


def _runtime() -> Check:
    from bot.running import runner

    runtime = runner.installed()
    need = f"not installed; only running artifacts needs it: {runner.HOW_TO_GET_IT}"
    return Check("runtime (run)", runtime.version if runtime else need)


def _commands() -> Check:
    """What the commands of other compilers are kept from; it is no fault of a machine that it allows no namespaces."""
    from bot.system.confined import isolation

    return Check("commands", isolation())


def _index(cancel: Cancel) -> Check:
    from bot.compiler.toolchain import offered
    from bot.core.spec import PROJECT, Places

    try:
        stable = [version for version in offered(Places(), cancel, briefly=True) if not version.is_prerelease]
        return Check("package index", f"has {PROJECT} {stable[-1] if stable else 'in no release'}")
    except BotError as error:
        hint = "check the network and PIP_INDEX_URL; compilers that are on this machine work without it"
        return Check("package index", error.what, hint)


def _links() -> Check:
    """The pages that the environment gives pip, and those of the configuration here, in this order."""
    from bot.config.configuration import load_config
    from bot.core.spec import without_secrets

    try:
        config = load_config(_here()).compiler.find_links
    except BotError:  # told in a line of its own
        config = ()
    links = [without_secrets(link) for link in (*os.environ.get("PIP_FIND_LINKS", "").split(), *config)]
    return Check("find-links", ", ".join(links) or "none: nightly releases need compiler.find_links or PIP_FIND_LINKS")


def _loaded(what: str, path: Path | None, hint: str) -> Check:
    from bot.config.configuration import load_config
    from bot.show.filters import plural

    try:
        config = load_config(path)
    except BotError as error:
        return Check(what, error.line, hint)
    suites = f", {plural(len(config.suites), 'module')} of suites" if config.suites else ""
    summary = f"{plural(len(config.models), 'model')}, {plural(len(config.targets), 'target')}{suites}"
    return Check(what, f"{path}: {summary}" if path else summary)


def _here() -> Path | None:
    from bot.config.configuration import CONFIG_NAMES

    return next((Path(name) for name in CONFIG_NAMES if Path(name).is_file()), None)


def _config() -> Check:
    """The one that the action would take if this directory was the top of the repository."""
    from bot.config.configuration import CONFIG_NAMES

    path = _here()
    if path is None:
        return Check("configuration", f"none here ({', '.join(CONFIG_NAMES)}): code-size-bot init writes one")
    return _loaded("configuration", path, "correct the file: nothing that needs it can run")


def _cache(cache: Path) -> Check:
    import shutil

    from bot.system.files import write_atomically

    probe = cache / ".doctor"
    try:
        write_atomically(probe, b"")
        probe.unlink()
    except BotError as error:
        return Check("cache", error.line, "choose another one with --cache or CODE_SIZE_CACHE")
    free = shutil.disk_usage(cache).free
    hint = "" if free > _NEEDED_FREE_BYTES else "free 2 GiB: an unpacked compiler takes 430 MB"
    return Check("cache", f"{cache}, {free >> 30} GiB free", hint)


def examine(cache: Path, cancel: Cancel, specs: Sequence[str] = ()) -> bool:
    """Print one line a check, and one for each compiler; True where nothing has to be fixed."""
    suite = _loaded("default suite", None, "install the bot again")
    fetching = (
        _python(),
        _git(cancel),
        _pip(cancel),
        _index(cancel),
        _links(),
        _onnx(),
        _ptxas(),
        _runtime(),
        _commands(),
    )
    readers = [_reader(spec, cache, cancel) for spec in specs]
    checks = (*fetching, suite, _config(), _cache(cache), Check("cores", str(cores())), *readers)
    for check in checks:
        mark = "missing" if check.hint else "ok"
        print(f"{mark:8}{check.what:16}{check.found}" + (f" -> {check.hint}" if check.hint else ""))
    return not any(check.hint for check in checks)
