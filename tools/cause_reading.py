"""Read the compiler's IR dumps with nothing of the bot, as a second source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

DISPATCH = re.compile(r"_dispatch_\d+")
ALIAS = re.compile(r"#[A-Za-z]\w*(?![\w.])")
FUNCTION = re.compile(r'^( *)func\.func (?:\w+ )?@"?([^"(]+)"?\(')
SETTING = re.compile(r"(?:translation_info|lowering_config|compilation_info) = ")
OPERATION = re.compile(
    r"(?:^|="
    r" )\s*((?:linalg|arith|math|tensor|scf|iree_linalg_ext|iree_encoding)\.[\w.]+)"
)
TENSOR = re.compile(r"tensor<[^<>]*>")
# The releases spell one pipeline in two ways: LLVMGPUTileAndFuse is
# #iree_gpu.pipeline<TileAndFuse>.
PIPELINE = re.compile(r"#\w+\.(?:\w+_)?pipeline<(\w+)>")
OLD_PIPELINE = re.compile(r"pipeline = (?:LLVMGPU|SPIRV|CPU)(\w+)")


@dataclass(frozen=True)
class Function:
    """A dispatch function as the IR has it."""

    name: str
    # its operations and tensor types before configuration, counted
    source: frozenset[tuple[str, int]]
    settings: tuple[str, ...]  # its configuration, spelled alike for both releases


def same(name: str) -> str:
    """Return the name as all targets spell it: some have no dollar sign in theirs."""
    return re.sub(r"\W", "_", name)


def aliases(text: str) -> dict[str, str]:
    """Return the attribute aliases at the top of a module."""
    return dict(re.findall(r"^(#\w+) = (.+)$", text, re.MULTILINE))


def bodies(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the functions of a module and their lines, found by indentation."""
    lines = iter(text.splitlines())
    for line in lines:
        if heading := FUNCTION.match(line):
            body = [line]
            for line in lines:
                if line.startswith(heading[1] + "}"):
                    break
                body.append(line)
            yield heading[2], body


def value(text: str) -> str:
    """Return the attribute at the beginning of the text.

    It is an alias, or all up to its closing bracket.
    """
    depth = 0
    for position, letter in enumerate(text):
        if letter in "<{[(":
            depth += 1
        elif letter in ">}])" and text[position - 1 : position + 1] != "->":
            depth -= 1
        if depth < 0 or (depth == 0 and letter in ", "):
            return text[:position]
        if depth == 0 and letter in ">}":
            return text[: position + 1]
    return text


def expanded(text: str, names: Mapping[str, str]) -> str:
    """Return the attribute with its aliases replaced by what they stand for."""
    for _ in range(8):
        replaced = ALIAS.sub(lambda found: names.get(found[0], found[0]), text)
        if replaced == text:
            break
        text = replaced
    return text


def plain(setting: str) -> str:
    """Return a setting without what only the release's spelling makes.

    These are the long names of pipelines, and the prefixes of dialects.
    """
    setting = PIPELINE.sub(r"\1", setting).replace(
        "#iree_codegen.vmvx_pipeline", "VMVXDefault"
    )
    return re.sub(r"#iree_\w+\.", "#", OLD_PIPELINE.sub(r"pipeline = \1", setting))


def settings(body: list[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return all configuration attributes of a function, in the order of operations."""
    text = "\n".join(body)
    return tuple(
        plain(expanded(value(text[setting.end() :]), names))
        for setting in SETTING.finditer(text)
    )


def source(body: list[str]) -> frozenset[tuple[str, int]]:
    """Return what a function computes: its operations and their tensor types, counted.

    Names, numbers and offsets are left out.
    """
    counts: Counter[str] = Counter()
    for line in body:
        if (operation := OPERATION.search(line)) and not line.endswith(": index"):
            counts[operation[1]] += 1
            if operation[1].startswith(("linalg.", "iree_linalg_ext.")):
                counts.update(TENSOR.findall(line))
    return frozenset(counts.items())


def functions(sources: str, configurations: str) -> list[Function]:
    """Return the dispatch functions of a module.

    They come from the dumps before and after configuration.
    """
    names = aliases(configurations)
    configured = dict(bodies(configurations))
    return [
        Function(same(name), source(body), settings(configured.get(name, []), names))
        for name, body in bodies(sources)
    ]
