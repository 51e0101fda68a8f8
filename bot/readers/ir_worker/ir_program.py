"""Read one model's target-independent IR.

This is the worker's answer to the request `program`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .ir_answers import Answers
from .ir_component import component_of
from .ir_contents import contents
from .ir_families import families
from .ir_kinds import PLAIN, collect, is_linalg, name_of
from .ir_launches import stream
from .ir_members import read
from .ir_text import generic, hexadecimal, without_names
from .ir_walk import Answer, entry_point_of, tops_of


def program(answers: Answers, files: Mapping[str, str]) -> Answer:
    """Return the answer; only one module at a time is in memory.

    `files` has the paths of `dispatch_creation` and `stream`, and of `input`,
    `global_optimization` and `flow` if they exist.
    """
    phases: dict[str, str] = {}
    answer: Answer = {
        **answers.about(files["dispatch_creation"], _regions),
        **answers.about(files["stream"], stream),
        "phases": phases,
        "operations": None,
        "places": {},
        "linalg_ops_unfused": None,
        "sources": [],
        "sites": [],
        "families": None,
    }
    for phase, question in (("input", _model), ("global-optimization", _unfused)):
        path = files.get(phase.replace("-", "_"))
        if path is not None:
            said = answers.about(path, question)
            phases[phase] = said["digest"]
            answer |= said["facts"]
    if files.get("flow") is not None:
        answer |= answers.about(files["flow"], _flow)
    return answer


def _model(ir: Any, module: Any) -> Answer:
    return {"digest": _digest(module), "facts": contents(ir, module)}


def _unfused(ir: Any, module: Any) -> Answer:
    facts = {"linalg_ops_unfused": len(collect(ir, module, is_linalg))}
    return {"digest": _digest(module), "facts": facts}


def _regions(ir: Any, module: Any) -> Answer:
    regions = collect(ir, module, ("flow.dispatch.workgroups",))
    inside = sum(len(collect(ir, region, is_linalg)) for region in regions)
    return {"dispatch_regions": len(regions), "linalg_ops": inside}


def _flow(ir: Any, module: Any) -> Answer:
    """Return `sources` and `sites`, both in the program's order, and `families`."""
    sources = []
    for executable in collect(ir, module, ("flow.executable",)):
        functions = collect(ir, executable, ("func.func",))
        named = [
            *functions,
            *collect(ir, executable, ("flow.executable.export",)),
            executable,
        ]
        own_names = set(map(name_of, named))
        generic_text = "\n".join(map(generic, functions))
        shown_text = "\n".join(function.get_asm(**PLAIN) for function in functions)
        sources.append(
            {
                "executable": name_of(executable),
                "generic": without_names(generic_text, own_names),
                "shown": without_names(shown_text, own_names),
            }
        )
    sites = list[Answer]()
    for top in tops_of(ir, module):
        if top.name == "flow.executable":
            continue
        for op in collect(ir, top, ("flow.dispatch",)):
            sites.append(
                {
                    "entry_point": entry_point_of(op)[-1],
                    "component": component_of(str(op.location)),
                    "initializer": top.name == "util.initializer",
                }
            )
    found_families: list[Answer] | None
    try:
        found_families = families(ir, list(read(ir, module)[0].values()))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        # Another release writes it otherwise: all else does not need it.
        found_families = None
    return {"sources": sources, "sites": sites, "families": found_families}


def _digest(module: Any) -> str:
    """Digest all functions and data of a module, without its devices.

    The module is printed as a whole: printing an operation of it takes as long. The
    module's own lines, which have its attributes, are those that are not indented.
    """
    lines = []
    for line in generic(module.operation).split("\n"):
        is_device = line.startswith('  "util.global"') and "type = !hal.device" in line
        if line.startswith(" ") and not is_device:
            lines.append(line)
    return hexadecimal("\n".join(lines))
