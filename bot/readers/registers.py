"""Registers and what did not fit into them: of AMD code objects, and of the machine code that `ptxas` makes.

A value is the largest of all entry points, or for spills the sum of them all, so that one that appears anywhere shows.
Like every metric it is known only where it is known of each entry point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bot.core.backends import AMD, NVIDIA
from bot.core.metrics import METRIC_BY_ID, Metric
from bot.core.values.snapshot import Dispatch
from bot.readers.formats.cubin import MachineCode, Module

OF_CODE_OBJECTS = ("vgprs_max", "sgprs_max", "agprs_max", "vgpr_spills", "sgpr_spills")
OF_MACHINE_CODE = ("registers_max", "spill_bytes", "sass_bytes")
ONLY_AMD = "only the code objects of rocm say how many registers they take"
ONLY_NVIDIA = "only cuda has PTX text that ptxas assembles"
NO_ENTRY = "no entry point is known"

Told = tuple["int | None", str]
"""A value, or None and why."""


def of_code_objects(backend: str, dispatches: Sequence[Dispatch], unread: str) -> dict[str, Told]:
    """The metrics of AMD's registers; `unread` says why code objects could not be read."""
    if backend != AMD:
        return dict.fromkeys(OF_CODE_OBJECTS, (None, ONLY_AMD))
    return {name: _of_all(dispatches, METRIC_BY_ID[name], unread) for name in OF_CODE_OBJECTS}


def _of_all(dispatches: Sequence[Dispatch], metric: Metric, unread: str) -> Told:
    values = {dispatch.name: getattr(dispatch, metric.of_entry) for dispatch in dispatches}
    unknown = [name for name, value in values.items() if value is None]
    if values and not unknown:
        return (max if metric.over == "largest" else sum)(values.values()), ""
    if unread or not unknown:
        return None, unread or NO_ENTRY
    none_at_all = len(unknown) == len(values)
    return None, f"the code objects do not say {metric.of_entry}" if none_at_all else f"not known of {unknown[0]}"


def of_machine_code(backend: str, modules: Sequence[Module] | None, unread: str) -> dict[str, Told]:
    """The metrics of NVIDIA's machine code; `unread` says why there is none."""
    if backend != NVIDIA or modules is None:
        return dict.fromkeys(OF_MACHINE_CODE, (None, ONLY_NVIDIA if backend != NVIDIA else unread))
    functions = [function for module in modules for function in module.functions]
    registers = [function.registers for function in functions if function.registers is not None]
    return {
        "registers_max": (max(registers), "") if registers else (None, NO_ENTRY),
        "spill_bytes": (sum(function.spill_bytes for function in functions), ""),
        "sass_bytes": (sum(module.sass_bytes for module in modules), ""),
    }


def kernels(modules: Iterable[Module]) -> dict[str, MachineCode]:
    """The functions of all modules by name, without names that two modules share."""
    functions = [function for module in modules for function in module.functions]
    counts = Counter(function.name for function in functions)
    return {function.name: function for function in functions if counts[function.name] == 1}
