"""Make the inputs of a program: random arguments and parameters.

They are the same in every run, as files that are written once. The child process
`array_worker` makes and compares arrays. Its answers are checked, and each of its
failures has a reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from bot.compiler.machine_limits import memory_kib
from bot.core.json_text import canonical
from bot.core.record import Count, Record
from bot.core.this_machine import here
from bot.errors import MalformedBinary
from bot.readers.ir_facts import Function, Interface, Tensor, parsed, read_answer
from bot.system.cancel import Cancel
from bot.system.files import make_directory, no_room, temporary_directory
from bot.system.processes import run

_Answer = TypeVar("_Answer", bound=Record)


class Draw(Record, frozen=True):
    """One output on one input, of both artifacts."""

    before_bytes: Count
    after_bytes: Count
    values: Count
    finite: Count  # of the values before, those that are neither infinite nor NaN
    # of the values, those that are not the same to the bit; a NaN is the same as any
    # other
    different: Count
    # the largest difference, as a part of the largest magnitude of the output before;
    # of an integer that differs 1; None where there is no such part (sizes, infinities
    # or NaNs differ, or all before is zero)
    relative: float | None


class Output(Record, frozen=True):
    """One output over all draws."""

    draws: tuple[Draw, ...]
    constant: bool  # True where all finite values are one
    still: bool  # True where there is more than one draw, and it is the same on all of them


class _Compared(Record, frozen=True):
    outputs: tuple[Output, ...]


class _Filled(Record, frozen=True):
    filled: Count


def fill(files: Sequence[Any], directory: Path, cancel: Cancel) -> str | None:
    """Write files as `array_worker` describes them; return the reason if that fails."""
    answer = _ask({"fill": files}, kind=_Filled, parent=directory, cancel=cancel)
    if isinstance(answer, str):
        return answer
    return None


def compare(
    outputs: Sequence[Any], directory: Path, cancel: Cancel
) -> tuple[Output, ...] | str:
    """Return the comparison of each output, or why there is none."""
    answer = _ask({"compare": outputs}, kind=_Compared, parent=directory, cancel=cancel)
    if isinstance(answer, str):
        return answer
    return answer.outputs


def _ask(
    request: Any, kind: type[_Answer], parent: Path, cancel: Cancel
) -> _Answer | str:
    with temporary_directory("arrays-", parent) as directory:
        question = directory / "question.json"
        answer = directory / "answer.json"
        question.write_bytes(canonical(request))
        argv = [sys.executable, "-E", str(Path(__file__).with_name("array_worker.py"))]
        ended = run(
            argv, cancel=cancel, stdin=question, stdout=answer, timeout_seconds=1800
        )
        if not ended.ok:
            if ended.timed_out:
                ending = "did not end"
            elif ended.signal:
                ending = f"was ended by {ended.signal}"
            else:
                ending = "failed"
            last = ended.output.strip().rpartition("\n")[2][:200]
            return here(f"the process for random data {ending}{last and f': {last}'}")
        try:
            return read_answer(answer.read_bytes(), kind)
        except MalformedBinary as error:
            return here(error.what)


_HEADER_STEP = 64  # the data of a parameter file begin at a multiple of this many bytes
# room that is left on the disk, for outputs and whatever others do there
_SPARE_BYTES = 64 << 20
_ANY = "!hal.buffer_view"  # an argument that the program does not look at
# Integers of so many bits are 0 or 1 in some of the draws: they may be masks.
_FEW = 2
_LONG_BITS = 32
_QUANTISED = ("i8", "si8", "ui8")
_SUM = "i32"
"""Element of the biases of a quantised program, which are added to sums of products."""
# what initializers make of parameters may be as large as these are, and stays beside
# them
_HELD_TWICE = 2


class Feed(NamedTuple):
    """The command-line words with which the runtime's programs call a function."""

    directory: Path  # where its files are, and the programs are run
    # for each run the function, the files of parameters and the arguments
    draws: tuple[tuple[str, ...], ...]
    # what is drawn for each run: `input`, or `set of parameters` for no inputs; empty
    # where it is nothing
    random: str
    # the elements of what it gives, in order (`f32`); empty for what is no tensor or
    # number
    results: tuple[str, ...]
    # what dimensions were made that are not fixed; None where all are
    dynamic: int | None


class _File(NamedTuple):
    """A file of random values.

    It has what `array_worker` makes it from, and how large it gets.
    """

    kind: str
    head: str
    tensors: tuple[dict[str, Any], ...]
    size_bytes: int

    @property
    def name(self) -> str:
        """Return a name with a digest of what the file is made from.

        So an existing file is the right one.
        """
        digest = hashlib.sha256(canonical([self.head, self.tensors])).hexdigest()
        return f"{self.kind}-{digest[:24]}.{'safetensors' if self.head else 'bin'}"


