"""bot.core.occupancy: known values of the makers' own calculators, and no value without exact numbers."""

from __future__ import annotations

import pytest

from bot.core.backends import AMD, NVIDIA
from bot.core.occupancy import device_of, occupancy


@pytest.mark.parametrize(
    ("device", "registers", "groups", "most_groups"),
    [
        ("sm_80", 16, 64, 64),
        ("sm_80", 32, 64, 64),
        ("sm_80", 33, 48, 64),
        ("sm_80", 40, 48, 64),
        ("sm_80", 64, 32, 64),
        ("sm_80", 65, 28, 64),
        ("sm_80", 128, 16, 64),
        ("sm_80", 255, 8, 64),
        ("sm_75", 64, 32, 32),
        ("sm_86", 32, 48, 48),
        ("gfx942", 1, 8, 8),
        ("gfx942", 64, 8, 8),
        ("gfx942", 65, 7, 8),
        ("gfx942", 80, 6, 8),
        ("gfx942", 96, 5, 8),
        ("gfx942", 128, 4, 8),
        ("gfx90a", 168, 3, 8),
        ("gfx90a", 256, 2, 8),
        ("gfx90a", 512, 1, 8),
    ],
)
def test_registers_allow_as_many_groups_as_the_makers_say(
    device: str, registers: int, groups: int, most_groups: int
) -> None:
    result = occupancy(device, registers)
    assert result is not None
    assert (result.groups, result.most) == (groups, most_groups)


@pytest.mark.parametrize("device", ["", "gfx1100", "gfx908", "sm_52", "ampere"])
def test_a_device_without_exact_numbers_has_no_occupancy(device: str) -> None:
    assert occupancy(device, 64) is None


def test_an_entry_point_without_registers_has_no_occupancy() -> None:
    assert occupancy("sm_80", 0) is None


@pytest.mark.parametrize(
    ("backend", "command", "device"),
    [
        (NVIDIA, "iree-compile - --iree-cuda-target=sm_80 -o a.vmfb", "sm_80"),
        (NVIDIA, "x --iree-cuda-target=sm_80 --iree-cuda-target=sm_90 -o a", "sm_90"),
        (AMD, "iree-compile - --iree-rocm-target=gfx942 -o a.vmfb", "gfx942"),
        (AMD, "iree-compile - --iree-hip-target=gfx942:xnack+ -o a", "gfx942"),
        (AMD, "iree-compile - -o a.vmfb", ""),
        ("vmvx", "iree-compile - --iree-cuda-target=sm_80", ""),
    ],
)
def test_the_command_names_the_device(backend: str, command: str, device: str) -> None:
    assert device_of(backend, command) == device
