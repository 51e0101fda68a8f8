"""Run only LLVM's code generator, of one compiler on the bitcode of another.

The optimized bitcode goes through the linker beside the other compiler. `iree-lld`
compiles bitcode as link-time optimization does. Without its optimizer, only the code
generator is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bot.compiler.compiling import CompileSetup
from bot.core.snapshot import Failure
from bot.errors import MalformedBinary
from bot.readers.machine_code import machine_instructions
from bot.study.compiling_alone import AloneCode, code_of, function_points
from bot.study.foreign_ir import run_tool
from bot.system.files import MOST_READ_BYTES, read_bounded, temporary_directory

_TARGET = re.compile(
    r'hal\.executable\.variant [^\n]*?target\(<"llvm-cpu", "[^"]*", \{([^\n]*)\}>\)'
)
_BITCODE = "optimized.bc"
_OBJECT = "code.o"
_COMPLAINT = f"iree-lld: error: {_BITCODE}: "


def linker_flags(text: str) -> tuple[str, ...] | None:
    """Return the flags for an executable's target; None for another backend's.

    Bitcode does not name its processor. The compiler writes the meaning of the build's
    flags (cpu, features, ABI) into each executable. So `host` is a real processor
    there, and a model's own targets are right, too.
    """
    target = _TARGET.search(text)
    if target is None:
        return None
    flags = list[str]()
    if cpu := _attribute(target[1], "cpu"):
        flags.append(f"--plugin-opt=mcpu={cpu}")
    if features := _attribute(target[1], "cpu_features"):
        flags += ["-mllvm", f"-mattr={features}"]
    if abi := _attribute(target[1], "target_abi"):
        flags += ["-mllvm", f"-target-abi={abi}"]
    return tuple(flags)


def _attribute(target: str, name: str) -> str:
    value = re.search(rf'(?:^|[ ,{{]){name} = "([^"]*)"', target)
    if value:
        return value[1]
    return ""


def generated(
    setup: CompileSetup, bitcode: bytes, flags: Sequence[str], entry_point: str
) -> AloneCode | Failure:
    """Return the code that this compiler's LLVM makes of optimized bitcode."""
    with temporary_directory("generated-", setup.session.scratch) as directory:
        out = _linked(setup, bitcode=bitcode, flags=flags, directory=directory)
        if isinstance(out, Failure):
            return out
        try:
            points = list(function_points([out]))
        except MalformedBinary as error:
            return Failure("read", error.line)
        return code_of(points, entry_point)


def instructions_after(
    setup: CompileSetup,
    bitcode: bytes,
    flags: Sequence[str],
    entry_point: str,
    pass_name: str,
) -> Counter[str] | Failure:
    """Return the machine instructions of a function after one pass, by name.

    The pass is one of this compiler's code generator.
    """
    with temporary_directory("generated-", setup.session.scratch) as directory:
        stopped = (*flags, "-mllvm", f"-stop-after={pass_name}")
        out = _linked(setup, bitcode=bitcode, flags=stopped, directory=directory)
        if isinstance(out, Failure):
            return out
        text = read_bounded(out, "the machine code", MOST_READ_BYTES).decode(
            "utf-8", "replace"
        )
        instructions = machine_instructions(text, entry_point)
        if instructions is None:
            return Failure(
                "read", f"the machine code has no single function {entry_point}"
            )
        return instructions


def _linked(
    setup: CompileSetup, bitcode: bytes, flags: Sequence[str], directory: Path
) -> Path | Failure:
    """Return the file that the code generator writes for bitcode."""
    source = directory / _BITCODE
    source.write_bytes(bitcode)
    arguments = (
        *("-flavor", "gnu", "-shared", "--lto-O0", "--lto-CGO3"),
        *flags,
        f"--lto-obj-path={_OBJECT}",
        *("-o", "library.so", source.name),
    )
    failed = run_tool(setup, name="iree-lld", arguments=arguments, directory=directory)
    out = directory / _OBJECT
    if out.is_file():  # later messages of the linker about symbols do not matter
        return out
    reason = "it wrote no object file"
    if failed:
        reason = failed.first_line.removeprefix(_COMPLAINT)
    return Failure("read", f"iree-lld cannot compile this bitcode: {reason}")
