"""bot.running.feeding: random data as files, the same in every run, with room for them or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_disk import small_disk

from bot.core.this_machine import is_local
from bot.readers.ir_facts import Function, Interface, Parameter
from bot.running import feeding
from bot.running.feeding import Feed, feed, not_called
from bot.system.cancel import Cancel

KINDS = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "i8": np.int8,
    "ui8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "si64": np.int64,
    "i1": np.uint8,
}


def program(
    *arguments: str, parameters: tuple[Parameter, ...] = (), picks: bool = False
) -> Interface:
    function = Function("main", arguments, ("tensor<4xf32>", "i32", "!hal.buffer"))
    return Interface((function,), parameters, (), remembers=False, picks=picks)


def parameter(key: str, kind: str, scope: str = "model") -> Parameter:
    return Parameter(scope, key, kind)


def fed(interface: Interface, home: Path, draws: int = 2) -> Feed | str:
    return feed(interface, dynamic=5, draws=draws, directory=home, cancel=Cancel())


def files(made_feed: Feed | str, kind: str, draw: int = 0) -> list[Path]:
    """Those that a draw is told of."""
    assert not isinstance(made_feed, str), made_feed
    flags = [flag for flag in made_feed.draws[draw] if flag.startswith(f"--{kind}=")]
    return [
        made_feed.directory / flag.partition("@" if kind == "input" else "model=")[2]
        for flag in flags
    ]


def tensors(path: Path) -> Iterator[tuple[str, bytes]]:
    """What is in a file of parameters: read by the format's rules, not by ours."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    for key, entry in json.loads(data[8:start]).items():
        low, high = entry["data_offsets"]
        assert entry["shape"] == [high - low]
        yield key, data[start + low : start + high]


