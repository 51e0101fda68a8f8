"""The configuration that the compiler chose for each function, as one line of text.

Imports the standard library only, for the reason that `ir_kinds` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.readers.ir_worker import ir_kinds
else:
    import ir_kinds  # the script's own folder is first on sys.path

_SEPARATOR = " | "
_NEVER_CONFIGURED = ("arith.", "math.", "util.", "hal.", "linalg.yield", "linalg.index", "tensor.empty")
"""Most operations are of these: asking each for its attributes would take most of the time."""
_WHOLE_WRAPPER = re.compile(r"#[\w.]+\.(?:translation_info|lowering_config|compilation_info)<(.*)>", re.DOTALL)
_PIPELINE = re.compile(r"^pipeline = (?:#[\w.]+\.\w*pipeline<(\w+)>|#[\w.]+\.(\w+)(?![\w<])|)")
_FORMER_NAME = re.compile(r"^(?:CPU|LLVMGPU|SPIRV)(?=[A-Z])")
_FORMER_VMVX = "VMVXDefault"
"""Up to 3.12.0 a pipeline's name began with its backend's: renaming it is no other choice."""
_DIALECT = re.compile(r"#iree_\w+\.(?=\w)")


def strategies(ir: Any, module: Any) -> dict[str, str]:
    """Function → `pipeline, sizes and options | configuration of an operation | …`, each configuration once.

    The functions of `hal.executable.variant`s that have a `translation_info` (`9.executable-configurations`); one
    that several variants configure differently has all of it.
    """
    texts: dict[str, dict[str, None]] = {}
    for variant in ir_kinds.collect(ir, module, ("hal.executable.variant",)):
        # Walks give inner operations first: those before a function, since the last one, are its own.
        configurations: dict[str, None] = {}
        for op in ir_kinds.collect(ir, variant, lambda name: not name.startswith(_NEVER_CONFIGURED)):
            configurations.update(dict.fromkeys(_configurations(op)))
            if op.name == "func.func":
                if "translation_info" in op.attributes:
                    text = _SEPARATOR.join([_translation(str(op.attributes["translation_info"])), *configurations])
                    texts.setdefault(op.attributes["sym_name"].value, {})[" ".join(text.split())] = None
                configurations = {}
    return {name: " || ".join(each) for name, each in texts.items()}


def _configurations(op: Any) -> Iterator[str]:
    attributes = op.attributes
    for number in range(len(attributes)):
        named = attributes[number]
        name = named.name
        if name == "lowering_config":
            yield _short(str(named.attr))
        elif name == "compilation_info" or name.endswith(("config", "strategy")):
            yield f"{name} = {_short(str(named.attr))}"


def _translation(attribute: str) -> str:
    """`DoubleTilingExpert {enable_loop_peeling}` of `#iree_codegen.translation_info<pipeline = …>`."""
    wrapper = _WHOLE_WRAPPER.fullmatch(attribute)
    inner = _PIPELINE.sub(lambda match: match[1] or match[2] or "", wrapper[1] if wrapper else attribute, count=1)
    inner = _FORMER_NAME.sub("", inner.replace(_FORMER_VMVX, "vmvx_pipeline", 1), count=1)
    return _DIALECT.sub("", inner).replace(", {", " {", 1)


def _short(attribute: str) -> str:
    """A configuration without the wrapper that all have and without the names of dialects; nothing else is lost."""
    wrapper = _WHOLE_WRAPPER.fullmatch(attribute)
    return _DIALECT.sub("", wrapper[1] if wrapper else attribute)
