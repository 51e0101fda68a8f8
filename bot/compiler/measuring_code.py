"""Digest the code that measures: a build measured by other code is measured again.

The digest is over syntax trees without docstrings and comments, so that a corrected
docstring keeps every cache and stored baseline. Building the trees takes half a second,
so a cache remembers the digest of the same files.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import bot
from bot.compiler.storage import add, read

MEASURING = ("compiler", "core", "explain", "readers", "study")
"""The folders whose code decides what a cell says of the same bytes."""

_FOLDER = "digests"
_NOT_COMPARED = frozenset({"kind", "type_comment", "type_params"})
"""Fields of a syntax tree that differ between releases of Python for the same code."""

_caches: list[Path] = []


def remember_digest_in(root: Path) -> None:
    """Keep the digest of the code in this cache, and look for it there."""
    _caches[:] = [root.absolute()]


@cache
def measured_by() -> str:
    """Return the SHA-256 (hex) of the code that measures."""
    sources = _measuring_sources()
    files = hashlib.sha256()
    for name, source in sources.items():
        files.update(b"%s\0%d\0%s" % (name.encode(), len(source), source))
    if not _caches:
        return tree_digest(sources)
    path = _caches[0] / _FOLDER / f"code-{files.hexdigest()}.txt"
    remembered = _remembered(path)
    if remembered is not None:
        return remembered
    digest = tree_digest(sources)
    add(_caches[0], path, digest.encode())
    return digest


def tree_digest(sources: dict[str, bytes]) -> str:
    """Return the SHA-256 (hex) of what Python files say, without comments and docstrings.

    `sources` maps the name of a file to its bytes.
    """
    digest = hashlib.sha256()
    for name, source in sources.items():
        digest.update(b"file\0%s\0" % name.encode())
        for piece in _pieces(ast.parse(source)):
            digest.update(b"%s\0" % piece.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _measuring_sources() -> dict[str, bytes]:
    package = Path(bot.__file__).parent
    paths = list[Path]()
    for folder in MEASURING:
        paths += (package / folder).rglob("*.py")
    paths.sort()
    return {path.relative_to(package).as_posix(): path.read_bytes() for path in paths}


def _remembered(path: Path) -> str | None:
    text = read(path).decode("ascii", "replace")
    if re.fullmatch("[0-9a-f]{64}", text):
        return text
    return None


def _pieces(node: ast.AST) -> Iterator[str]:
    """Yield the names and values of a tree, with its shape, from the top to the leaves."""
    yield f"({type(node).__name__}"
    for field, value in ast.iter_fields(node):
        if field in _NOT_COMPARED:
            continue
        if field == "body" and isinstance(value, list):
            value = _without_docstring(node, value)
        values = value if isinstance(value, list) else [value]
        yield f"{field} {len(values)}"
        for item in values:
            if isinstance(item, ast.AST):
                yield from _pieces(item)
            else:
                yield f"{type(item).__name__} {item!r}"
    yield ")"


def _without_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    has_docstring = isinstance(
        node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    )
    if has_docstring:
        return [statement for statement in body if not _is_text(statement)]
    return body


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a text alone: a docstring, or one below a name."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