def values(home: Path, kind: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Those of a parameter of this type, as numbers."""
    inputs = fed(program(parameters=(parameter("x", kind),)), home)
    ((_, data),) = tensors(files(inputs, "parameters")[0])
    element = kind.strip("tensor<>").rpartition("x")[2]
    return np.frombuffer(data, KINDS[element]).astype(np.float64)


def test_the_program_gets_all_that_it_takes(tmp_path: Path) -> None:
    interface = program(
        "tensor<2x?xf32>",
        "i32",
        "tensor<f64>",
        "!hal.buffer_view",
        "f32",
        parameters=(parameter("a", "tensor<3xf32>"), parameter("b", "tensor<f32>", "")),
    )
    fed_inputs = fed(interface, tmp_path)
    assert not isinstance(fed_inputs, str)
    assert fed_inputs.results == ("f32", "i32", "") and (
        fed_inputs.dynamic,
        fed_inputs.random,
    ) == (
        5,
        "input",
    )
    first, second = fed_inputs.draws
    function, model, bare, *inputs = (flag.partition("=")[2] for flag in first)
    assert (
        function == "main"
        and model.startswith("model=parameters-")
        and bare.startswith("parameters-")
    )
    assert [text.partition("@")[0] for text in inputs][::2] == [
        "2x5xf32=",
        "f64=",
        inputs[4],
    ]
    assert (
        inputs[1] in ("0", "1") and inputs[3] == "1xi8=0" and abs(float(inputs[4])) < 2
    )
    assert first[:3] == second[:3] and first[3] != second[3], (
        "other inputs, the same parameters"
    )
    assert files(fed_inputs, "input")[0].stat().st_size == 2 * 5 * 4


def test_the_same_every_time_and_written_once(tmp_path: Path) -> None:
    interface = program(
        "tensor<9xf32>",
        parameters=(
            parameter("a", "tensor<300xf32>"),
            parameter("b", "tensor<300xf32>"),
        ),
    )
    first = fed(interface, tmp_path / "one")
    second = fed(interface, tmp_path / "other")
    for kind in ("input", "parameters"):
        for left_file, right_file in zip(
            files(first, kind), files(second, kind), strict=True
        ):
            assert (
                left_file.name == right_file.name
                and left_file.read_bytes() == right_file.read_bytes()
            )
    (parameters_file,) = files(first, "parameters")
    before = parameters_file.stat().st_mtime_ns
    fed(interface, tmp_path / "one")
    assert parameters_file.stat().st_mtime_ns == before
    assert (
        len(dict(tensors(parameters_file)))
        == len({data for _, data in tensors(parameters_file)})
        == 2
    ), "no tensor is another's"
    assert {path.suffix for path in (tmp_path / "one").iterdir()} == {
        ".bin",
        ".safetensors",
    }


@pytest.mark.parametrize("kind", ["i32", "si64"])
def test_integers_are_0_or_1_then_all_there_are_and_0_or_1_where_they_may_be_places(
    tmp_path: Path, kind: str
) -> None:
    def drawn(*, picks: bool) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
        inputs = fed(program(f"tensor<50x20x{kind}>", picks=picks), tmp_path, draws=3)
        return [
            np.fromfile(files(inputs, "input", draw)[0], KINDS[kind]).astype(np.int64)
            for draw in range(3)
        ]

    few, full_range, again = drawn(picks=False)
    assert (
        set(few) == set(again) == {0, 1}
        and {-1, 0, 1} < set(full_range)
        and any(5 < number < 100 for number in full_range)
    )
    assert max(abs(full_range)) > 1 << (np.dtype(KINDS[kind]).itemsize * 8 - 3)
    assert all(set(numbers) == {0, 1} for numbers in drawn(picks=True))


def test_floats_are_of_many_magnitudes(tmp_path: Path) -> None:
    inputs = fed(program("tensor<100x100xf32>"), tmp_path)
    small, wide = (
        abs(np.fromfile(files(inputs, "input", draw)[0], np.float32))
        for draw in range(2)
    )
    assert 0.15 < np.median(small) < 0.2 and np.quantile(small, 0.99) < 1
    assert (
        np.quantile(wide, 0.1) < 0.005
        and np.quantile(wide, 0.9) > 5
        and wide.max() < 400
    )


def test_a_parameter_that_may_be_anything_is_so_in_one_run(tmp_path: Path) -> None:
    inputs = fed(
        program("tensor<4xf32>", parameters=(parameter("any", "tensor<400xi64>"),)),
        tmp_path,
        draws=3,
    )
    assert not isinstance(inputs, str) and len(inputs.draws) == 4
    tensors_of_draws = [
        dict(tensors(files(inputs, "parameters", draw)[0])) for draw in range(4)
    ]
    assert [
        set(np.frombuffer(tensors_of_draw["any"], np.int64)) == {0, 1}
        for tensors_of_draw in tensors_of_draws
    ] == [
        True,
        False,
        True,
        True,
    ]


def test_numbers_are_drawn_as_tensors_are(tmp_path: Path) -> None:
    inputs = fed(program("i64", "f64"), tmp_path, draws=40)
    assert not isinstance(inputs, str)
    whole = [int(draw[1].partition("=")[2]) for draw in inputs.draws]
    assert set(whole[::2]) == {0, 1} and max(whole) > 1 << 30 and min(whole) < -5
    assert max(abs(float(draw[2].partition("=")[2])) for draw in inputs.draws) > 5
    places = fed(program("i64", picks=True), tmp_path, draws=40)
    assert not isinstance(places, str)
    assert {int(draw[1].partition("=")[2]) for draw in places.draws} == {0, 1}


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("i8", -128, 127), ("ui8", 0, 255), ("i1", 0, 1)]
)
def test_small_integers_take_all_their_values(
    tmp_path: Path, kind: str, low: int, high: int
) -> None:
    assert set(values(tmp_path, f"tensor<100x100x{kind}>")) == set(range(low, high + 1))


@pytest.mark.parametrize("kind", ["f32", "f16", "f64"])
def test_weights_keep_the_size_of_what_they_are_multiplied_with(
    tmp_path: Path, kind: str
) -> None:
    weights = values(tmp_path, f"tensor<64x8x3x3x{kind}>")
    assert abs(weights.mean()) < 0.02 and weights.std() == pytest.approx(
        (2 / 72) ** 0.5, rel=0.1
    )
    scales = values(tmp_path, f"tensor<5000x{kind}>")  # and variances: positive
    assert scales.min() >= 0.5 and scales.max() <= 1.5 and scales.std() > 0.2
    many = values(tmp_path, f"tensor<1500001x{kind}>")
    assert many.size == 1500001 and (
        kind == "f16"
        or len(set(many[:1000]) & set(many[1 << 20 : (1 << 20) + 1000])) < 10
    )


def test_a_quantised_program_is_run_with_wide_biases_too(tmp_path: Path) -> None:
    parameters = (
        parameter("w", "tensor<4x4xi8>"),
        parameter("bias", "tensor<400xi32>"),
        parameter("i", "tensor<4x4xi32>"),
    )
    inputs = fed(program("tensor<4xi8>", parameters=parameters), tmp_path)
    (narrow,), (wide,), (last,) = (
        files(inputs, "parameters", draw) for draw in range(3)
    )
    assert narrow == last != wide
    first = dict(tensors(narrow))
    second = dict(tensors(wide))
    assert first["w"] == second["w"] and first["i"] == second["i"]
    assert set(np.frombuffer(first["bias"], np.int32)) == {0, 1}
    assert np.frombuffer(second["bias"], np.int32).std() == pytest.approx(
        1 << 17, rel=0.2
    )


@pytest.mark.parametrize(
    ("kind", "key", "message"),
    [
        (
            "tensor<?xf32>",
            "a",
            (
                "the parameter 'a' is a tensor<?xf32>, and the bot makes no random"
                " values of this type"
            ),
        ),
        ("tensor<3xcomplex<f32>>", "a", "is a tensor<3xcomplex<f32>>"),
        (
            "tensor<3x!quant.any>",
            "a",
            "and the bot makes no random values of this type",
        ),
        ("tensor<3xf32>", 'a"b', "has a name that a file of parameters cannot have"),
        ("tensor<3xf32>", "a\nb", "has a name that a file of parameters cannot have"),
        ("tensor<999999999999x999999xf32>", "a", "the random data need "),
    ],
)
def test_parameters_that_cannot_be_made(
    tmp_path: Path, kind: str, key: str, message: str
) -> None:
    reason = fed(program(parameters=(parameter(key, kind),)), tmp_path)
    assert isinstance(reason, str) and message in reason
    two = (parameter("a", "tensor<3xf32>"), parameter("a", "tensor<4xf32>"))
    assert fed(program(parameters=two), tmp_path) == "the parameter 'a' has two types"
    reason = fed(program("tensor<3xf4E2M1FN>"), tmp_path)
    assert isinstance(reason, str) and "the bot makes no random f4E2M1FN" in reason
    assert not list(tmp_path.iterdir())


def test_programs_that_nobody_knows_how_to_call() -> None:
    for text in (
        "tensor<3xcomplex<f32>>",
        "!hal.fence",
        "!hal.buffer",
        "tensor<2x!hal.buffer>",
    ):
        assert (
            not_called(program("i32", text))
            == f"argument 1 of main is a {text}, and the bot makes no random values of"
            " this type"
        )
    for names, expected in {
        ("a\0b",): "the runtime cannot take the name of the program's function",
        (): "the bot does not know which of 0 public functions to run",
        (
            "main",
            "step",
        ): "the bot does not know which of 2 public functions to run: main, step",
    }.items():
        functions = tuple(Function(name, (), ()) for name in names)
        assert (
            not_called(Interface(functions, (), (), remembers=False, picks=False))
            == expected
        )
    assert not_called(program("tensor<1x?xi32>", "!hal.buffer_view")) is None


def test_a_full_disk_and_too_little_memory_are_reported_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        reason = fed(program("tensor<4xf32>"), disk)
        assert isinstance(reason, str) and is_local(reason) and "MiB are free" in reason
        assert not list(disk.iterdir())
    monkeypatch.setattr(feeding, "memory_kib", lambda: 1 << 10)
    reason = fed(program(parameters=(parameter("a", "tensor<1000000xf32>"),)), tmp_path)
    assert (
        reason
        == "on this machine: a run needs about 7 MiB of memory, but the machine has"
        " 1 MiB"
    )
