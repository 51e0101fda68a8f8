"""What the independent judge of causes reads: IR dumps and device code, as text and bytes, with nothing of the bot."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

DISPATCH = re.compile(r"_dispatch_\d+")
ALIAS = re.compile(r"#[A-Za-z]\w*(?![\w.])")
FUNCTION = re.compile(r'^( *)func\.func (?:\w+ )?@"?([^"(]+)"?\(')
SETTING = re.compile(r"(?:translation_info|lowering_config|compilation_info) = ")
OPERATION = re.compile(r"(?:^|= )\s*((?:linalg|arith|math|tensor|scf|iree_linalg_ext|iree_encoding)\.[\w.]+)")
TENSOR = re.compile(r"tensor<[^<>]*>")
# The releases spell one pipeline in two ways: LLVMGPUTileAndFuse is #iree_gpu.pipeline<TileAndFuse>.
PIPELINE = re.compile(r"#\w+\.(?:\w+_)?pipeline<(\w+)>")
OLD_PIPELINE = re.compile(r"pipeline = (?:LLVMGPU|SPIRV|CPU)(\w+)")
ENTRY = re.compile(r"^\.visible \.entry ([^\s(]+)\(.*?^}$", re.MULTILINE | re.DOTALL)
KERNEL = re.compile(r"^kernel void (\w+)\(", re.MULTILINE)
ROW = re.compile(r"^ *\d+ \| [0-9A-F]+ \| +(\d+) \|.*\| (\S+)$", re.MULTILINE)
# OpSource, OpName, OpMemberName, OpString, OpLine, and everything that decorates.
NO_CODE = frozenset({3, 5, 6, 7, 8, 71, 72, 73, 332, 5632, 5633})
EXECUTABLE = re.compile(r'mime_type = "application/x-(?:flatbuffers|elf)"')
LENGTH = re.compile(r": vector<(\d+)xi8>")


@dataclass(frozen=True)
class Function:
    """A dispatch function as the IR has it.

    Attributes:
        source: its operations and tensor types before configuration, counted.
        settings: its configuration, spelled alike for both releases.
    """

    name: str
    source: frozenset[tuple[str, int]]
    settings: tuple[str, ...]


def same(name: str) -> str:
    """The name as all targets spell it: some have no dollar sign in theirs."""
    return re.sub(r"\W", "_", name)


def bare(name: str) -> str:
    """The name without its ordinal."""
    return DISPATCH.sub("_dispatch", name, count=1)


def aliases(text: str) -> dict[str, str]:
    """The attribute aliases at the top of a module."""
    return dict(re.findall(r"^(#\w+) = (.+)$", text, re.MULTILINE))


def bodies(text: str) -> Iterator[tuple[str, list[str]]]:
    """The functions of a module and their lines, found by indentation."""
    lines = iter(text.splitlines())
    for line in lines:
        if found := FUNCTION.match(line):
            body = [line]
            for line in lines:
                if line.startswith(found[1] + "}"):
                    break
                body.append(line)
            yield found[2], body


def value(text: str) -> str:
    """The attribute at the beginning of the text: an alias, or all up to its closing bracket."""
    depth = 0
    for at, letter in enumerate(text):
        if letter in "<{[(":
            depth += 1
        elif letter in ">}])" and text[at - 1 : at + 1] != "->":
            depth -= 1
        if depth < 0 or (depth == 0 and letter in ", "):
            return text[:at]
        if depth == 0 and letter in ">}":
            return text[: at + 1]
    return text


def expanded(text: str, names: Mapping[str, str]) -> str:
    """The attribute with its aliases replaced by what they stand for."""
    for _ in range(8):
        replaced = ALIAS.sub(lambda found: names.get(found[0], found[0]), text)
        if replaced == text:
            break
        text = replaced
    return text


def plain(setting: str) -> str:
    """A setting without what only the release's spelling makes: pipelines' long names, dialect prefixes."""
    setting = PIPELINE.sub(r"\1", setting).replace("#iree_codegen.vmvx_pipeline", "VMVXDefault")
    return re.sub(r"#iree_\w+\.", "#", OLD_PIPELINE.sub(r"pipeline = \1", setting))


def settings(body: list[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """All configuration attributes of a function in the order of its operations."""
    text = "\n".join(body)
    return tuple(plain(expanded(value(text[found.end() :]), names)) for found in SETTING.finditer(text))


def source(body: list[str]) -> frozenset[tuple[str, int]]:
    """What a function computes, without names, numbers and offsets: its operations and their tensor types, counted."""
    found: Counter[str] = Counter()
    for line in body:
        if (operation := OPERATION.search(line)) and not line.endswith(": index"):
            found[operation[1]] += 1
            if operation[1].startswith(("linalg.", "iree_linalg_ext.")):
                found.update(TENSOR.findall(line))
    return frozenset(found.items())


def functions(sources: str, configurations: str) -> list[Function]:
    """The dispatch functions of a module, from the dumps before and after configuration."""
    names, configured = aliases(configurations), dict(bodies(configurations))
    return [
        Function(same(name), source(body), settings(configured.get(name, []), names)) for name, body in bodies(sources)
    ]


def elf_code(data: bytes) -> dict[str, int]:
    """Sizes of the functions in an ELF symbol table that are dispatches."""
    found: dict[str, int] = {}
    for section in ELFFile(BytesIO(data)).iter_sections():
        if isinstance(section, SymbolTableSection):
            symbols = ((one.name, one) for one in section.iter_symbols() if one["st_info"]["type"] == "STT_FUNC")
            found |= {name: int(one["st_size"]) for name, one in symbols if DISPATCH.search(name)}
    return found


def ptx_code(text: str) -> dict[str, int]:
    """Sizes of the text of the entries of PTX."""
    return {found[1]: len(found[0].encode()) for found in ENTRY.finditer(text)}


def spirv_code(data: bytes) -> dict[str, int]:
    """The bytes of a SPIR-V module that are neither names nor decorations, under its entry point's name."""
    words = struct.unpack(f"<{len(data) // 4}I", data)
    at, code, name = 5, 20, ""
    while at < len(words):
        length, operation = max(words[at] >> 16, 1), words[at] & 0xFFFF
        if operation == 15 and not name:
            name = data[(at + 3) * 4 :].split(b"\0", 1)[0].decode()
        code += 0 if operation in NO_CODE else 4 * length
        at += length
    return {name: code}


