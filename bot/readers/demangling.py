"""Demangle C++ symbol names, and find the stem of a name.

The stem is the function without what it takes and returns.

The demangler of the C++ runtime runs in a process of its own: a hostile name can be
short and demangle without end.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from bot.core.json_text import parse_json
from bot.system.cancel import Cancel
from bot.system.files import temporary_directory
from bot.system.processes import run

PREFIX = "_Z"
ANONYMOUS = "{anonymous}"
LAMBDA = "{lambda"
_WORKER = Path(__file__).with_name("demangle_worker.py")
_TIMEOUT_SECONDS = 120
_LARGEST_BYTES = 1 << 26
_CLONE = re.compile(
    r"(?:\.(?:isra|constprop|lto_priv|llvm|localalias|clone|\d+))+(?=\.|\Z)"
)
"""What compilers append to the name of a function that they specialise.

`.cold` and `.part` are other functions.
"""
_PART_NUMBER = re.compile(r"(?<=\.part)\.\d+|(?<=\.cold)\.\d+")
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}\Z")
_THUNK = re.compile(r"(?:non-virtual |virtual |covariant return )thunk to ")
_SYMBOL_OPERATOR = re.compile(
    r"\boperator ?(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|<=?|>=?|\"\" ?\w+|[^\w\s()<>\[\]]+)"
)
_WORD_OPERATOR = re.compile(r"\boperator [A-Za-z_][^()]*")
_OPENING = "(<["
_CLOSING = ")>]"
_HIDDEN = str.maketrans("()<>[] ", "\ue000\ue001\ue002\ue003\ue004\ue005\ue006")
_SHOWN = str.maketrans("\ue000\ue001\ue002\ue003\ue004\ue005\ue006", "()<>[] ")
_QUALIFIERS = frozenset({"const", "volatile", "&", "&&", "noexcept"})


def demangled(names: Iterable[str]) -> dict[str, str]:
    """Return mangled name → the function as C++ writes it.

    Suffixes that a compiler appends are left out. A name that the demangler refuses
    is missing. All are missing if this machine has no C++ runtime.
    """
    plain_names = {}
    for name in names:
        if name.startswith(PREFIX):
            plain_names[name] = name.partition(".")[0]
    if not plain_names:
        return {}
    texts = _answers(sorted(set(plain_names.values())))
    result = {}
    for name, plain in plain_names.items():
        if plain in texts:
            result[name] = texts[plain]
    return result


def _answers(names: list[str]) -> Mapping[str, str]:
    """Ask the demangler in a process of its own.

    Returns nothing if the process ends without an answer.
    """
    with temporary_directory("names-") as directory:
        question = directory / "names.json"
        answer = directory / "answer.json"
        question.write_text(json.dumps(names), encoding="ascii")
        outcome = run(
            [sys.executable, "-I", str(_WORKER)],
            cancel=Cancel(),
            stdin=question,
            stdout=answer,
            cwd=directory,
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        if not outcome.ok or answer.stat().st_size > _LARGEST_BYTES:
            return {}
        texts = parse_json(answer.read_bytes())
    answers = {}
    for name, text in zip(names, texts, strict=True):
        if text:
            answers[name] = text
    return answers


def stem_of(name: str, text: str | None = None) -> str:
    """Return what a function is called in its source.

    This is its qualified name without parameters, template values and return type.

    `text`: the demangled name; None for a name of C. Suffixes of specialised copies are
    left out.
    """
    suffix = ""
    if "." in name:
        suffix = _CLONE.sub("", name[name.find(".") :])
    suffix = _PART_NUMBER.sub("", suffix)
    plain = name.partition(".")[0] if "." in name else name
    if plain:
        return (qualified_name(text) if text else plain) + suffix
    return name


@lru_cache(maxsize=4096)
def qualified_name(text: str) -> str:
    """Return `a::B::get` of `int a::B<float>::get<char>(char, unsigned long) const`.

    A text of another form is returned as it is.
    """
    thunk = _THUNK.match(text)
    hidden = _hide(text[thunk.end() :] if thunk else text)
    inner = _pointed_to(hidden)
    outside = _outside(inner if inner is not None else hidden)
    parts = outside.split() if outside is not None else []
    while len(parts) > 1 and parts[-1] in _QUALIFIERS:
        parts.pop()
    if not parts:
        return text
    name = parts[-1].lstrip("*&").translate(_SHOWN)
    name = _RUST_HASH.sub("", name)
    if thunk:
        return f"thunk to {name}"
    return name


def parameters(text: str) -> str | None:
    """Return the text between the last parentheses of a function.

    None if it has none.
    """
    hidden = _hide(text)
    end = hidden.rfind(")")
    depth = 0
    for place in range(end, -1, -1):
        depth += (hidden[place] == ")") - (hidden[place] == "(")
        if not depth:
            return hidden[place + 1 : end].translate(_SHOWN)
    return None


def _hide(text: str) -> str:
    """Replace brackets and blanks of names, such as those of `operator()`."""
    text = text.replace("(anonymous namespace)", ANONYMOUS).replace("->", "\ue007")
    text = _SYMBOL_OPERATOR.sub(
        lambda match: match[0].replace(" ", "").translate(_HIDDEN), text
    )
    text = text.replace("operator\ue007", "operator-\ue003")
    return _WORD_OPERATOR.sub(lambda match: match[0].rstrip().translate(_HIDDEN), text)


def _pointed_to(hidden: str) -> str | None:
    """Return `fp(int)` of `int (*fp(int))(float)`.

    This is a function that returns a pointer to a function. None for any other
    function.
    """
    pointer = re.search(r"\([*&]+ ?", hidden)
    if pointer is None or ")(" not in hidden or pointer.start() != hidden.find("("):
        return None
    depth = 1
    for place in range(pointer.end(), len(hidden)):
        depth += (hidden[place] == "(") - (hidden[place] == ")")
        if not depth:
            if hidden[place + 1 : place + 2] == "(":
                return hidden[pointer.end() : place]
            return None
    return None


def _outside(hidden: str) -> str | None:
    """Return the text outside of brackets; None if they are not balanced."""
    depth = 0
    outside = list[str]()
    for character in hidden:
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
            if depth < 0:
                return None
        elif not depth:
            outside.append(character)
    if depth:
        return None
    return "".join(outside)
