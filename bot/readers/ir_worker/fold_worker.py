"""Folds executables of a program at the end of the flow phase, with the compiler's own MLIR bindings.

A stand-alone script (`python fold_worker.py WHEEL_ROOT`) that answers all that `bot/readers/ir_worker/ir_worker.py`
does, and beside that, one JSON object per line:

    {"op": "groups", "flow": PATH}
        → {"entries": {executable: its entry point},
           "elements": {executable: those of the largest tensor that it takes or gives},
           "unfit": {executable: why it cannot be folded},
           "groups": {"identical", "constants", "offsets", "static-shapes": [[executable, two or more]]}: executables
           that differ in nothing but what the level and those before it allow,
           "classes": {"constants", "shapes", "both": how many kinds of executables there are where that is erased}}
    {"op": "fold", "flow": PATH, "out": PATH, "groups": [[executable]]}
        → {"folded": [{"members": [executable], "operands": [type]}],
           "left": [{"members": [executable], "why": text}], "executables": how many there are now}:
           `out` has the program with each group made one, verified; where nothing was folded, the very text of `flow`
    a program that does not verify → {"error": "one line with the operation that broke"}
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_worker
    from bot.readers.ir_worker.fold_rewrite import executables, fold
    from bot.readers.ir_worker.ir_members import LEVELS, SHAPE, Member, Unfit, member_of, partition, read
else:
    import ir_worker
    from fold_rewrite import executables, fold
    from ir_members import LEVELS, SHAPE, Member, Unfit, member_of, partition, read

Answer = dict[str, Any]


class Folder(ir_worker.Worker):
    """Answers what the reader of IR does, and folds."""

    def __init__(self, ir: Any) -> None:
        super().__init__(ir)
        self.answers.update(groups=self.groups, fold=self.fold)

    def groups(self, request: Answer) -> Answer:
        """Which executables could become one."""
        module = self._load(request["flow"])
        members, unfit = read(module)
        every = list(members.values())
        erased = {"constants": {"constant"}, "shapes": {"offset", "dimension"}, "both": LEVELS["static-shapes"]}
        return {
            "entries": {member.name: member.entry for member in every},
            "elements": {member.name: _elements(member) for member in every},
            "unfit": unfit,
            "groups": {
                level: [[member.name for member in group] for group in partition(every, free) if len(group) > 1]
                for level, free in LEVELS.items()
            },
            "classes": {
                name: len({member.key(frozenset(free)) for member in every}) + len(unfit)
                for name, free in erased.items()
            },
        }

    def fold(self, request: Answer) -> Answer:
        """Make each group one, and write the program; raises ValueError with the operation that broke."""
        text = Path(request["flow"]).read_bytes()
        module = self._module(text)
        members, unfit = read(module)
        folded, left = [], []
        for names in request["groups"]:
            try:
                if unknown := [name for name in names if name not in members]:
                    raise Unfit(unfit.get(unknown[0], "the program has no such executable"))
                group = [members[name] for name in names]
                folded.append({"members": names, "operands": fold(self.ir, module, group)})
                members = {name: member for name, member in members.items() if name not in names}
                members[names[0]] = member_of(group[0].executable)
            except Unfit as error:
                left.append({"members": names, "why": str(error)})
        if folded:
            try:
                module.operation.verify()
            except self.ir.MLIRError as error:
                raise ValueError("; ".join(str(one.message) for one in error.error_diagnostics[:3])) from None
            text = module.operation.get_asm(enable_debug_info=True).encode()
        Path(request["out"]).write_bytes(text)
        return {"folded": folded, "left": left, "executables": executables(module)}


def _elements(member: Member) -> int:
    """How many the largest tensor has that the function takes or gives, dynamic dimensions counted as 1."""
    types = [str(argument.type) for argument in member.function.regions[0].blocks[0].arguments]
    shapes = (SHAPE.search(type_) for type_ in types)
    return max((prod(int(size) for size in one[2][:-1].split("x") if size != "?") for one in shapes if one), default=1)


if __name__ == "__main__":
    sys.exit(ir_worker.main(sys.argv[1], Folder))
