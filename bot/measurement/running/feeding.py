"""What a program is run on: random inputs and parameters, the same in every run, as files that are written once."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.compiler.machine import memory_kib
from bot.core.codec.json_text import canonical
from bot.core.rules.lasting import here
from bot.measurement.running.arrays import fill
from bot.readers.interfaces import Function, Interface, Parameter, Tensor, parsed
from bot.system.files import make_directory, no_room, temporary_directory
from bot.system.processes import Cancel

_HEADER_STEP = 64
"""The data of a parameter file begin at a multiple of this many bytes."""
_SPARE_BYTES = 64 << 20
"""Room that is left on the disk, for outputs and whatever others do there."""
_ANY = "!hal.buffer_view"
"""An argument that the program does not look at."""
_QUANTISED, _SUM = ("i8", "si8", "ui8"), "i32"
"""Elements of what a quantised program multiplies, and of what it adds to the sums."""
_HELD_TWICE = 2
"""What initializers make of parameters may be as large as these are, and stays beside them."""


@dataclass(frozen=True, slots=True)
class Feed:
    """How the runtime's programs are told to call a function.

    Attributes:
        directory: where its files are, and the programs are run.
        draws: for each run the function, the files of parameters and the arguments.
        has_inputs: False for a function without arguments, of which only the parameters are random.
        results: the elements of what it gives, in order (`f32`); empty for what is no tensor or number.
        dynamic: what dimensions were made that are not fixed; None where all are.
    """

    directory: Path
    draws: tuple[tuple[str, ...], ...]
    has_inputs: bool
    results: tuple[str, ...]
    dynamic: int | None


@dataclass(frozen=True, slots=True)
class _File:
    """One file of random values: what `array_worker` makes it from, and how large it gets."""

    kind: str
    head: str
    tensors: tuple[dict[str, Any], ...]
    size_bytes: int

    @property
    def name(self) -> str:
        """Has a digest of what it is made from, so that a file that is there is the right one."""
        digest = hashlib.sha256(canonical([self.head, self.tensors])).hexdigest()
        return f"{self.kind}-{digest[:24]}.{'safetensors' if self.head else 'bin'}"


def called(interface: Interface) -> tuple[Function, bool] | str:
    """The function to run and whether it takes tensors of any size, or the reason why there is none."""
    if len(interface.functions) != 1:
        names = ", ".join(each.name for each in interface.functions[:4])
        return f"which of {len(interface.functions)} public functions to run is not known{names and f': {names}'}"
    function = interface.functions[0]
    if not function.name.isprintable():
        return "the program's function has a name that cannot be given to the runtime"
    types = [parsed(text) for text in function.arguments]
    for number, (text, tensor) in enumerate(zip(function.arguments, types, strict=True)):
        if text != _ANY and (tensor is None or tensor.sized(1).size_bytes is None):
            return f"argument {number} of {function.name} is a {text}, of which no random one is made"
    return function, any(tensor is not None and tensor.is_dynamic for tensor in types)


def feed(
    interface: Interface, function: Function, dynamic: int | None, draws: int, directory: Path, cancel: Cancel
) -> Feed | str:
    """Write what is missing below `directory`; how to call the function with it, or the reason why that cannot be.

    Args:
        dynamic: for dimensions that are not fixed; None where all are.
        draws: how many random inputs; one where the function takes none.
    """
    kept = [_parameter_files(interface.parameters, is_wide=is_wide) for is_wide in (False, True)]
    narrow, wide = kept
    if isinstance(narrow, str) or isinstance(wide, str):
        return str(narrow)
    runs = [(draw, narrow) for draw in range(draws if function.arguments else 1)]
    runs[1:1] = [(len(runs), wide)] if wide != narrow else []
    files: dict[str, _File] = {}
    flags = tuple((f"--function={function.name}", *_flags(function, run, dynamic, files)) for run in runs)
    if reason := _written(files, directory, cancel):
        return reason
    results = [parsed(text) for text in function.results]
    elements = tuple(each.element if each else "" for each in results)
    return Feed(directory, flags, bool(function.arguments), elements, dynamic)


def _flags(
    function: Function, run: tuple[int, dict[str, _File]], dynamic: int | None, files: dict[str, _File]
) -> Iterator[str]:
    """Parameters and arguments of one run, whose files are added to `files`."""
    draw, kept = run
    for scope, each in kept.items():
        files[each.name] = each
        yield f"--parameters={f'{scope}=' if scope else ''}{each.name}"
    for number, text in enumerate(function.arguments):
        argument, file = _argument(text, number, draw, dynamic)
        if file is not None:
            files[file.name] = file
        yield f"--input={argument}@{file.name}" if file else f"--input={argument}"


def _argument(text: str, number: int, draw: int, dynamic: int | None) -> tuple[str, _File | None]:
    """What stands on the command line, up to the file's name where there is a file."""
    tensor = parsed(text)
    if tensor is None:
        return "1xi8=0", None
    seed = f"input {number}, draw {draw}"
    if tensor.is_scalar:
        rng = random.Random(seed)  # noqa: S311 (numbers that a seed repeats)
        return (f"{rng.gauss(0, 0.25):.6f}" if tensor.is_float else str(rng.getrandbits(1))), None
    sized = tensor.sized(dynamic or 0)
    described = _described(sized, seed, "input")
    shape = "x".join([*map(str, sized.sizes), sized.element])
    return f"{shape}=", _File("input", "", (described,), sized.size_bytes or 0)


