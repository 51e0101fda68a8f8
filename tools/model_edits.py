"""Ten edits of the suite's models, each of a few words, as a person would make them.

The same ones in every run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from everyday_cases import edited, model

BERT = "bert_l4_f32_s128"
BERT_MLP = "!torch.vtensor<[1,128,3072],f32>"
BERT_OUT = "!torch.vtensor<[1,128,768],f32>"
CNN = "mobilenet_v1_f32_224"
CNN_OUT = "!torch.vtensor<[1,1001],f32>"
TRAINING = "jax_mlp_train_step_f32"
INT8 = "mobilenet_v1_int8_tosa"


@dataclass(frozen=True)
class Edit:
    """One edit of one model."""

    name: str
    model: str
    # text → edited text; raises ValueError where the place is not there once
    change: Callable[[str], str]

    @property
    def texts(self) -> tuple[str, str]:
        """Return the model before and after."""
        before = model(self.model)
        return before, self.change(before)


def added(text: str) -> str:
    """Add an operation behind the classifier."""
    sigmoid = f"%scores = torch.aten.sigmoid %816 : {CNN_OUT} -> {CNN_OUT}"
    return edited(
        text, f"return %816 : {CNN_OUT}", f"{sigmoid}\n    return %scores : {CNN_OUT}"
    )


def relu(text: str) -> str:
    """Replace the activation in the first layer."""
    old = f"torch.aten.gelu %66, %str : {BERT_MLP}, !torch.str -> {BERT_MLP}"
    return edited(text, old, f"torch.aten.relu %66 : {BERT_MLP} -> {BERT_MLP}")


def without_activation(text: str) -> str:
    """Skip the activation before the first layer's second product."""
    return edited(
        text, "torch.aten.linear %67, %68, %69", "torch.aten.linear %66, %68, %69"
    )


def epsilon(text: str) -> str:
    """Change the constant in the first layer norm."""
    constants = re.findall(r"%float9\.999990e-13 = torch\.constant\.float \S+", text)
    if len(constants) != 1:
        raise ValueError(f"the constant stands there {len(constants)} times")
    return edited(
        text,
        f"{constants[0]} ",
        "%float9.999990e-13 = torch.constant.float 1.000000e-05 ",
    )


def log_softmax(text: str) -> str:
    """Take the logarithm of the first attention's weights."""
    return edited(
        text, "%48 = torch.aten.softmax.int", "%48 = torch.aten.log_softmax.int"
    )


def three_layers(text: str) -> str:
    """Leave out the last of four layers."""
    return edited(text, f"return %229 : {BERT_OUT}", f"return %178 : {BERT_OUT}")


def twice(text: str) -> str:
    """Use a fully connected layer of the first attention again, on its own result."""
    operation = re.search(r"^ *%57 = .*$", text, re.MULTILINE)
    if operation is None:
        raise ValueError("%57 is not there")
    line = operation[0]
    before, after = text.split(line)
    again = line.replace("%57 =", "%again =").replace("%54,", "%57,")
    return before + line + "\n" + again + re.sub(r"%57\b", "%again", after)


def batch(text: str) -> str:
    """Change the batch from 32 to 48."""
    return re.sub(r"tensor<32x", "tensor<48x", text)


def half(text: str) -> str:
    """Send a cast through f16."""
    old = "%5 = stablehlo.convert %4 : (tensor<32x10xi1>) -> tensor<32x10xf32>"
    first = "%half = stablehlo.convert %4 : (tensor<32x10xi1>) -> tensor<32x10xf16>"
    return edited(
        text,
        old,
        f"{first}\n    %5 = stablehlo.convert %half : (tensor<32x10xf16>) ->"
        " tensor<32x10xf32>",
    )


def clamped(text: str) -> str:
    """Clamp the first convolution's output at zero."""
    old = '%147 = "tosa.clamp"(%146) <{max_val = 127 : i8, min_val = -128 : i8'
    return edited(text, old, old.replace("-128", "0"))


EDITS = (
    Edit("an operation added behind the classifier", CNN, added),
    Edit("gelu replaced by relu in one layer", BERT, relu),
    Edit("the activation of one layer left out", BERT, without_activation),
    Edit("another epsilon in one layer norm", BERT, epsilon),
    Edit("softmax replaced by its logarithm in one layer", BERT, log_softmax),
    Edit("one of four layers removed", BERT, three_layers),
    Edit("one fully connected layer used twice", BERT, twice),
    Edit("a batch of 48 in place of 32", TRAINING, batch),
    Edit("a cast through f16", TRAINING, half),
    Edit("another lower bound of one clamp", INT8, clamped),
)
