"""Small programs of two executables or more that could become one, kind by kind, as a model's author writes them.

The second executable reads what a barrier gives, so that the compiler fuses the two at
no level of aggression.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Foldable(NamedTuple):
    """A program."""

    level: str  # the strictest at which its executables are one
    source: str
    operands: tuple[str, ...]  # the types that this takes
    flags: tuple[str, ...] = ()


def _main(arguments: str, body: str, *results: tuple[str, str]) -> str:
    names = ", ".join(name for name, _ in results)
    types = ", ".join(type_ for _, type_ in results)
    return (
        f"func.func @main({arguments}) -> ({types}) {{{body}\n  return {names} :"
        f" {types}\n}}\n"
    )


def mapped(value: str, result: str, type_: str, body: str, sizes: str = "") -> str:
    """`result` is `value` with the body applied to each element."""
    element = type_.rpartition("x")[2].rstrip(">")
    rank = type_.count("x")
    dims = ", ".join(f"d{index}" for index in range(rank))
    same = f"affine_map<({dims}) -> ({dims})>"
    parallel = ", ".join(['"parallel"'] * rank)
    return f"""
  {result}_e = tensor.empty({sizes}) : {type_}
  {result} = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = [{parallel}]}}
      ins({value} : {type_}) outs({result}_e : {type_}) {{
    ^bb0(%in: {element}, %out: {element}):{body}
  }} -> {type_}"""


def barrier(result: str, value: str, type_: str) -> str:
    """A value that nothing is known of."""
    return f"\n  {result} = util.optimization_barrier {value} : {type_}"


def _scaled(multiply: str, add: str, factor: str, term: str, element: str) -> str:
    return f"""
      %factor = arith.constant {factor} : {element}
      %term = arith.constant {term} : {element}
      %1 = {multiply} %in, %factor : {element}
      %2 = {add} %1, %term : {element}
      linalg.yield %2 : {element}"""


def constants(element: str, first: tuple[str, str], second: tuple[str, str]) -> str:
    """Two executables that multiply by other factors and add other terms."""
    type_ = f"tensor<64x{element}>"
    operations = (
        ("arith.mulf", "arith.addf") if "f" in element else ("arith.muli", "arith.addi")
    )
    first_body, second_body = (
        _scaled(*operations, factor, term, element) for factor, term in (first, second)
    )
    body = (
        mapped("%x", "%a", type_, first_body)
        + barrier("%y", "%a", type_)
        + mapped("%y", "%b", type_, second_body)
    )
    return _main(f"%x: {type_}", body, ("%a", type_), ("%b", type_))


def _indices() -> str:
    """An index is compared with another constant."""
    type_ = "tensor<64xi32>"

    def until(last: int) -> str:
        return f"""
      %last = arith.constant {last} : index
      %zero = arith.constant 0 : i32
      %i = linalg.index 0 : index
      %p = arith.cmpi ult, %i, %last : index
      %1 = arith.select %p, %in, %zero : i32
      linalg.yield %1 : i32"""

    body = (
        mapped("%x", "%a", type_, until(40))
        + barrier("%y", "%x", type_)
        + mapped("%y", "%b", type_, until(7))
    )
    return _main(f"%x: {type_}", body, ("%a", type_), ("%b", type_))


def _tensors() -> str:
    """A tensor is added to another constant tensor."""
    type_ = "tensor<8xi32>"
    body = "\n  %p = arith.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>"
    body += (
        "\n  %q = arith.constant dense<[-9, 8, -7, 6, -5, 4, -3, 2]> : tensor<8xi32>"
    )
    body += (
        f"\n  %a = arith.muli %x, %p : {type_}"
        + barrier("%y", "%a", type_)
        + f"\n  %b = arith.muli %y, %q : {type_}"
    )
    return _main(f"%x: {type_}", body, ("%a", type_), ("%b", type_))


def _sites() -> str:
    """Two executables, each launched three times, in turn."""
    type_ = "tensor<64xi32>"
    value = "%x"
    body = ""
    for number in range(6):
        factor, term = (("3", "-7"), ("5", "11"))[number % 2]
        body += mapped(
            value,
            f"%a{number}",
            type_,
            _scaled(
                "arith.muli", add="arith.addi", factor=factor, term=term, element="i32"
            ),
        )
        value = f"%b{number}"
        body += barrier(value, f"%a{number}", type_)
    return _main(f"%x: {type_}", body, ("%a4", type_), ("%a5", type_))


def _dynamic() -> str:
    """Constants in executables of dynamic shape, whose sites pass a workload."""
    type_ = "tensor<?x8xf32>"
    first_body, second_body = (
        _scaled("arith.mulf", "arith.addf", *values, "f32")
        for values in (("0.5", "1.0"), ("0.25", "-3.0"))
    )
    body = f"\n  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : {type_}"
    body += mapped("%x", result="%a", type_=type_, body=first_body, sizes="%n")
    body += f"\n  %m = tensor.dim %y, %c0 : {type_}" + mapped(
        "%y", result="%b", type_=type_, body=second_body, sizes="%m"
    )
    return _main(f"%x: {type_}, %y: {type_}", body, ("%a", type_), ("%b", type_))


def _half_dynamic() -> str:
    """One dimension of two is dynamic, and the other varies."""
    body = "\n  %c0 = arith.constant 0 : index"
    results = []
    arguments = []
    for name, columns in (("a", 12), ("b", 36)):
        type_ = f"tensor<?x{columns}xi32>"
        out = f"tensor<{columns}x?xi32>"
        arguments.append(f"%x{name}: {type_}")
        body += f"""
  %n{name} = tensor.dim %x{name}, %c0 : {type_}
  %e{name} = tensor.empty(%n{name}) : {out}
  %{name} = linalg.transpose ins(%x{name} : {type_}) outs(%e{name} : {out}) permutation = [1, 0]"""
        results.append((f"%{name}", out))
    return _main(", ".join(arguments), body, *results)


def _slices() -> str:
    """Columns at another place of a matrix."""
    body = ""
    type_ = "tensor<8x4xi32>"
    for name, column in (("a", 4), ("b", 11)):
        body += (
            f"\n  %s{name} = tensor.extract_slice %x[0, {column}] [8, 4] [1, 1] :"
            f" tensor<8x16xi32> to {type_}"
        )
        body += mapped(
            f"%s{name}",
            f"%{name}",
            type_,
            _scaled(
                "arith.muli", add="arith.addi", factor="3", term="1", element="i32"
            ),
        )
    return _main("%x: tensor<8x16xi32>", body, ("%a", type_), ("%b", type_))


def _elementwise() -> str:
    body = ""
    results = []
    for value, shape in (("x", "16x8"), ("y", "24x40")):
        type_ = f"tensor<{shape}xf32>"
        body += mapped(
            f"%{value}",
            f"%a{value}",
            type_,
            _scaled(
                "arith.mulf", add="arith.addf", factor="0.5", term="1.0", element="f32"
            ),
        )
        results.append((f"%a{value}", type_))
    return _main("%x: tensor<16x8xf32>, %y: tensor<24x40xf32>", body, *results)


def _matmuls() -> str:
    body = "\n  %zero = arith.constant 0.0 : f32"
    results = []
    arguments = []
    for name, (rows, inner, columns) in {"a": (16, 32, 8), "b": (24, 64, 40)}.items():
        left_type, right_type, out = (
            f"tensor<{m}x{n}xf32>"
            for m, n in ((rows, inner), (inner, columns), (rows, columns))
        )
        arguments += [f"%l{name}: {left_type}", f"%r{name}: {right_type}"]
        body += f"""
  %e{name} = tensor.empty() : {out}
  %f{name} = linalg.fill ins(%zero : f32) outs(%e{name} : {out}) -> {out}
  %{name} = linalg.matmul ins(%l{name}, %r{name} : {left_type}, {right_type}) outs(%f{name} : {out}) -> {out}"""
        results.append((f"%{name}", out))
    return _main(", ".join(arguments), body, *results)


def _convolutions() -> str:
    body = "\n  %zero = arith.constant 0 : i32"
    results = []
    arguments = []
    for name, size, channels in (("a", 10, 3), ("b", 18, 5)):
        image = f"tensor<1x{size}x{size}x{channels}xi8>"
        kernel = f"tensor<3x3x{channels}x{2 * channels}xi8>"
        out = f"tensor<1x{size - 2}x{size - 2}x{2 * channels}xi32>"
        arguments += [f"%i{name}: {image}", f"%k{name}: {kernel}"]
        body += f"""
  %e{name} = tensor.empty() : {out}
  %f{name} = linalg.fill ins(%zero : i32) outs(%e{name} : {out}) -> {out}
  %{name} = linalg.conv_2d_nhwc_hwcf ins(%i{name}, %k{name} : {image}, {kernel}) outs(%f{name} : {out}) -> {out}"""
        results.append((f"%{name}", out))
    return _main(", ".join(arguments), body, *results)


def _transposes() -> str:
    body = ""
    results = []
    arguments = []
    for name, rows, columns in (("a", 8, 12), ("b", 20, 36)):
        type_ = f"tensor<{rows}x{columns}xi32>"
        out = f"tensor<{columns}x{rows}xi32>"
        arguments.append(f"%x{name}: {type_}")
        body += f"""
  %e{name} = tensor.empty() : {out}
  %{name} = linalg.transpose ins(%x{name} : {type_}) outs(%e{name} : {out}) permutation = [1, 0]"""
        results.append((f"%{name}", out))
    return _main(", ".join(arguments), body, *results)


FOLDABLE = {
    "i8": Foldable(
        "constants", constants("i8", ("3", "-100"), ("-7", "28")), ("i8", "i8")
    ),
    "i32": Foldable(
        "constants",
        constants("i32", ("1431655765", "-1"), ("-7", "65537")),
        ("i32", "i32"),
    ),
    "i64": Foldable(
        "constants",
        constants("i64", ("6148914691236517205", "-1"), ("-7", "4294967297")),
        ("i64", "i64"),
    ),
    "f32": Foldable(
        "constants",
        constants("f32", ("0.3333333", "1.0e-30"), ("-7.5e+10", "-1.0")),
        ("f32", "f32"),
    ),
    "f64": Foldable(
        "constants",
        constants("f64", ("0.33333333333333331", "1.0e-300"), ("-7.5e+100", "-1.0")),
        ("f64", "f64"),
        ("--iree-input-demote-f64-to-f32=false",),
    ),
    "index": Foldable("constants", _indices(), ("index",)),
    "tensor": Foldable("constants", _tensors(), ("tensor<8xi32>",)),
    "sites": Foldable("constants", _sites(), ("i32", "i32")),
    "dynamic": Foldable("constants", _dynamic(), ("f32", "f32")),
    "slices": Foldable("offsets", _slices(), ("index",)),
    "elementwise": Foldable("static-shapes", _elementwise(), ("index",)),
    "half-dynamic": Foldable("static-shapes", _half_dynamic(), ("index",)),
    "matmuls": Foldable("static-shapes", _matmuls(), ("index", "index", "index")),
    "convolutions": Foldable("static-shapes", _convolutions(), ("index",) * 4),
    "transposes": Foldable("static-shapes", _transposes(), ("index", "index")),
}


def layers(constants: Sequence[tuple[int, int]]) -> str:
    """Quantised layers that differ in multiplier and shift, and after each two a matrix of another kind."""
    small = "tensor<32x32xi8>"
    wide = "tensor<32x32xi32>"
    body = "\n  %zero = arith.constant 0 : i32\n  %empty = tensor.empty() : " + wide
    value = "%x"
    for index, (factor, shift) in enumerate(constants):
        body += f"""
  %f{index} = linalg.fill ins(%zero : i32) outs(%empty : {wide}) -> {wide}
  %m{index} = linalg.matmul ins({value}, %w : {small}, {small}) outs(%f{index} : {wide}) -> {wide}
  %o{index} = tensor.empty() : {small}
  %q{index} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%m{index} : {wide}) outs(%o{index} : {small}) {{
    ^bb0(%in: i32, %out: i8):
      %factor = arith.constant {factor} : i32
      %shift = arith.constant {shift} : i32
      %1 = arith.muli %in, %factor : i32
      %2 = arith.shrsi %1, %shift : i32
      %3 = arith.trunci %2 : i32 to i8
      linalg.yield %3 : i8
  }} -> {small}"""
        body += barrier(f"%y{index}", f"%q{index}", small)
        value = f"%y{index}"
    return _main(f"%x: {small}, %w: {small}", body, (value, small))
