"""Make one compiler's IR of an executable readable for another compiler.

It is put in place of that compiler's own IR. IR changes its spelling between releases.
The generic form does not: one compiler prints it, and the other one parses it. If the
verifier of the other compiler refuses it even then, the few fixes below rewrite it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeVar

from bot.compiler.compiling import CompileSetup
from bot.compiler.diagnostics import reason
from bot.compiler.toolchain import UNTHREADED
from bot.core.snapshot import Failure
from bot.errors import InputError
from bot.study.compiling_alone import AloneCode, compile_from, run_in
from bot.system.files import MOST_READ_BYTES, read_bounded, temporary_directory

GENERIC = "--mlir-print-op-generic"
LOCAL = (  # Without aliases a piece of the text can be moved to another text.
    "--mlir-print-local-scope"
)

_SPLITTING = "--split-input-file"
_SPLIT = "// -----"
_T = TypeVar("_T")
_EXECUTABLE = re.compile(r"^ *hal\.executable (?:\w+ )?@[^\n]* \{$", re.MULTILINE)
_VARIANT = re.compile(r"hal\.executable\.variant\b")
_MODULE = re.compile(r"builtin\.module( attributes \{[^\n]*\})? \{\n")
_GENERIC_VARIANT = re.compile(r'"hal\.executable\.variant"')
_GENERIC_MODULE = re.compile(r'"builtin\.module"\(\)[^\n]*\(\{\n')
_BRACE = re.compile(r'["{}]')
_COUNT = re.compile(r"^ *iree_codegen\.dispatch_config [^\n]*\{\n", re.MULTILINE)
_GENERIC_COUNT = re.compile(
    r'^ *"iree_codegen\.dispatch_config"\(\)[^\n]*\(\{\n', re.MULTILINE
)


class _Form(NamedTuple):
    """How one form of the text spells modules of functions and counts of workgroups."""

    variant: re.Pattern[str]
    module: re.Pattern[str]
    counting: re.Pattern[str]


_PLAIN_FORM = _Form(_VARIANT, _MODULE, _COUNT)
_GENERIC_FORM = _Form(_GENERIC_VARIANT, _GENERIC_MODULE, _GENERIC_COUNT)
_RESOURCES = re.compile(r"^\{-#\n.*?^#-\}\n?", re.MULTILINE | re.DOTALL)

_PIPELINE = re.compile(r"(translation_info<pipeline = )(#[\w.]+<\w+>|#[\w.]+|\w+)")
_OLD_SPELLINGS = (
    ("LLVMGPU", "#iree_gpu.pipeline"),
    ("SPIRV", "#iree_gpu.spirv_pipeline"),
    ("CPU", "#iree_cpu.pipeline"),
)
_NO_PIPELINE = "#iree_codegen.no_pipeline"
_OLD_NAMES = {"None": _NO_PIPELINE, "VMVXDefault": "#iree_codegen.vmvx_pipeline"}
_NEW_NAMES = {new: old for old, new in _OLD_NAMES.items()}


@dataclass(frozen=True, slots=True)
class NamedText:
    """The IR of an executable, and the entry point in it that is meant."""

    name: str
    text: str  # as its compiler prints it, without aliases
    # in the form that all releases spell alike; empty if it is not needed
    generic: str = ""


def run_tool(
    setup: CompileSetup,
    name: str,
    arguments: Sequence[str],
    directory: Path,
    stdin: Path | None = None,
) -> Failure | None:
    """Run a program that lies beside the compiler.

    Return why it failed, None if it did not.
    """
    program = setup.toolchain.binary.with_name(name)
    if not program.is_file():
        return Failure("option", f"this compiler has no {name}")
    try:
        return run_in(
            setup,
            program=program,
            arguments=arguments,
            directory=directory,
            stdin=stdin,
        )
    except OSError as error:
        return Failure("option", f"{name} cannot be started: {error.strerror or error}")


def optimized(setup: CompileSetup, text: str, options: Sequence[str]) -> str | Failure:
    """Return the text as the compiler's own `iree-opt` leaves it with these options."""
    with temporary_directory("optimized-", setup.session.scratch) as directory:
        source = directory / "source.mlir"
        source.write_text(text, encoding="utf-8")
        out = directory / "result.mlir"
        failed = run_tool(
            setup,
            name="iree-opt",
            arguments=("-", *options, UNTHREADED, "-o", out.name),
            directory=directory,
            stdin=source,
        )
        if failed is not None:
            return failed
        try:
            return read_bounded(out, "the printed IR", MOST_READ_BYTES).decode(
                "utf-8", "replace"
            )
        except (InputError, OSError) as error:
            return Failure("read", f"the IR cannot be read: {error}")


