"""Find the static library of llvm-cpu: an object file beside the artifact.

The artifact has no machine code then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.compiler.file_options import OFF
from bot.core.planned import LIBRARY_PATH_OPTION

_LINK_STATIC = "--iree-llvmcpu-link-static"


def library_path(argv: Sequence[str], directory: Path) -> Path | None:
    """Return where a compile in `directory` writes its static library.

    None if its flags ask for none. The compiler gives any path the suffix `.o`. It
    fails if embedded libraries are linked at the same time.
    """
    is_static = False
    name = ""
    for flag in argv:
        option, _, value = flag.partition("=")
        if option == _LINK_STATIC:
            is_static = value not in OFF
        elif option == LIBRARY_PATH_OPTION:
            name = value
    if not is_static:
        return None
    if name:
        return (directory / name).with_suffix(".o")
    return directory / ".o"


def make_room_for_library(argv: Sequence[str], directory: Path) -> None:
    """Make the folders that the path of the static library names.

    The compiler does not make them.
    """
    path = library_path(argv, directory)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
