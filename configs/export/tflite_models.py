"""Export the int8 models of the suite: Keras, full-integer TFLite, TOSA; random weights, which stay outside.

examples:
  python tflite_models.py --list
  python tflite_models.py mobilenet_v1_int8_tosa --out /tmp/models
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from common import run
from externalize import externalize_constants
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

SEED = 0
TOKENS = 128
SAMPLES = 8
"""How many random inputs calibrate the quantisation ranges."""


def quantize(function: Any, samples: Callable[[], Iterator[list[Any]]], int8_ends: bool) -> bytes:
    """A TFLite flatbuffer with int8 weights and activations; `int8_ends` makes inputs and outputs int8 too.

    Variables are frozen first: with Keras 3 variables in the graph the calibration fails.
    """
    frozen = convert_variables_to_constants_v2(function.get_concrete_function())
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if int8_ends:
        converter.inference_input_type = tf.int8
        converter.inference_output_type = tf.int8
    return bytes(converter.convert())


def to_tosa(flatbuffer: bytes, name: str) -> str:
    """TOSA text with locations; the converter runs inside a folder, so that only ``name`` gets into them."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(flatbuffer)
        command = ["tosa-converter-for-tflite", name, "--bytecode", "--emit-debug-info", "-o", "model.mlirbc"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PATH": path})
        return externalize_constants(Path(folder, "model.mlirbc").read_bytes())


def randomize_statistics(model: Any, rng: np.random.Generator) -> None:
    """Random batch-norm statistics, gains and offsets: with the initial ones every scale comes out alike."""
    for layer in model.layers:
        if type(layer).__name__ == "BatchNormalization":
            size = layer.gamma.shape[0]
            low_high = ((0.5, 1.5), (-0.2, 0.2), (-0.2, 0.2), (0.5, 1.5))  # gamma, beta, mean, variance
            layer.set_weights([rng.uniform(low, high, size).astype(np.float32) for low, high in low_high])


def mobilenet_v1() -> str:
    """MobileNetV1 1.0 at 224, 1000 classes, with softmax; int8 in and out."""
    tf.keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    model = tf.keras.applications.MobileNet(weights=None)
    randomize_statistics(model, rng)
    spec = tf.TensorSpec([1, 224, 224, 3], tf.float32, name="input")
    function = tf.function(lambda x: model(x, training=False), input_signature=[spec])

    def samples() -> Iterator[list[Any]]:
        for _ in range(SAMPLES):
            yield [rng.uniform(-1, 1, (1, 224, 224, 3)).astype(np.float32)]

    return to_tosa(quantize(function, samples, int8_ends=True), "mobilenet_v1_int8.tflite")


def mobilebert() -> str:
    """MobileBERT for question answering, 6 layers, 128 tokens; int32 ids in, float logits out, int8 between.

    Its library needs Keras 2 (tf-keras), which it imports itself.
    """
    from transformers import MobileBertConfig, TFMobileBertForQuestionAnswering

    tf.keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    model = TFMobileBertForQuestionAnswering(MobileBertConfig(num_hidden_layers=6))
    names = ("input_ids", "attention_mask", "token_type_ids")
    specs = [tf.TensorSpec([1, TOKENS], tf.int32, name=name) for name in names]

    def answer(input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        inputs = {"attention_mask": attention_mask, "token_type_ids": token_type_ids}
        output = model(input_ids, **inputs, training=False)
        return output.start_logits, output.end_logits

    function = tf.function(answer, input_signature=specs)
    function.get_concrete_function()  # creates the variables
    randomize_vectors(model, rng)

    def samples() -> Iterator[list[Any]]:
        for _ in range(SAMPLES):
            ids = rng.integers(0, model.config.vocab_size, (1, TOKENS)).astype(np.int32)
            yield [ids, np.ones((1, TOKENS), np.int32), rng.integers(0, 2, (1, TOKENS)).astype(np.int32)]

    return to_tosa(quantize(function, samples, int8_ends=False), "mobilebert_l6_s128_int8.tflite")


def randomize_vectors(model: Any, rng: np.random.Generator) -> None:
    """A little noise on biases and norm gains: the initial zeros and ones would fold away."""
    for variable in model.weights:
        if len(variable.shape) == 1:
            noise = rng.normal(0, 0.02, variable.shape)
            variable.assign((variable.numpy() + noise).astype(np.float32))


BUILDERS = {"mobilenet_v1_int8_tosa": mobilenet_v1, "mobilebert_l6_int8_tosa": mobilebert}

if __name__ == "__main__":
    sys.exit(run(BUILDERS, __doc__ or ""))
