"""Print the options of a compiler's library with their defaults.

This is run as a script, never imported.

    python options_worker.py libIREECompiler.so
        → ["--iree-input-type=auto", …] in the library's order;
          else one line, and exit code 1

The library is foreign code: only this process loads it. The C API is
`iree/compiler/embedding_api.h`.
"""

import ctypes
import json
import os
import sys


def options(path: str) -> list[str]:
    """Return `--name=value` of each option that a compiler session has."""
    library = ctypes.CDLL(path)
    on_flag = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    library.ireeCompilerSessionCreate.restype = ctypes.c_void_p
    library.ireeCompilerSessionGetFlags.argtypes = [
        ctypes.c_void_p,
        ctypes.c_bool,
        on_flag,
        ctypes.c_void_p,
    ]
    library.ireeCompilerGlobalInitialize()
    session = library.ireeCompilerSessionCreate()
    flags = list[str]()

    def keep(text: int, length: int, _: object) -> None:
        flags.append(ctypes.string_at(text, length).decode("utf-8", "replace"))

    callback = on_flag(keep)
    library.ireeCompilerSessionGetFlags(session, False, callback, None)
    return flags


def main() -> int:
    """Answer for the library that the command line names."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the library prints must not end up in the answer
    try:
        flags = options(sys.argv[1])
    except (OSError, AttributeError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    json.dump(flags, answers)
    answers.flush()
    os._exit(0)  # without the library's own clean-up, which nobody needs


if __name__ == "__main__":
    sys.exit(main())
