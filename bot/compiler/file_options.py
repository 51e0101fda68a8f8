"""List the options of IREE's tools that name files which a build reads.

Other options are known to read none. An option that stands in no table here, and whose
value is a word, may read any file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Kind = Literal["nothing", "paths", "unknown"]

PATH_OPTIONS: Mapping[str, str] = {
    "--iree-codegen-debug-patched-func-ops-file-name": "",
    "--iree-codegen-transform-dialect-library": "@",
    "--iree-codegen-tuning-spec-path": "",
    "--iree-hal-executable-object-search-path": ",",
    "--iree-hal-substitute-executable-configuration": "=",
    "--iree-hal-substitute-executable-configurations-from": "",
    "--iree-hal-substitute-executable-object": "=",
    "--iree-hal-substitute-executable-objects-from": "",
    "--iree-hal-substitute-executable-source": "=",
    "--iree-hal-substitute-executable-sources-from": "",
    "--iree-hip-bc-dir": "",
    "--iree-link-bitcode": ",=",
    "--iree-opt-import-parameters": ",=",
    "--iree-parameter-import": ",=",
    "--iree-preprocessing-pdl-spec-filename": "",
    "--iree-preprocessing-transform-spec-filename": "",
    "--iree-rocm-bc-dir": "",
}
"""Option → the signs that separate files or folders in its value.

`=` follows a name (`scope=file`), `,` separates paths, and `@` begins the name of an
entry point.
"""

IMPORT_PATH_OPTIONS: Mapping[str, str] = {"--data-dir": ""}
"""The same for `iree-import-onnx`."""

_PLAIN_OPTIONS = frozenset(
    {
        "--iree-codegen-reorder-workgroups-strategy",
        "--iree-cuda-target",
        "--iree-cuda-target-features",
        "--iree-dispatch-creation-experimental-set-data-tiling-ops",
        "--iree-dispatch-creation-opt-level",
        "--iree-dispatch-creation-set-encoding-strategy",
        "--iree-execution-model",
        "--iree-global-opt-demote-contraction-inputs-operations",
        "--iree-global-opt-demote-contraction-inputs-type",
        "--iree-global-opt-set-encoding-strategy",
        "--iree-global-optimization-opt-level",
        "--iree-gpu-test-target",
        "--iree-hal-default-device",
        "--iree-hal-executable-debug-level",
        "--iree-hal-local-host-device-backends",
        "--iree-hal-local-target-device-backends",
        "--iree-hal-target-backends",
        "--iree-hal-target-device",
        "--iree-hip-enable-ukernels",
        "--iree-hip-encoding-layout-resolver",
        "--iree-hip-target",
        "--iree-hip-target-features",
        "--iree-input-type",
        "--iree-llvmcpu-enable-llvm-ukernels",
        "--iree-llvmcpu-enable-ukernels",
        "--iree-llvmcpu-mlir-opt-level",
        "--iree-llvmcpu-target-abi",
        "--iree-llvmcpu-target-cpu",
        "--iree-llvmcpu-target-cpu-features",
        "--iree-llvmcpu-target-data-layout",
        "--iree-llvmcpu-target-float-abi",
        "--iree-llvmcpu-target-triple",
        "--iree-llvmcpu-vector-pproc-strategy",
        "--iree-llvmcpu-vscale-range",
        "--iree-llvmgpu-set-workgroup-distribution-along",
        "--iree-metal-target-platform",
        "--iree-opt-level",
        "--iree-rocm-enable-ukernels",
        "--iree-rocm-encoding-layout-resolver",
        "--iree-rocm-target",
        "--iree-rocm-target-features",
        "--iree-rocm-waves-per-eu",
        "--iree-scheduling-initialization-mode",
        "--iree-stream-partitioning-favor",
        "--iree-stream-resource-memory-model",
        "--iree-vm-bytecode-module-output-format",
        "--iree-vm-emit-polyglot-zip",
        "--iree-vmvx-enable-microkernels",
        "--iree-vulkan-dispatch-abi",
        "--iree-vulkan-target",
        "--iree-vulkan-target-env",
        "--iree-vulkan-target-features",
        "--iree-vulkan-target-triple",
        "--params-scope",
    }
)
"""Options whose value is not a file.

It is one of a few words, a target or a list of features.
"""

_TOOL_OPTIONS = frozenset({"--iree-cuda-use-ptxas", "--iree-metal-compile-to-metallib"})
"""Options that make the compiler start a program of this machine, unless set to off."""
_TRIPLE = (  # of WebAssembly: linked by a program of this machine
    "--iree-llvmcpu-target-triple"
)
_EMBEDDED = "--iree-llvmcpu-link-embedded"
OFF = ("false", "0", "FALSE", "False")
_NUMBER = re.compile(r"[+-]?[0-9][0-9.xXa-fA-F]*")
_TRUTHS = ("", "true", "TRUE", "True", *OFF)


def kind_of(flag: str) -> Kind:
    """Return what the value of a flag names.

    Booleans and numbers name no file. The exceptions make the compiler start a
    linker or an assembler of this machine.
    """
    option, equals, value = flag.partition("=")
    if option in PATH_OPTIONS or option in IMPORT_PATH_OPTIONS:
        return "paths"
    is_off = value in OFF
    if option == _EMBEDDED:
        if is_off:
            return "unknown"
        return "nothing"
    if option == _TRIPLE and value.startswith("wasm"):
        return "unknown"
    if option in _TOOL_OPTIONS:
        if is_off:
            return "nothing"
        return "unknown"
    if option in _PLAIN_OPTIONS or not equals or value in _TRUTHS:
        return "nothing"
    if _NUMBER.fullmatch(value):
        return "nothing"
    return "unknown"


def paths_in(flag: str) -> tuple[str, ...]:
    """Return the pieces of a flag's value that may each be a path.

    The whole value is among them.
    """
    option, _, value = flag.partition("=")
    signs = PATH_OPTIONS.get(option, "")
    pieces = [value]
    for sign in signs:
        for piece in tuple(pieces):
            pieces += _parts(piece, sign)
    return tuple(filter(None, dict.fromkeys(pieces)))


def _parts(piece: str, sign: str) -> list[str]:
    if sign == "=":
        return [piece.partition(sign)[2]]
    if sign == "@":
        return [piece.rpartition(sign)[0]]
    return piece.split(sign)


def with_paths(flag: str, path_of: Mapping[str, str]) -> str:
    """Return the flag with its paths replaced.

    `path_of`: a path as it is written → another one.
    """
    option, equals, value = flag.partition("=")
    signs = PATH_OPTIONS.get(option, IMPORT_PATH_OPTIONS.get(option, ""))
    return f"{option}{equals}{_replaced(value, signs, path_of)}"


def _replaced(value: str, signs: str, path_of: Mapping[str, str]) -> str:
    if value in path_of:
        return path_of[value]
    if "," in signs and "," in value:
        parts = value.split(",")
        return ",".join(_replaced(part, signs, path_of) for part in parts)
    if "=" in signs and "=" in value:
        name, _, path = value.partition("=")
        return f"{name}={path_of.get(path, path)}"
    if "@" in signs and "@" in value:
        path, _, entry = value.rpartition("@")
        return f"{path_of.get(path, path)}@{entry}"
    return value