def printed(
    setup: CompileSetup, text: str, *, is_generic: bool = False
) -> str | Failure:
    """Return the text as the compiler's own `iree-opt` prints it, without aliases."""
    options = (GENERIC, LOCAL) if is_generic else (LOCAL,)
    return optimized(setup, text, options)


def generic_texts(setup: CompileSetup, texts: Sequence[str]) -> list[str | Failure]:
    """Return each text in the generic form, as `printed` gives it.

    One run of `iree-opt` prints them all. If it cannot read one of them, each gets a
    run of its own.
    """
    if len(texts) > 1:
        joined = f"\n{_SPLIT}\n".join(texts)
        whole = optimized(setup, joined, (GENERIC, LOCAL, _SPLITTING))
        if isinstance(whole, str):
            pieces = whole.split(f"{_SPLIT}\n")
            if len(pieces) == len(texts):
                return list(pieces)
    return [printed(setup, text, is_generic=True) for text in texts]


def compile_foreign(
    setup: CompileSetup,
    argv: Sequence[str],
    own_text: NamedText,
    foreign: NamedText,
    phase: str,
) -> AloneCode | Failure:
    """Compile the own executable with the body of a foreign one; return its code.

    The body is in the generic form, and has the fixes that this compiler asks for. A
    few operations cannot be read again in that form, even by the compiler that printed
    it. Then the foreign text is tried as it is.

    Args:
        foreign: with its text in the generic form and as it is.
    """
    generic = transplanted(own_text, foreign, is_generic=True)
    plain = transplanted(own_text, foreign, is_generic=False)
    if generic is None or plain is None:
        return Failure("read", "the executable has no module of functions")
    code = with_fixes(
        lambda text: compile_from(
            setup, argv=argv, text=text, phase=phase, entry_point=foreign.name
        ),
        generic,
    )
    if not isinstance(code, Failure):
        return code
    as_it_is = compile_from(
        setup, argv=argv, text=plain, phase=phase, entry_point=foreign.name
    )
    if not isinstance(as_it_is, Failure):
        return as_it_is
    return Failure(code.stage, f"with the other compiler's IR: {reason(code.message)}")


def with_fixes(compile_text: Callable[[str], _T | Failure], text: str) -> _T | Failure:
    """Compile generic IR of another compiler.

    Rewrite it for as long as there is a fix for the complaint.
    """
    unused = list(_FIXES)
    while True:
        code = compile_text(text)
        if not isinstance(code, Failure):
            return code
        fitting = [fix for fix in unused if fix.complaint.search(code.message)]
        fix = next((fix for fix in fitting if fix.rewrite(text) != text), None)
        if fix is None:
            return code
        unused.remove(fix)
        text = fix.rewrite(text)


def without_pipeline(text: str) -> str:
    """Return the text with no pipeline to run, as it is spelled from 3.12.0 on."""
    return _PIPELINE.sub(lambda match: match[1] + _NO_PIPELINE, text)


def _with_pipelines_as(text: str, own_text: str) -> str:
    """Spell the names of pipelines as the own text does.

    Up to 3.11.0 they are words, and in later releases attributes.
    """
    printed_pipeline = _PIPELINE.search(own_text)
    if printed_pipeline is None:
        return text
    spelled = _as_attribute if printed_pipeline[2].startswith("#") else _as_word
    return _PIPELINE.sub(lambda match: match[1] + spelled(match[2]), text)


def _as_attribute(name: str) -> str:
    if name in _OLD_NAMES:
        return _OLD_NAMES[name]
    for prefix, attribute in _OLD_SPELLINGS:
        if name.startswith(prefix):
            return f"{attribute}<{name.removeprefix(prefix)}>"
    return name


def _as_word(name: str) -> str:
    if name in _NEW_NAMES:
        return _NEW_NAMES[name]
    for prefix, attribute in _OLD_SPELLINGS:
        if name.startswith(f"{attribute}<"):
            return prefix + name.removeprefix(f"{attribute}<").removesuffix(">")
    return name


