"""The metrics of a whole program: what its IR and the compiler's own statistics say of it."""

from __future__ import annotations

from bot.readers.parsed import Known, Parsed, listed_entries

OF_PROGRAM = ("dispatch_regions", "linalg_ops", "memory_bound_sites", "initializer_sites", "steady_sites")
OF_SCHEDULE = ("variable_bytes", "dynamic_buffers", "program_memory_bytes")
NO_SCHEDULE = "the program's schedule was not read"
NOT_COUNTED = "this release does not count them"
WHY_UNKNOWN = {
    "variable_bytes": "only a run tells the size of a variable",
    "program_memory_bytes": "memory is allocated in a branch or a loop",
}
"""What the schedule may not know, and why."""


def program_metrics(parsed: Parsed) -> dict[str, Known]:
    """Those of the whole program, each by two sources where there are two."""
    program, statistics = parsed.products.program, parsed.statistics

    def of_program(name: str) -> Known:
        return Known(None, parsed.reason("program")) if program is None else Known(getattr(program, name))

    def of_schedule(name: str) -> Known:
        schedule = program.schedule if program else None
        if schedule is None:
            return Known(None, parsed.reason("program") if program is None else NO_SCHEDULE)
        return Known(getattr(schedule, name), WHY_UNKNOWN.get(name, ""))

    def agreed(known: Known, name: str) -> Known:
        if statistics is None and parsed.products.statistics is not None:
            return Known(None, parsed.reason("statistics"))
        return _agreed(known, getattr(statistics, name) if statistics else None, "the compiler's statistics")

    entry_points = of_program("entry_points")
    if program is not None:
        entry_points = Known(len(program.entry_points))
    return {
        **{name: of_program(name) for name in OF_PROGRAM},
        **{name: agreed(of_program(name), name) for name in ("dispatch_sites", "executables")},
        **{name: of_schedule(name) for name in OF_SCHEDULE},
        **{name: agreed(of_schedule(name), name) for name in ("fills", "copies", "awaits", "submissions")},
        "transient_memory_bytes": agreed(of_schedule("allocated_bytes"), "allocated_bytes"),
        "constant_bytes": agreed(Known(None, NOT_COUNTED), "constant_bytes"),
        "entry_points": _agreed(entry_points, listed_entries(parsed.artifact), "the artifact"),
    }


def _agreed(known: Known, said: int | None, who: str) -> Known:
    """What the program's IR and another source say, if they do not contradict each other."""
    if said is None or known.value == said:
        return known
    if known.value is None:
        return Known(said)
    return Known(None, f"the program's IR has {known.value}, {who} {said}")