def not_called(interface: Interface) -> str | None:
    """Return why there is no function to run, or none that can be called.

    None if there is one.
    """
    if len(interface.functions) != 1:
        names = ", ".join(function.name for function in interface.functions[:4])
        return (
            f"the bot does not know which of {len(interface.functions)} public"
            f" functions to run{names and f': {names}'}"
        )
    function = interface.functions[0]
    if not function.name.isprintable():
        return "the runtime cannot take the name of the program's function"
    for number, text in enumerate(function.arguments):
        tensor = parsed(text)
        if text != _ANY and (tensor is None or tensor.sized(1).size_bytes is None):
            return (
                f"argument {number} of {function.name} is a {text}, and the bot makes"
                " no random values of this type"
            )
    return None


def feed(
    interface: Interface, dynamic: int, draws: int, directory: Path, cancel: Cancel
) -> Feed | str:
    """Write the files that are missing below `directory`.

    Returns how to call the one function with them, or why that cannot be.

    Args:
        interface: the program's functions and parameters.
        dynamic: the size of dimensions that are not fixed.
        draws: how many random inputs; one if the function takes none. With long
            integers among the parameters there is one run more, with other ones.
        directory: the folder of the files.
        cancel: ends the work early.
    """
    (function,) = interface.functions
    narrow = _parameter_files(interface, is_wide=False)
    wide = _parameter_files(interface, is_wide=True)
    if isinstance(narrow, str):
        return narrow
    if isinstance(wide, str):
        return wide
    if all(text == _ANY for text in function.arguments):
        draws = 1
    runs = [(draw, narrow) for draw in range(draws)]
    if wide != narrow:
        # `_below` gives long integers all values in runs with an odd number
        odd_draw = len(runs) | 1
        runs.insert(1, (odd_draw, wide))
    files = dict[str, _File]()
    calls = list[tuple[str, ...]]()
    for draw, parameter_files in runs:
        arguments = _arguments(function, draw, dynamic, picks=interface.picks)
        argument_files = [file for _, file in arguments if file is not None]
        for file in (*parameter_files.values(), *argument_files):
            files[file.name] = file
        flags = _flags(parameter_files, arguments)
        calls.append((f"--function={function.name}", *flags))
    if reason := _written(files, directory, cancel):
        return reason
    results = [parsed(text) for text in function.results]
    return Feed(
        directory,
        draws=tuple(calls),
        random=_drawn(interface),
        results=tuple(result.element if result else "" for result in results),
        dynamic=dynamic if _takes_dynamic(function) else None,
    )


def _takes_dynamic(function: Function) -> bool:
    """Return True if a dimension of an argument is not fixed."""
    tensors = [parsed(text) for text in function.arguments]
    return any(tensor is not None and tensor.is_dynamic for tensor in tensors)


def _drawn(interface: Interface) -> str:
    """Return what is drawn for each run of the one function; empty for nothing."""
    (function,) = interface.functions
    if any(text != _ANY for text in function.arguments):
        return "input"
    if interface.parameters:
        return "set of parameters"
    return ""


def _flags(
    parameter_files: Mapping[str, _File],
    arguments: Iterable[tuple[str, _File | None]],
) -> Iterator[str]:
    """Yield the flags of one run that name its parameters and its arguments."""
    for scope, file in parameter_files.items():
        prefix = f"{scope}=" if scope else ""
        yield f"--parameters={prefix}{file.name}"
    for text, input_file in arguments:
        if input_file is None:
            yield f"--input={text}"
        else:
            yield f"--input={text}@{input_file.name}"


def _arguments(
    function: Function, draw: int, dynamic: int, *, picks: bool
) -> list[tuple[str, _File | None]]:
    """Return one run's arguments.

    Each has the text before its file's name on the command line, and the file, if it
    has one. Floats are small in the first run and wide in all others.

    Integers of 32 bits or more are small in runs with an even number, and take all
    values in the others. They may be masks, and a mask with other values can make all
    outputs infinite.
    """
    arguments = list[tuple[str, _File | None]]()
    for number, text in enumerate(function.arguments):
        tensor = parsed(text)
        if tensor is None:
            arguments.append(("1xi8=0", None))
            continue
        sized = tensor.sized(dynamic)
        role = "wide" if draw else "input"
        described = _described(
            sized,
            seed=f"input {number}, draw {draw}",
            role=role,
            below=_below(tensor, draw, picks=picks),
        )
        if tensor.is_scalar:
            arguments.append((_scalar(tensor, described), None))
            continue
        file = _File(
            kind="input",
            head="",
            tensors=(described,),
            size_bytes=sized.size_bytes or 0,
        )
        shape = "x".join([*map(str, sized.sizes), sized.element])
        arguments.append((f"{shape}=", file))
    return arguments


def _below(tensor: Tensor, draw: int, *, picks: bool) -> int | None:
    """Return the limit below which integers are drawn.

    Long integers are small in some of the draws. They are small in all draws of a
    program that picks by them.
    """
    is_long = not tensor.is_float and (tensor.bits or 0) >= _LONG_BITS
    if is_long and (picks or tensor.element == "index" or draw % 2 == 0):
        return _FEW
    return None