def _described(tensor: Tensor, seed: str, role: str) -> dict[str, Any]:
    return {"seed": seed, "element": tensor.element, "sizes": tensor.sizes, "role": role}


def _parameter_files(parameters: Sequence[Parameter], *, is_wide: bool) -> dict[str, _File] | str:
    """Scope → its file; or the reason why one cannot be made.

    Args:
        is_wide: give the biases of a quantised program values as large as the sums that they are added to.
    """
    scopes: dict[str, dict[str, Tensor]] = {}
    for each in parameters:
        tensor = parsed(each.type)
        if tensor is None or tensor.size_bytes is None:
            return f"the parameter {each.key!r} is a {each.type}, of which no random one is made"
        if not each.key.isprintable() or set(each.key + each.scope) & set('"\\=') or not each.scope.isprintable():
            return f"the parameter {each.key!r} has a name that no file of parameters can have"
        if scopes.setdefault(each.scope, {}).setdefault(each.key, tensor) != tensor:
            return f"the parameter {each.key!r} has two types"
    is_quantised = any(tensor.element in _QUANTISED for tensors in scopes.values() for tensor in tensors.values())
    return {scope: _parameter_file(scope, tensors, is_wide and is_quantised) for scope, tensors in scopes.items()}


def _parameter_file(scope: str, tensors: dict[str, Tensor], is_wide: bool) -> _File:
    """All tensors of a scope, in the format of https://huggingface.co/docs/safetensors, which the runtime reads.

    It looks at nothing but the offsets, so that every type may pass for bytes.
    """
    header, offset, described = {}, 0, []
    for key, tensor in tensors.items():
        size = tensor.size_bytes or 0
        header[key] = {"dtype": "U8", "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
        role = "bias" if is_wide and tensor.element == _SUM and len(tensor.sizes) == 1 else "parameter"
        described.append(_described(tensor, f"parameter {scope}::{key}", role))
    text = json.dumps(header, ensure_ascii=False)
    head = text + " " * (-(8 + len(text.encode())) % _HEADER_STEP)
    return _File("parameters", head, tuple(described), 8 + len(head.encode()) + offset)


def _written(files: Mapping[str, _File], directory: Path, cancel: Cancel) -> str | None:
    """Write those that are not there; the reason where that cannot be."""
    try:
        make_directory(directory)
        missing = {name: each for name, each in files.items() if not (directory / name).is_file()}
    except OSError as error:
        raise no_room(error, str(directory)) from None
    if reason := _no_room(files.values(), missing.values(), directory):
        return reason
    with temporary_directory("data-", directory) as parts:
        request = [
            {"path": str(parts / name), "head": each.head, "tensors": each.tensors} for name, each in missing.items()
        ]
        if reason := fill(request, directory, cancel) if missing else None:
            return reason
        for name, each in missing.items():
            if (parts / name).stat().st_size != each.size_bytes:
                return here("random data came out in another size than they should have")
        for name in missing:
            os.replace(parts / name, directory / name)
    return None


def _no_room(files: Iterable[_File], missing: Iterable[_File], directory: Path) -> str | None:
    need, free = sum(each.size_bytes for each in missing), shutil.disk_usage(directory).free
    if need + _SPARE_BYTES > free:
        return here(f"the random data take {need >> 20:,} MiB, of {free >> 20:,} MiB that are free for them")
    held, memory = _HELD_TWICE * sum(each.size_bytes for each in files), memory_kib()
    if memory and held >> 10 > memory:
        return here(f"to run it takes about {held >> 20:,} MiB of memory, of {memory >> 10:,} MiB that there are")
    return None
