"""What the export paths share: locations that say nothing about a machine, and writing a model file."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

FILE_LOCATION = re.compile(r'loc\("([^"\n]*/[^"\n]*)":(?=\d+:\d+)')
"""A file location with a directory in it, as MLIR prints one: ``loc("dir/file.py":12:0)``."""


def package_path(path: str) -> str:
    """The path inside its Python package (``torch/nn/modules/linear.py``), else the bare file name."""
    _, separator, inside = path.rpartition("/site-packages/")
    relative = separator or not path.startswith("/")
    return inside if relative else base_name(path)


def base_name(path: str) -> str:
    """The last component of a path."""
    return path.rpartition("/")[2]


def strip_directories(asm: str) -> str:
    """``asm`` with every file location cut down to the name of the file."""
    return FILE_LOCATION.sub(lambda found: f'loc("{base_name(found[1])}":', asm)


def run(builders: Mapping[str, Callable[[], str]], doc: str, argv: list[str] | None = None) -> int:
    """The command line of an export script: build each named model's text and write ``DIR/<name>.mlir``."""
    summary, _, examples = doc.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names to export (see --list), or 'all'")
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="where the .mlir files go (default: .)"
    )
    parser.add_argument("--list", action="store_true", help="print the names this script can export")
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(builders))
        return 0
    names = list(builders) if args.models == ["all"] else args.models
    unknown = [name for name in names if name not in builders]
    if unknown or not names:
        problem = f"unknown model {unknown[0]}" if unknown else "name a model"
        parser.error(f"{problem}; choose from: {', '.join(builders)}")
    for name in names:
        write_model(args.out, name, builders[name]())
    return 0


def write_model(folder: Path, name: str, asm: str) -> None:
    """Write ``folder/<name>.mlir``, after a check that no location names a directory of this machine."""
    leak = re.search(r'\("/[^"]*":\d+', asm)
    if leak:
        sys.exit(f"{name}: the location {leak[0]} holds an absolute path; strip it before writing")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}.mlir"
    target.write_text(asm if asm.endswith("\n") else asm + "\n", encoding="utf-8")
    print(f"wrote {target} ({len(asm.encode())} bytes)")
