"""Executables of two that could become one, in forms that the compiler gives no small model: written by hand."""

from __future__ import annotations

from typing import NamedTuple

from flow_texts import Region


def generic(
    value: str, result: str, type_: str, body: str, maps: str = "", kinds: str = ""
) -> str:
    """Each element of a tensor of two dimensions, `%in`, as the body says."""
    same = "affine_map<(d0, d1) -> (d0, d1)>"
    element = type_.rpartition("x")[2].rstrip(">")
    return f"""      {result}_e = tensor.empty() : {type_}
      {result} = linalg.generic {{indexing_maps = [{maps or same}, {same}],
          iterator_types = [{kinds or '"parallel", "parallel"'}]}} ins({value} : {type_}) outs({result}_e : {type_}) {{
      ^bb0(%in: {element}, %before: {element}):
{body}      }} -> {type_}
"""


def adding(
    name: str, amount: int = 3, type_: str = "tensor<8x8xi32>", *, tied: bool = False
) -> Region:
    """Adds a constant."""
    body = f"""        %c = arith.constant {amount} : i32
        %1 = arith.addi %in, %c : i32
        linalg.yield %1 : i32
"""
    return Region(name, [type_], type_, generic("%x0", "%y", type_, body), tied=tied)


def padding(
    name: str, rows: int, low: tuple[int, int], high: tuple[int, int]
) -> Region:
    """Zeros around a matrix."""
    type_ = f"tensor<{rows}x6xi32>"
    out = f"tensor<{rows + low[0] + high[0]}x{6 + low[1] + high[1]}xi32>"
    body = f"""      %zero = arith.constant 0 : i32
      %y = tensor.pad %x0 low[{low[0]}, {low[1]}] high[{high[0]}, {high[1]}] {{
      ^bb0(%i: index, %j: index):
        tensor.yield %zero : i32
      }} : {type_} to {out}
"""
    return Region(name, [type_], out, body)


def expanding(name: str, rows: int, columns: int) -> Region:
    """A vector as a matrix, transposed."""
    type_ = f"tensor<{rows * columns}xi32>"
    wide = f"tensor<{rows}x{columns}xi32>"
    out = f"tensor<{columns}x{rows}xi32>"
    body = f"""      %m = tensor.expand_shape %x0 [[0, 1]] output_shape [{rows}, {columns}] : {type_} into {wide}
      %e = tensor.empty() : {out}
      %y = linalg.transpose ins(%m : {wide}) outs(%e : {out}) permutation = [1, 0]
"""
    return Region(name, [type_], out, body)


def collapsing(name: str, rows: int, columns: int) -> Region:
    """A matrix, transposed, as a vector."""
    type_ = f"tensor<{rows}x{columns}xi32>"
    wide = f"tensor<{columns}x{rows}xi32>"
    out = f"tensor<{rows * columns}xi32>"
    body = f"""      %e = tensor.empty() : {wide}
      %t = linalg.transpose ins(%x0 : {type_}) outs(%e : {wide}) permutation = [1, 0]
      %y = tensor.collapse_shape %t [[0, 1]] : {wide} into {out}
"""
    return Region(name, [type_], out, body)


def slicing(
    name: str,
    size: int,
    offsets: tuple[int, int],
    lengths: tuple[int, int],
    step: int = 1,
) -> Region:
    """A part of a matrix, squared."""
    type_ = f"tensor<{size}x{size}xi32>"
    out = f"tensor<{lengths[0]}x{lengths[1]}xi32>"
    body = (
        f"      %s = tensor.extract_slice %x0[{offsets[0]}, {offsets[1]}] [{lengths[0]}, {lengths[1]}]"
        f" [{step}, 1] : {type_} to {out}\n"
    )
    body += generic(
        "%s",
        "%y",
        out,
        "        %1 = arith.muli %in, %in : i32\n        linalg.yield %1 : i32\n",
    )
    return Region(name, [type_], out, body)


def reducing(name: str, rows: int, columns: int) -> Region:
    """The sum of each row."""
    type_ = f"tensor<{rows}x{columns}xi32>"
    out = f"tensor<{rows}xi32>"
    body = f"""      %zero = arith.constant 0 : i32
      %e = tensor.empty() : {out}
      %f = linalg.fill ins(%zero : i32) outs(%e : {out}) -> {out}
      %y = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
          iterator_types = ["parallel", "reduction"]}} ins(%x0 : {type_}) outs(%f : {out}) {{
      ^bb0(%in: i32, %sum: i32):
        %1 = arith.addi %in, %sum : i32
        linalg.yield %1 : i32
      }} -> {out}
"""
    return Region(name, [type_], out, body)


class Written(NamedTuple):
    """Executables that are one at a level, and the types of the operands that this takes."""

    level: str
    regions: tuple[Region, ...]
    operands: tuple[str, ...] = ()


WRITTEN = {
    "identical": Written("identical", (adding("a"), adding("b"), adding("c"))),
    "tied": Written(
        "constants", (adding("a", 3, tied=True), adding("b", -5, tied=True)), ("i32",)
    ),
    "tied-shapes": Written(
        "static-shapes",
        (adding("a", 3, tied=True), adding("b", -5, "tensor<12x4xi32>", tied=True)),
        ("index", "index", "i32"),
    ),
    "expand": Written(
        "static-shapes", (expanding("a", 4, 16), expanding("b", 6, 10)), ("index",) * 3
    ),
    "collapse": Written(
        "static-shapes",
        (collapsing("a", 4, 16), collapsing("b", 6, 10)),
        ("index",) * 3,
    ),
    "slice-place": Written(
        "offsets",
        (slicing("a", 16, (0, 3), (8, 4)), slicing("b", 16, (5, 2), (8, 4))),
        ("index",) * 2,
    ),
    "slice-step": Written(
        "offsets",
        (
            slicing("a", size=16, offsets=(0, 3), lengths=(4, 4), step=2),
            slicing("b", size=16, offsets=(0, 3), lengths=(4, 4), step=3),
        ),
        ("index",),
    ),
    "slice-size": Written(
        "static-shapes",
        (slicing("a", 16, (0, 3), (8, 4)), slicing("b", 16, (0, 3), (6, 7))),
        ("index",) * 2,
    ),
    "slice-all": Written(
        "static-shapes",
        (
            slicing("a", 16, (0, 3), (8, 4)),
            slicing("b", size=20, offsets=(5, 1), lengths=(6, 7), step=2),
        ),
        ("index",) * 6,
    ),
    "sums": Written(
        "static-shapes", (reducing("a", 16, 24), reducing("b", 8, 40)), ("index",) * 2
    ),
    "names": Written(
        "constants",
        (
            adding("a b"),
            adding("é::$\\22'`", 5),
            adding("main_dispatch_1", 7),
            adding("main_dispatch_12", 9),
        ),
        ("i32",),
    ),
}
"""`names`: with a space, a quote, what separates names, and one that begins like another."""