class _Fix(NamedTuple):
    """A rewrite of the generic form, for a complaint of the own compiler."""

    complaint: re.Pattern[str]
    rewrite: Callable[[str], str]


_CONSTANT = re.compile(r'"llvm\.mlir\.constant"\(\).*')
_MASKED = re.compile(r'"llvm\.intr\.masked\.\w+".*')


def _integer_constants(text: str) -> str:
    """Type the values of LLVM's constants as integers.

    Up to 3.11.0 a constant of type `i64` may have a value of type `index`. Later
    verifiers refuse that.
    """

    def retyped(match: re.Match[str]) -> str:
        scalar = re.sub(r": index\}>", ": i64}>", match[0])
        return re.sub(r"xindex>", "xi64>", scalar)

    return _CONSTANT.sub(retyped, text)


def _wide_alignments(text: str) -> str:
    """Type the alignments of masked loads and stores as 64 bits, as from 3.12.0 on."""
    return _MASKED.sub(
        lambda match: re.sub(r"(alignment = \d+) : i32", r"\1 : i64", match[0]), text
    )


def _narrow_alignments(text: str) -> str:
    """Type the alignments of masked loads and stores as 32 bits, as up to 3.11.0."""
    return _MASKED.sub(
        lambda match: re.sub(r"(alignment = \d+) : i64", r"\1 : i32", match[0]), text
    )


def _named_permutation(text: str) -> str:
    """Name the permutation of AMD's matrix instructions, a number up to 3.11.0."""
    return text.replace("blgp = 0 : i32", "blgp = #rocdl.mfma_perm_b<none>")


def _numbered_permutation(text: str) -> str:
    """Number the permutation of AMD's matrix instructions, as it is up to 3.11.0."""
    return text.replace("blgp = #rocdl.mfma_perm_b<none>", "blgp = 0 : i32")


_MATRIX_WITH_OPERANDS = re.compile(
    r"""("rocdl\.mfma\.[\w.]+"\(%\w+, %\w+, %\w+)((?:, %\w+){3})\)"""
    r" : \((.*), i32, i32, i32\) ->"
)
_MATRIX_WITH_ATTRIBUTES = re.compile(
    r"""^( *)(.*"rocdl\.mfma\.[\w.]+"\(%\w+, %\w+, %\w+)\)"""
    r" <\{abid = 0 : i32, blgp = [^,]*(?:0 : i32|<none>), cbsz = 0 : i32\}>"
    r" : \((.*)\) ->",
    re.MULTILINE,
)
_ZERO = re.compile(
    r'^ *(%\w+) = "llvm\.mlir\.constant"\(\) <\{value = 0 : i32\}>', re.MULTILINE
)
_DEFINITION = re.compile(r"^ *(%\w+) = ", re.MULTILINE)


def _matrices_with_attributes(text: str) -> str:
    """Write the constants of AMD's matrix instructions as attributes.

    Up to 3.10.0 they are operands. Only those that are 0 are rewritten.
    """
    zeros = Counter(_ZERO.findall(text))
    definitions = Counter(_DEFINITION.findall(text))

    def rewritten(match: re.Match[str]) -> str:
        for name in match[2].split(", ")[1:]:
            if not zeros[name] or zeros[name] != definitions[name]:
                return match[0]
        attributes = "abid = 0 : i32, blgp = 0 : i32, cbsz = 0 : i32"
        return f"{match[1]}) <{{{attributes}}}> : ({match[3]}) ->"

    return _MATRIX_WITH_OPERANDS.sub(rewritten, text)


def _matrices_with_operands(text: str) -> str:
    """Write the constants of AMD's matrix instructions as operands, as up to 3.10.0."""
    number = count()

    def rewritten(match: re.Match[str]) -> str:
        zero = f"%zero_of_matrix_{next(number)}"
        constant = f'{zero} = "llvm.mlir.constant"() <{{value = 0 : i32}}> : () -> i32'
        operands = f"{match[2]}, {zero}, {zero}, {zero})"
        return (
            f"{match[1]}{constant}\n"
            f"{match[1]}{operands} : ({match[3]}, i32, i32, i32) ->"
        )

    return _MATRIX_WITH_ATTRIBUTES.sub(rewritten, text)


def _named_mask(text: str) -> str:
    """Name the mask of AMD's scheduling barriers, a number up to 3.11.0."""
    return text.replace("{mask = 0 : i32}", "{mask = #rocdl.sched_group_mask<none>}")


