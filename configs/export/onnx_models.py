"""Export a small ONNX model and its int8 QDQ twin: the way of users who bring `.onnx`; not part of the suite.

examples:
  python onnx_models.py --list
  python onnx_models.py onnx_cnn_f32 onnx_cnn_int8 --out /tmp/models
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from common import run
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

SEED = 0
SAMPLES = 8
IMAGE = (1, 3, 32, 32)
CHANNELS = (16, 32)
CLASSES = 10
OPSET = 17
SMALLEST_PARAMETER = 64
"""Elements from which a weight is kept outside the text."""


def cnn(folder: Path) -> Path:
    """Two strided convolutions with ReLU, global average pooling and a linear layer; random weights."""
    rng = np.random.default_rng(SEED)
    nodes, weights = [], []

    def weight(name: str, *shape: int) -> str:
        values = rng.normal(0, 0.1, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    value, inputs = "image", IMAGE[1]
    for index, outputs in enumerate(CHANNELS):
        name = f"conv{index}"
        operands = [value, weight(f"{name}.weight", outputs, inputs, 3, 3), weight(f"{name}.bias", outputs)]
        nodes.append(helper.make_node("Conv", operands, [name], name, strides=[2, 2], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [name], [f"relu{index}"], f"relu{index}"))
        value, inputs = f"relu{index}", outputs
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["pool"], "pool"))
    nodes.append(helper.make_node("Flatten", ["pool"], ["flat"], "flat"))
    operands = ["flat", weight("head.weight", inputs, CLASSES), weight("head.bias", CLASSES)]
    nodes.append(helper.make_node("Gemm", operands, ["logits"], "head"))
    return save_graph(folder / "onnx_cnn_f32.onnx", nodes, weights)


def save_graph(path: Path, nodes: list[Any], weights: list[Any]) -> Path:
    """Write the checked model to ``path``."""
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, IMAGE)
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, (1, CLASSES))
    graph = helper.make_graph(nodes, path.stem, [image], [logits], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


class RandomImages(CalibrationDataReader):
    """Random inputs that calibrate the quantisation ranges."""

    def __init__(self) -> None:
        rng = np.random.default_rng(SEED)
        self.images = [rng.uniform(-1, 1, IMAGE).astype(np.float32) for _ in range(SAMPLES)]

    def get_next(self) -> dict[str, Any] | None:
        return {"image": self.images.pop()} if self.images else None


def quantized(folder: Path) -> Path:
    """The same network with QuantizeLinear and DequantizeLinear around every operation (QDQ), per tensor."""
    target = folder / "onnx_cnn_int8.onnx"
    quantize_static(
        cnn(folder),
        target,
        RandomImages(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    return target


def imported(build: Callable[[Path], Path]) -> str:
    """The model through ``iree-import-onnx``, as a user's is: weights by reference, no locations printed."""
    with tempfile.TemporaryDirectory() as folder:
        source = build(Path(folder))
        target = source.with_suffix(".mlir")
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx"]
        threshold = ["--num-elements-threshold", str(SMALLEST_PARAMETER)]
        options = ["--externalize-params", "--no-save-params", *threshold]
        subprocess.run([*importer, str(source), "-o", str(target), *options], check=True)
        return target.read_text(encoding="utf-8")


BUILDERS = {"onnx_cnn_f32": partial(imported, cnn), "onnx_cnn_int8": partial(imported, quantized)}

if __name__ == "__main__":
    sys.exit(run(BUILDERS, __doc__ or ""))