def _scalar(tensor: Tensor, described: dict[str, Any]) -> str:
    rng = random.Random(described["seed"])  # noqa: S311 (numbers that a seed repeats)
    if tensor.is_float:
        value = rng.gauss(0, 0.25)
        if described["role"] == "wide":
            value *= 2 ** rng.uniform(-8, 8)
        return f"{value:.6f}"
    bits = tensor.bits or 1
    below = described["below"]
    if below:
        return str(rng.randrange(below))
    signed = rng.getrandbits(bits) - (1 << bits >> 1)
    return str(signed >> rng.randrange(bits))


def _described(
    tensor: Tensor, seed: str, role: str, below: int | None
) -> dict[str, Any]:
    return {
        "seed": seed,
        "element": tensor.element,
        "sizes": tensor.sizes,
        "role": role,
        "below": below,
    }


def _parameter_files(interface: Interface, *, is_wide: bool) -> dict[str, _File] | str:
    """Return scope → its file, or why one cannot be made.

    `is_wide`: make the biases of a quantised program as large as the sums to which they
    are added, and keep its other integers small. In any other program, give long
    integers all values.
    """
    scopes: dict[str, dict[str, Tensor]] = {}
    for parameter in interface.parameters:
        tensor = parsed(parameter.type)
        if tensor is None or tensor.size_bytes is None:
            return (
                f"the parameter {parameter.key!r} is a {parameter.type}, and the bot makes no"
                " random values of this type"
            )
        if (
            not parameter.key.isprintable()
            or set(parameter.key + parameter.scope) & set('"\\=')
            or not parameter.scope.isprintable()
        ):
            return (
                f"the parameter {parameter.key!r} has a name that a file of parameters"
                " cannot have"
            )
        if (
            scopes.setdefault(parameter.scope, {}).setdefault(parameter.key, tensor)
            != tensor
        ):
            return f"the parameter {parameter.key!r} has two types"
    filling = "wide" if is_wide else ""
    for tensors in scopes.values():
        elements = {tensor.element for tensor in tensors.values()}
        if is_wide and not elements.isdisjoint(_QUANTISED):
            filling = "bias"
    files = dict[str, _File]()
    for scope, tensors in scopes.items():
        files[scope] = _parameter_file(scope, tensors, filling, picks=interface.picks)
    return files


def _parameter_file(
    scope: str, tensors: dict[str, Tensor], filling: str, *, picks: bool
) -> _File:
    """Return a file with all tensors of a scope.

    It has the format of https://huggingface.co/docs/safetensors, which the runtime
    reads. The runtime looks at nothing but the offsets, so that every type may pass for
    bytes.
    """
    header = {}
    offset = 0
    described = []
    for key, tensor in tensors.items():
        size = tensor.size_bytes or 0
        header[key] = {
            "dtype": "U8",
            "shape": [size],
            "data_offsets": [offset, offset + size],
        }
        offset += size
        role = "parameter"
        if filling == "bias" and tensor.element == _SUM and len(tensor.sizes) == 1:
            role = "bias"
        draw = 1 if filling == "wide" else 2
        below = _below(tensor, draw, picks=picks)
        described.append(
            _described(tensor, seed=f"parameter {scope}::{key}", role=role, below=below)
        )
    text = json.dumps(header, ensure_ascii=False)
    head = text + " " * (-(8 + len(text.encode())) % _HEADER_STEP)
    return _File(
        kind="parameters",
        head=head,
        tensors=tuple(described),
        size_bytes=8 + len(head.encode()) + offset,
    )


def _written(files: Mapping[str, _File], directory: Path, cancel: Cancel) -> str | None:
    try:
        make_directory(directory)
        missing = [name for name in files if not (directory / name).is_file()]
    except OSError as error:
        raise no_room(error, str(directory)) from None
    need = sum(files[name].size_bytes for name in missing)
    free = shutil.disk_usage(directory).free
    if need + _SPARE_BYTES > free:
        return here(
            f"the random data need {need >> 20:,} MiB, but only {free >> 20:,} MiB are"
            " free"
        )
    held_bytes = _HELD_TWICE * sum(file.size_bytes for file in files.values())
    memory = memory_kib()
    if memory and held_bytes >> 10 > memory:
        return here(
            f"a run needs about {held_bytes >> 20:,} MiB of memory, but the machine has"
            f" {memory >> 10:,} MiB"
        )
    with temporary_directory("data-", directory) as parts:
        request = []
        for name in missing:
            head = files[name].head
            tensors = files[name].tensors
            path = str(parts / name)
            request.append({"path": path, "head": head, "tensors": tensors})
        if missing:
            reason = fill(request, directory, cancel)
            if reason:
                return reason
        for name in missing:
            os.replace(parts / name, directory / name)
    return None