def _numbered_mask(text: str) -> str:
    """Number the mask of AMD's scheduling barriers, as it is up to 3.11.0."""
    return text.replace("{mask = #rocdl.sched_group_mask<none>}", "{mask = 0 : i32}")


def _numbered_stages(text: str) -> str:
    """Give the stages of prefetching as a number, as from 3.10.0 on.

    Two stages are what `true` was.
    """
    text = text.replace("prefetch_shared_memory = true", "prefetch_num_stages = 2")
    return _WITHOUT_PREFETCH.sub("", text)


_WITHOUT_PREFETCH = re.compile(r"prefetch_shared_memory = false(, )?")
_STAGES = re.compile(r"prefetch_num_stages = ([012])\b")


def _boolean_prefetch(text: str) -> str:
    """Say whether shared memory is prefetched, as up to 3.9.0."""

    def rewritten(match: re.Match[str]) -> str:
        if match[1] == "2":
            return "prefetch_shared_memory = true"
        return "prefetch_shared_memory = false"

    return _STAGES.sub(rewritten, text)


_UNDOTTED_ATTRIBUTE = re.compile(r"#nvvm<(\w+) (\w+)>")
_DOTTED_ATTRIBUTE = re.compile(r"#nvvm\.(\w+)<(\w+)>")


def _dotted_attributes(text: str) -> str:
    """Spell NVVM's attributes with a dot, as from 3.12.0 on."""
    return _UNDOTTED_ATTRIBUTE.sub(r"#nvvm.\1<\2>", text)


def _undotted_attributes(text: str) -> str:
    """Spell NVVM's attributes without a dot, as up to 3.11.0."""
    return _DOTTED_ATTRIBUTE.sub(r"#nvvm<\1 \2>", text)


_OLD_BARRIER = '"nvvm.barrier0"() :'
_NEW_BARRIER = re.compile(
    r'"nvvm\.barrier"\(\) <\{(?:aligned = true, )?'
    r"operandSegmentSizes = array<i32: 0, 0>\}> :"
)


def _barriers_with_operands(text: str) -> str:
    """Spell barriers as the operation that may have operands, as from 3.12.0 on."""
    new_barrier = '"nvvm.barrier"() <{operandSegmentSizes = array<i32: 0, 0>}> :'
    return text.replace(_OLD_BARRIER, new_barrier)


def _barriers_without_operands(text: str) -> str:
    """Spell barriers of a whole workgroup as the operation up to 3.11.0."""
    return _NEW_BARRIER.sub(_OLD_BARRIER, text)


_IMPORT = re.compile(
    r'("hal\.tensor\.import"\(.*operandSegmentSizes = array<i32: )(.*?)>'
)
_OLD_IMPORT_SEGMENTS = 3


def _wide_imports(text: str) -> str:
    """Give imports of tensors a fourth segment of operands, as from 3.12.0 on."""

    def widened(match: re.Match[str]) -> str:
        if match[2].count(",") + 1 > _OLD_IMPORT_SEGMENTS:
            return match[0]
        return f"{match[1]}{match[2]}, 0>"

    return _IMPORT.sub(widened, text)


def _narrow_imports(text: str) -> str:
    """Take the empty fourth segment of operands from imports, as up to 3.11.0."""

    def narrowed(match: re.Match[str]) -> str:
        segments, _, last = match[2].rpartition(", ")
        if segments.count(",") + 1 < _OLD_IMPORT_SEGMENTS or last != "0":
            return match[0]
        return f"{match[1]}{segments}>"

    return _IMPORT.sub(narrowed, text)


