"""Compiles one Triton kernel ahead of time for one target; no device is needed.

usage: python aot.py KERNEL.py TARGET OUT

TARGET is sm_NN for NVIDIA, gfxNNN for AMD. KERNEL.py has KERNEL, a `triton.jit` function, SIGNATURE, the types of its
arguments, and CONSTANTS, the values of those that are `constexpr`. It may have OPTIONS, such as `{"num_warps": 8}`.
Pointers and sizes are taken to be divisible by 16, as Triton itself finds for most of them when it is called.

OUT gets the machine code (`.cubin`, `.hsaco`), and Triton's own stages (`.ttir`, `.ttgir`, `.llir`, `.ptx`, `.amdgcn`).
"""

import contextlib
import importlib.util
import itertools
import json
import os
import sys
import tempfile
from pathlib import Path

path, target, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
os.environ.setdefault("TRITON_CACHE_DIR", str(Path("tmp/triton-cache").absolute()))


def numbered_file(mode="w+b", suffix="", **_):
    """In place of a file with a random name: ptxas writes it into its own, which would have other bytes each time."""
    for number in itertools.count():
        with contextlib.suppress(FileExistsError):
            path = Path(tempfile.gettempdir(), f"triton-{number}{suffix}")
            path.touch(exist_ok=False)
            return path.open(mode)


tempfile.NamedTemporaryFile = numbered_file

import triton  # noqa: E402 - it reads the environment
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn", "cubin", "hsaco")


def gpu(name):
    if name.startswith("sm_"):
        return GPUTarget("cuda", int(name.removeprefix("sm_").rstrip("af")), 32)
    # From gfx10 on 32 threads run in step, before that 64.
    return GPUTarget("hip", name, 64 if name.startswith("gfx9") else 32)


def compiled(kernel, signature, constants, options):
    names = kernel.arg_names
    divisible = [["tt.divisibility", 16]]
    attributes = {(n,): divisible for n, name in enumerate(names) if signature.get(name, "fp").startswith(("*", "i"))}
    source = ASTSource(
        fn=kernel,
        signature={**signature, **dict.fromkeys(constants, "constexpr")},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=attributes,
    )
    return triton.compile(source, target=gpu(target), options=options)


spec = importlib.util.spec_from_file_location(path.stem, path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
result = compiled(module.KERNEL, module.SIGNATURE, module.CONSTANTS, getattr(module, "OPTIONS", None))
for stage in STAGES:
    if stage in result.asm:
        text = result.asm[stage]
        (out / f"{path.stem}.{stage}").write_bytes(text.encode() if isinstance(text, str) else text)
# What no file shows: Triton adds this memory at the launch.
(out / "facts.json").write_text(json.dumps({"workgroup_memory_max_bytes": result.metadata.shared}))
