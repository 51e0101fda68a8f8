"""The target of a suite's module, read from its compiler flags: the backend, and a name made of it and the chip.

What the options mean is in IREE's documentation of deployment configurations (https://iree.dev/guides/).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from bot.core.backends import BACKENDS, backend_of
from bot.core.values.planned import Target

_BACKENDS = "--iree-hal-target-backends"
_DEVICE = "--iree-hal-target-device"
_LOCAL = "--iree-hal-local-target-device-backends"
_BACKEND_OF = {device: backend.name for backend in BACKENDS for device in backend.devices}
"""Device, or alias of one → the backend that makes code for it."""
_HOSTS = tuple(backend.name for backend in BACKENDS if backend.devices and backend.runs_on != "its device")
_CPU_TRIPLE, _CPU = "--iree-llvmcpu-target-triple", "--iree-llvmcpu-target-cpu"
_CPU_FEATURES = "--iree-llvmcpu-target-cpu-features"
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 80
PREFIX = "suite-"
"""Keeps a suite's target apart from a target of the configuration with the name that it would have."""


def suite_target(flags: Sequence[str], taken: Collection[str]) -> Target:
    """The target that these flags are all of; ValueError with one line for the user where they name none, or several.

    Args:
        taken: names of other targets.
    """
    given: dict[str, list[str]] = {}
    for flag in flags:
        option, _, value = flag.partition("=")
        given.setdefault(option, []).append(value)
    backend = _backend(given)
    name = "-".join([backend, *_chip(backend, {option: values[-1] for option, values in given.items()})])
    name = _OTHER.sub("-", name)[:_LONGEST].strip("-")
    return Target(f"{PREFIX}{name}" if name in taken else name, backend, tuple(flags), whole=True)


def _backend(given: dict[str, list[str]]) -> str:
    """The one backend; a device of the machine itself says which in an option of its own."""
    devices = [
        value for option in (_BACKENDS, _DEVICE) for value in ",".join(given.get(option, ())).split(",") if value
    ]
    if len(set(devices)) > 1:
        raise ValueError(f"names several devices, {' and '.join(map(repr, devices[:3]))}: one module is one cell")
    if not devices:
        raise ValueError(f"names no device: {_DEVICE}=hip, or another")
    device = re.sub(r"\[\d+\]$", "", devices[0])
    if device != "local":
        if device not in _BACKEND_OF:
            raise ValueError(f"the device {device[:40]!r} is not known, known are {', '.join(_BACKEND_OF)} and local")
        return _BACKEND_OF[device]
    backends = given.get(_LOCAL, [""])[-1]
    if backends not in _HOSTS:
        raise ValueError(f"names the device 'local' without one backend: {_LOCAL}={', or '.join(_HOSTS)}")
    return backends


def _chip(backend: str, values: dict[str, str]) -> list[str]:
    """What else tells targets of a backend apart; empty where nothing does."""
    if backend == "llvm-cpu":
        architecture = values.get(_CPU_TRIPLE, "").partition("-")[0]
        host = "host" if values.get(_CPU_FEATURES) == "host" else ""
        return [part for part in (architecture, values.get(_CPU, "") or host) if part]
    return [values[option] for option in backend_of(backend).chips if values.get(option)][-1:]