def metal_code(text: str) -> dict[str, int]:
    """The size of a Metal source, under its kernel's name."""
    found = KERNEL.search(text)
    return {found[1]: len(text.encode())} if found else {}


def vmvx_code(listing: str) -> dict[str, int]:
    """Sizes of the functions that `iree-dump-module --output=metadata` lists for a VMVX module."""
    return {name: int(size) for size, name in ROW.findall(listing) if DISPATCH.search(name)}


def executable_bytes(vm: str) -> int:
    """The bytes of all executables in the dump of the VM phase."""
    lines = (line for line in vm.splitlines() if "vm.rodata private" in line[:80] and EXECUTABLE.search(line[:600]))
    return sum(int(LENGTH.findall(line[-80:])[-1]) for line in lines)


def host_bytes(listing: str) -> int:
    """Bytecode and all read-only data of an artifact, executables too, by `iree-dump-module --output=metadata`."""
    bytecode = re.search(r"^ *Bytecode: (\d+) bytes", listing, re.MULTILINE)
    data = re.findall(r"^ *\.rodata\[ *\d+\] +\w+ +(\d+) bytes", listing, re.MULTILINE)
    return int(bytecode[1] if bytecode else 0) + sum(map(int, data))


def code_of(folder: Path, listing: str) -> dict[str, int]:
    """The size of each dispatch function's code, from whatever device code the compiler left in a folder."""
    found: dict[str, int] = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if path.suffix in (".o", ".hsaco"):
            found |= elf_code(path.read_bytes())
        elif path.suffix == ".spv":
            found |= spirv_code(path.read_bytes())
        elif path.suffix in (".ptx", ".metal"):
            found |= (ptx_code if path.suffix == ".ptx" else metal_code)(path.read_text(encoding="utf-8"))
    return {same(name): size for name, size in (found | vmvx_code(listing)).items()}
