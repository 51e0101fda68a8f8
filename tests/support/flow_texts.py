"""Programs at the end of the flow phase, written by hand: executables, and what launches them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

COUNT = "iree_tensor_ext.dispatch.workgroup_count_from_slice"


def _bound(access: str, type_: str) -> str:
    return f"!iree_tensor_ext.dispatch.tensor<{access}:{type_}>"


def loaded(value: str, argument: str, type_: str, access: str = "readonly") -> str:
    """All of an argument."""
    operands = f"{argument}, {_whole(type_)} : {_bound(access, type_)}"
    return (
        f"      {value} = iree_tensor_ext.dispatch.tensor.load {operands} -> {type_}\n"
    )


def stored(value: str, argument: str, type_: str, access: str = "writeonly") -> str:
    """A value becomes all of a result."""
    operands = f"{value}, {argument}, {_whole(type_)} : {type_}"
    return (
        f"      iree_tensor_ext.dispatch.tensor.store {operands} ->"
        f" {_bound(access, type_)}\n"
    )


def _whole(type_: str) -> str:
    sizes = sizes_of(type_)
    zeros, ones = (", ".join([digit] * len(sizes)) for digit in "01")
    return f"offsets = [{zeros}], sizes = [{', '.join(sizes)}], strides = [{ones}]"


def sizes_of(type_: str) -> list[str]:
    """`8`, `6` of `tensor<8x6xi32>`."""
    return type_.removeprefix("tensor<").split("x")[:-1]


class Region(NamedTuple):
    """An executable from tensors to one tensor."""

    name: str
    inputs: Sequence[str]
    result: str
    body: str  # from `%x0`, `%x1`, which are loaded, to `%y`, which is stored
    # arguments behind the tensors, as (name, type)
    extra: Sequence[tuple[str, str]] = ()
    tied: bool = False  # True where the result takes the place of `%x0`
    counting: str = f"      %x, %y, %z = {COUNT}()\n"  # what counts the workgroups
    entry: str = ""

    @property
    def symbol(self) -> str:
        """Of its function."""
        return self.entry or f"{self.name}_entry"

    @property
    def text(self) -> str:
        """The executable."""
        access = "readwrite" if self.tied else "readonly"
        kinds = [access, *["readonly"] * len(self.inputs)]
        arguments = [
            f"%a{index}: {_bound(kinds[index], type_)}"
            for index, type_ in enumerate(self.inputs)
        ]
        arguments += [f"{name}: {type_}" for name, type_ in self.extra]
        arguments += [] if self.tied else [f"%out: {_bound('writeonly', self.result)}"]
        loads = "".join(
            loaded(f"%x{index}", f"%a{index}", type_, kinds[index])
            for index, type_ in enumerate(self.inputs)
        )
        store = stored(
            "%y",
            "%a0" if self.tied else "%out",
            self.result,
            "readwrite" if self.tied else "writeonly",
        )
        return f"""
  flow.executable private @"{self.name}" {{
    flow.executable.export public @"{self.symbol}" workgroups() -> (index, index, index) {{
{self.counting}      flow.return %x, %y, %z : index, index, index
    }}
    builtin.module {{
      func.func @"{self.symbol}"({", ".join(arguments)}) {{
{loads}{self.body}{store}      return
      }}
    }}
  }}"""

    def launch(self, result: str, values: Sequence[str]) -> str:
        """A site."""
        types = ", ".join([*self.inputs, *(type_ for _, type_ in self.extra)])
        out = values[0] if self.tied else self.result
        called = f'flow.dispatch @"{self.name}"::@"{self.symbol}"({", ".join(values)})'
        return f"    {result} = {called} : ({types}) -> {out}\n"


def program(header: str, regions: Iterable[Region], additions: str = "") -> str:
    """Each region launched once, on inputs of its own; all results are given.

    `header`: the module's attributes and its device, as the compiler writes them for a
    target; `additions`: sites and executables beside them.
    """
    called = list(regions)
    arguments = []
    body = ""
    results = []
    for index, region in enumerate(called):
        for number, type_ in enumerate(region.inputs):
            name = f"%b{index}_{number}"
            arguments.append(f"{name}: !hal.buffer_view")
            body += (
                f'    %v{index}_{number} = hal.tensor.import {name} "{name}" :'
                f" !hal.buffer_view -> {type_}\n"
            )
        body += region.launch(
            f"%r{index}",
            [f"%v{index}_{number}" for number in range(len(region.inputs))],
        )
        body += (
            f'    %o{index} = hal.tensor.export %r{index} "o{index}" : {region.result} ->'
            " !hal.buffer_view\n"
        )
        results.append(f"%o{index}")
    views = ", ".join(["!hal.buffer_view"] * len(results))
    ended = (
        f"    util.return {', '.join(results)} : {views}\n"
        if results
        else "    util.return\n"
    )
    texts = "".join(region.text for region in called)
    public = (
        f"\n  util.func public @main({', '.join(arguments)}) -> ({views}) attributes"
        " {iree.abi.stub} {"
    )
    return f"{header}{texts}{additions}{public}\n{body}{ended}  }}\n}}\n"
