"""Occupancy of a GPU, as far as registers limit it.

Only devices whose numbers their makers publish are here. Workgroup memory and the size
of a workgroup can lower the occupancy further, so a result is an upper bound.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bot.core.backends import AMD, NVIDIA

_WARP = 32  # threads of a warp
_SM_REGISTERS = 65_536  # 32-bit registers of one multiprocessor
_WARP_STEP = 256  # registers are given to a warp in steps of this many
_WARPS_TOGETHER = 4  # warps get registers in groups, one for each scheduler
_MOST_WARPS = {
    "sm_70": 64,
    "sm_72": 64,
    "sm_75": 32,
    "sm_80": 64,
    "sm_86": 48,
    "sm_87": 48,
    "sm_89": 48,
    "sm_90": 64,
    "sm_90a": 64,
}
"""Compute capability → most warps of a multiprocessor.

Source: CUDA C++ Programming Guide, technical specifications.
"""
_SIMD_REGISTERS = 512  # vector registers of one lane of a SIMD unit
_WAVE_STEP = 8  # vector registers are given to a wave in steps of this many
_MOST_WAVES = 8
_UNIFIED = ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")
"""AMD processors with one file for vector and accumulation registers.

Source: the numbers are those of LLVM's AMDGPU backend.
"""
_TARGET = {
    NVIDIA: re.compile(r"--iree-cuda-target=(\S+)"),
    AMD: re.compile(r"--iree-(?:rocm|hip)-target=([^\s:]+)"),
}


class Occupancy(NamedTuple):
    """The most groups of threads that registers allow at the same time, of how many."""

    groups: int
    most: int
    noun: str  # what a group is called, with the unit that holds the groups


def device_of(backend: str, command: str) -> str:
    """Return the device that a build's command names (`sm_80`); empty without one."""
    pattern = _TARGET.get(backend)
    if pattern is None:
        return ""
    names: list[str] = pattern.findall(command)
    if not names:
        return ""
    return names[-1].strip("'\"")


def occupancy(device: str, registers: int) -> Occupancy | None:
    """Return the occupancy of an entry point by its registers.

    Return None for a device without exact numbers.

    CUDA: `floor(65536 / (ceil(32 r / 256) · 256))`, rounded down to groups of four
    warps. AMD since gfx90a: `floor(512 / (ceil(r / 8) · 8))` waves of a SIMD unit.
    """
    if registers < 1:
        return None
    if device in _MOST_WARPS:
        of_warp = _rounded_up(_WARP * registers, _WARP_STEP)
        warps = _SM_REGISTERS // of_warp // _WARPS_TOGETHER * _WARPS_TOGETHER
        most = _MOST_WARPS[device]
        return Occupancy(min(warps, most), most, "warps of a multiprocessor")
    if device in _UNIFIED:
        waves = _SIMD_REGISTERS // _rounded_up(registers, _WAVE_STEP)
        return Occupancy(min(waves, _MOST_WAVES), _MOST_WAVES, "waves of a SIMD unit")
    return None


def _rounded_up(count: int, step: int) -> int:
    return -(-count // step) * step
