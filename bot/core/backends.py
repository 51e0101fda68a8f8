"""The table of target backends.

A new one is a row here, and a target in `configs/default.yml`. A backend that is not in
it, such as a plugin's, is measured as far as its output can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bot.core.record import Small


class Backend(Small, frozen=True):
    """One of the compiler's `--iree-hal-target-backends`."""

    name: str
    # what a compile takes, relative to llvm-cpu on x86-64; measured on the 13 models of
    # the suite
    cost: float = 1.0
    # what its artifacts hold in place of machine code, which the device's own compiler
    # makes; empty if they hold the code itself
    text_form: str = ""
    # why its entry points have no machine frame; empty if they have
    no_frames: str = ""
    # why they have no workgroup memory; empty if they have
    no_workgroup_memory: str = ""
    # True if the compiler itself limits the stack allocations of a function
    has_stack_gate: bool = False
    # what its code can be run on
    runs_on: Literal[
        "its device", "a processor with this architecture", "any processor"
    ] = "its device"


AMD = "rocm"
NVIDIA = "cuda"
_HOST = "the target has no workgroup memory"
_BYTECODE = "bytecode has no machine frames"
_OF_DEVICE = "the device's own compiler makes the frames"

BACKENDS: tuple[Backend, ...] = (
    Backend(
        "llvm-cpu",
        no_workgroup_memory=_HOST,
        has_stack_gate=True,
        runs_on="a processor with this architecture",
    ),
    Backend("vulkan-spirv", 1.1),
    Backend(NVIDIA, 1.2, text_form="PTX text"),
    Backend(AMD, 1.9),
    Backend("metal-spirv", 0.8, text_form="shader source", no_frames=_OF_DEVICE),
    Backend(
        "vmvx",
        0.5,
        no_frames=_BYTECODE,
        no_workgroup_memory=_HOST,
        runs_on="any processor",
    ),
    Backend(
        "vmvx-inline",
        no_frames=_BYTECODE,
        no_workgroup_memory=_HOST,
        runs_on="any processor",
    ),
)

BACKEND_BY_NAME: dict[str, Backend] = {backend.name: backend for backend in BACKENDS}


def backend_of(name: str) -> Backend:
    """Return the row of a backend; an empty row if the table has none."""
    return BACKEND_BY_NAME.get(name) or Backend(name)


_OPTION_BEGINNINGS = {
    "--iree-llvmcpu-": "llvm-cpu",
    "--iree-cuda-": NVIDIA,
    "--iree-hip-": AMD,
    "--iree-rocm-": AMD,
    "--iree-vulkan-": "vulkan-spirv",
    "--iree-metal-": "metal-spirv",
    "--iree-vmvx-": "vmvx",
}
"""How the compiler options of one backend begin."""


def backend_of_option(option: str) -> str | None:
    """Return the only backend that an option is for; None if it is for any."""
    for beginning, backend in _OPTION_BEGINNINGS.items():
        if option.startswith(beginning):
            return backend
    return None


def backends_of(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, str]:
    """Return target → its backend, for the targets of both sides."""
    return {**base, **head}
