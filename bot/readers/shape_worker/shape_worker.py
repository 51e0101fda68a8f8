"""Constrains the dynamic dimensions of a model's inputs, with the compiler's own MLIR bindings.

A stand-alone script (`python shape_worker.py WHEEL_ROOT`) that answers all that `bot/readers/ir_worker/ir_worker.py`
does, and beside that, one JSON object per line:

    {"op": "constrain", "model": PATH, "out": PATH, "constraint": CONSTRAINT,
     "dimensions": [[input, dimension]] or null}
        → {"dimensions": [[input, dimension]], "refused": null}: `out` has the model, verified, with these constrained
        → {"dimensions": [], "refused": "one line"} where that cannot be said of this model; there is no `out` then

CONSTRAINT is `{"kind": "dynamic"}` (the very bytes of the model), `{"kind": "static", "size"}`,
`{"kind": "range", "min", "max"}` or `{"kind": "divisible", "by", "min", "max"}`. Inputs and dimensions count from 0;
without `dimensions` all that are dynamic are constrained, each for itself: that two of them are one is nothing that a
constraint says. The results of a static model have the types that they had where the operations are builtin ones.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "ir_worker"))

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_worker
    from bot.readers.shape_worker.shape_inputs import Refused, chosen, entry
    from bot.readers.shape_worker.shape_rewrite import Rewriter
else:
    import ir_worker
    from shape_inputs import Refused, chosen, entry
    from shape_rewrite import Rewriter

Answer = dict[str, Any]


class Shaper(ir_worker.Worker):
    """Answers what the reader of IR does, and constrains."""

    def __init__(self, ir: Any) -> None:
        super().__init__(ir)
        self._passes = importlib.import_module("iree.compiler.passmanager")
        self.answers.update(constrain=self.constrain)

    def constrain(self, request: Answer) -> Answer:
        """Write the model with its dimensions constrained, or say why it has none that could be."""
        text = Path(request["model"]).read_bytes()
        constraint = request["constraint"]
        module = self._module(text)
        try:
            function, inputs = entry(self.ir, module)
            inputs = chosen(inputs, request["dimensions"])
            if constraint["kind"] != "dynamic":
                Rewriter(self.ir, self._passes, module, function).constrain(inputs, constraint)
                text = f"{module.operation.get_asm(enable_debug_info=True)}\n".encode()
        except Refused as error:
            return {"dimensions": [], "refused": str(error)}
        Path(request["out"]).write_bytes(text)
        return {"dimensions": [[one.index, place] for one in inputs for place in one.dynamic], "refused": None}


if __name__ == "__main__":
    sys.exit(ir_worker.main(sys.argv[1], Shaper))