_FIXES = (
    _Fix(re.compile(r"hal\.tensor\.import"), _wide_imports),
    _Fix(re.compile(r"hal\.tensor\.import"), _narrow_imports),
    _Fix(re.compile(r"nvvm\.barrier"), _barriers_with_operands),
    _Fix(re.compile(r"nvvm\.barrier"), _barriers_without_operands),
    _Fix(re.compile(r"expected '<'"), _dotted_attributes),
    _Fix(re.compile(r"expected valid keyword"), _undotted_attributes),
    _Fix(re.compile(r"llvm\.mlir\.constant"), _integer_constants),
    _Fix(re.compile(r"llvm\.intr\.masked"), _wide_alignments),
    _Fix(re.compile(r"llvm\.intr\.masked"), _narrow_alignments),
    _Fix(re.compile(r"mfma.* expected 3 operands"), _matrices_with_attributes),
    _Fix(
        re.compile(r"mfma.*(expected 6 operands|does not support properties)"),
        _matrices_with_operands,
    ),
    _Fix(re.compile(r"sched\.barrier"), _named_mask),
    _Fix(re.compile(r"sched\.barrier"), _numbered_mask),
    _Fix(re.compile(r"prefetch_shared_memory"), _numbered_stages),
    _Fix(re.compile(r"prefetch_num_stages"), _boolean_prefetch),
    _Fix(re.compile(r"blgp|mfma"), _named_permutation),
    _Fix(re.compile(r"blgp|mfma"), _numbered_permutation),
)


def transplanted(
    own_ir: NamedText, foreign: NamedText, *, is_generic: bool
) -> str | None:
    """Return the own executable with the body of the foreign one.

    Return None if either has no body. The own target, exports and operation that counts
    workgroups stay. The entry point has the foreign name, because some targets write the
    name into their code.

    Args:
        own_ir: its generic form is used if it has one.
        is_generic: whether the foreign body is taken in the generic form.
    """
    own_text = own_ir.text
    own_form = _PLAIN_FORM
    if own_ir.generic:
        own_text = own_ir.generic
        own_form = _GENERIC_FORM
    foreign_text = foreign.text
    foreign_form = _PLAIN_FORM
    if is_generic:
        foreign_text = foreign.generic
        foreign_form = _GENERIC_FORM
    own_place = _region(own_text, own_form.variant, own_form.module)
    foreign_place = _region(foreign_text, foreign_form.variant, foreign_form.module)
    if own_place is None or foreign_place is None:
        return None
    counting = "".join(_workgroup_counts(own_text[own_place], own_form.counting))
    body = foreign_text[foreign_place]
    for text in _workgroup_counts(body, foreign_form.counting):
        body = body.replace(text, "")
    body = _with_pipelines_as(body, own_text)
    resources = "".join(_RESOURCES.findall(foreign_text))
    before = _renamed(own_text[: own_place.start], own_ir.name, foreign.name)
    counting = _renamed(counting, own_ir.name, foreign.name)
    after = _RESOURCES.sub("", own_text[own_place.stop :])
    return f"{before}\n{body}{counting}{after}{resources}"


def _renamed(text: str, name: str, new_name: str) -> str:
    """Give all references to a function another name."""
    if name == new_name:
        return text
    symbol = re.compile(rf'@(?:"{re.escape(name)}"|{re.escape(name)}(?![\w.$]))')
    text = symbol.sub(lambda _: f'@"{new_name}"', text)
    return text.replace(f'sym_name = "{name}"', f'sym_name = "{new_name}"')


def executable_in(text: str) -> str | None:
    """Return the executable of a text in the plain form, without what is beside it.

    Return None if the text has none.
    """
    opening = _EXECUTABLE.search(text)
    if opening is None:
        return None
    end = _closing(text, opening.end() - 1)
    if end is None:
        return None
    return text[opening.start() : end] + "\n"


def _region(
    text: str, variant: re.Pattern[str], module: re.Pattern[str]
) -> slice | None:
    """Return where the contents of the executable's module are, or None."""
    outer = variant.search(text)
    inner = module.search(text, outer.end()) if outer else None
    if inner is None:
        return None
    end = _closing(text, inner.end() - 2)
    if end is None:
        return None
    return slice(inner.end() - 1, end - 1)


def _closing(text: str, start: int) -> int | None:
    """Return the place behind the brace that closes the one at `start`.

    Return None if the text ends before it.
    """
    depth = 0
    place = start
    while (match := _BRACE.search(text, place)) is not None:
        place = match.end()
        if match[0] == '"':  # MLIR writes a quotation mark in a string as \22
            closing = text.find('"', place)
            if closing < 0:
                return None
            place = closing + 1
        elif match[0] == "{":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return place
    return None


def _workgroup_counts(body: str, opening: re.Pattern[str]) -> list[str]:
    """Return the operations that count workgroups.

    Newer releases print them beside the function.
    """
    matches = []
    for match in opening.finditer(body):
        end = _closing(body, match.end() - 2)
        if end is not None:
            line_end = body.find("\n", end)
            matches.append(body[match.start() : line_end + 1])
    return matches
