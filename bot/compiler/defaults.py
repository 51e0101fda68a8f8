"""Ask a compiler for its options.

Its library has the defaults, and its help has all names.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from bot.compiler.bindings_python import NO_BYTE_CODE
from bot.compiler.compiler_digest import LIBRARY
from bot.compiler.storage import add, read
from bot.compiler.toolchain import Toolchain
from bot.core.defaults import OptionDefaults
from bot.core.json_text import canonical, parse_json
from bot.core.snapshot import Failure
from bot.core.this_machine import here
from bot.errors import InputError
from bot.system.cancel import Cancel
from bot.system.files import read_bounded, temporary_directory
from bot.system.processes import run

_WORKER = Path(__file__).parents[1] / "readers" / "options_worker.py"
_MOST_BYTES = 1 << 24
_HELP_NAME = re.compile(r"^ {1,8}(--?[A-Za-z][\w.-]*)", re.MULTILINE)
_FOLDER = "(folder of the compiler)"


def kept_defaults(
    toolchain: Toolchain, cache: Path, cancel: Cancel, *, keeps: bool
) -> OptionDefaults | Failure:
    """Return the options of a compiler, from the cache or from the compiler itself.

    Args:
        cache: the folder of the cache.
        keeps: the answer may be written to it.
    """
    path = cache / "options" / f"{toolchain.info.digest}.json"
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(read(path), type=OptionDefaults)
    defaults = option_defaults(toolchain, cancel)
    if isinstance(defaults, OptionDefaults) and keeps and toolchain.info.digest:
        add(cache, path, canonical(defaults))
    return defaults


def option_defaults(toolchain: Toolchain, cancel: Cancel) -> OptionDefaults | Failure:
    """Return the options of a compiler, or why they are not known.

    Paths in the compiler's own folder are written alike for every compiler.
    """
    library = toolchain.binary.parent / LIBRARY
    if not library.is_file():
        library = toolchain.binary.parent.parent / "lib" / LIBRARY
    if not library.is_file():
        return Failure("option", f"there is no {LIBRARY} beside this compiler")
    with temporary_directory("options-") as directory:
        answer = directory / "answer.json"
        names = directory / "help.txt"
        outcome = run(
            [sys.executable, "-I", "-S", *NO_BYTE_CODE, str(_WORKER), str(library)],
            cancel=cancel,
            stdout=answer,
            cwd=directory,
            timeout_seconds=toolchain.patience_seconds,
        )
        if not outcome.ok:
            return Failure(
                "option",
                "the defaults of the options cannot be read:"
                f" {_last_line(outcome.output)}",
            )
        helped = run(
            [str(toolchain.binary), "--help-hidden"],
            cancel=cancel,
            stdout=names,
            cwd=directory,
            timeout_seconds=toolchain.patience_seconds,
        )
        if not helped.ok:
            return Failure("option", "the compiler does not answer --help-hidden")
        try:
            flags = parse_json(read_bounded(answer, "the list of options", _MOST_BYTES))
            text = read_bounded(names, "the help of the compiler", _MOST_BYTES).decode(
                "utf-8", "replace"
            )
        except (InputError, ValueError, OSError):
            return Failure("option", here("the options of the compiler cannot be read"))
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        return Failure("option", "the library of the compiler gives no list of options")
    values = {}
    for flag in flags:
        option, _, value = flag.replace(str(library.parent), _FOLDER).partition("=")
        values[option] = value
    named = {f"--{name.lstrip('-')}" for name in _HELP_NAME.findall(text)}
    return OptionDefaults(values, frozenset(named))


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    if lines:
        return lines[-1][:200]
    return "the process ended without a word"
