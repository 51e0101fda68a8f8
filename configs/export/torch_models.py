"""Export the PyTorch models of the suite: transformers architectures, random initialisation, no weights.

examples:
  python torch_models.py --list
  python torch_models.py bert_l4_f32_s128 --out /tmp/models
  python torch_models.py all --out /tmp/models
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import transformers as tf
from common import package_path, run
from iree.compiler.extras.fx_importer import ContextCache
from iree.compiler.ir import Location
from iree.turbine import aot

FLOAT_MIN = torch.finfo(torch.float32).min
FRAME = r'File "([^"]+)", line ([0-9]+),'


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one model is made: architecture, module around it, example inputs, inputs of dynamic length."""

    build: Callable[[], torch.nn.Module]
    wrapper: Callable[[torch.nn.Module], torch.nn.Module]
    args: tuple[torch.Tensor, ...]
    dynamic: tuple[str, ...] = ()


class Encoder(torch.nn.Module):
    """A text encoder. Builds the mask itself: the library's helpers trace to ops that lowering rejects."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.m = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        length = input_ids.shape[1]
        bias = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * FLOAT_MIN
        bias = bias.expand(1, 1, length, length)
        positions = torch.arange(length, dtype=torch.int32).unsqueeze(0).expand(1, length)
        types = torch.zeros(1, length, dtype=torch.int32)
        extras = {"token_type_ids": types, "position_ids": positions}
        return self.m(input_ids=input_ids, attention_mask=bias, **extras)[0]


class Decoder(torch.nn.Module):
    """A causal language model without a key-value cache; builds its mask itself, as `Encoder` does."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.m = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        length = input_ids.shape[1]
        steps = torch.arange(length, dtype=torch.int32)
        causal = steps[None, :] <= steps[:, None]
        bias = torch.where(causal, 0.0, FLOAT_MIN).to(torch.float32)[None, None]
        bias = bias.expand(1, 1, length, length)
        positions = steps.unsqueeze(0)
        return self.m(input_ids=input_ids, attention_mask=bias, position_ids=positions, use_cache=False)[0]


class Vision(torch.nn.Module):
    """A model of one float tensor (an image, or a spectrogram); returns its first output."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.m = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.m(x)[0]


def name_locations(cache: Any, node: torch.fx.Node) -> Any:
    """The location of an FX node: its module's path (``m.encoder.layer.0``) around the innermost frame."""
    frames = re.findall(FRAME, node.meta.get("stack_trace") or "")
    if not frames:
        return Location.unknown(context=cache._c)
    path, line = frames[-1]
    place = Location.file(package_path(path), int(line), 0, context=cache._c)
    scopes = list((node.meta.get("nn_module_stack") or {}).values())
    return Location.name(scopes[-1][0] or "<root>", place, context=cache._c) if scopes else place


def export(name: str, recipe: Recipe) -> str:
    """The text of one model: parameters by reference (scope ``model``), components as locations."""
    torch.manual_seed(0)
    wrapper = recipe.wrapper(recipe.build()).eval()
    aot.externalize_module_parameters(wrapper, external_scope="model")
    length = torch.export.Dim("seq", min=2, max=512)
    dynamic = {key: {1: length} for key in recipe.dynamic}
    ContextCache.get_node_location = name_locations
    with torch.no_grad():  # or Llama's rotary embedding becomes a sub-graph and loses its frames
        output = aot.export(
            wrapper,
            args=recipe.args,
            dynamic_shapes=dynamic or None,
            module_name=name,
            function_name="main",
            strict_export=False,  # the strict trace drops the frames inside torch.nn
        )
    return str(output.mlir_module.get_asm(enable_debug_info=True))


EAGER = {"attn_implementation": "eager"}
"""The plain attention: matmul, softmax, matmul, as separate operations."""


def bert() -> torch.nn.Module:
    """BERT-base widths, 4 layers."""
    return tf.BertModel(tf.BertConfig(num_hidden_layers=4, **EAGER), add_pooling_layer=False)


def mobilebert() -> torch.nn.Module:
    """MobileBERT, 6 layers."""
    return tf.MobileBertModel(tf.MobileBertConfig(num_hidden_layers=6, **EAGER), add_pooling_layer=False)


def gpt2() -> torch.nn.Module:
    """GPT-2 small."""
    return tf.GPT2LMHeadModel(tf.GPT2Config(**EAGER))


def tinyllama() -> torch.nn.Module:
    """Llama at TinyLlama's widths, 4 layers."""
    config = tf.LlamaConfig(
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=4,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        **EAGER,
    )
    return tf.LlamaForCausalLM(config)


def vit() -> torch.nn.Module:
    """ViT-base/16, 4 layers."""
    return tf.ViTModel(tf.ViTConfig(num_hidden_layers=4, **EAGER), add_pooling_layer=False)


def mobilenet_v1() -> torch.nn.Module:
    """MobileNetV1 1.0 at 224, 1001 classes."""
    return tf.MobileNetV1ForImageClassification(tf.MobileNetV1Config(num_labels=1001))


def mobilenet_v2() -> torch.nn.Module:
    """MobileNetV2 1.0 at 224, 1001 classes."""
    return tf.MobileNetV2ForImageClassification(tf.MobileNetV2Config(num_labels=1001))


def deeplab() -> torch.nn.Module:
    """DeepLabV3+ on MobileNetV2 with output stride 8, 21 classes."""
    config = tf.MobileNetV2Config(image_size=257, num_labels=21, output_stride=8)
    return tf.MobileNetV2ForSemanticSegmentation(config)


def whisper() -> torch.nn.Module:
    """The encoder of Whisper-tiny."""
    config = tf.WhisperConfig(
        d_model=384,
        encoder_layers=4,
        encoder_attention_heads=6,
        encoder_ffn_dim=1536,
        num_mel_bins=80,
        **EAGER,
    )
    return tf.models.whisper.modeling_whisper.WhisperEncoder(config)


def ids(length: int = 128) -> torch.Tensor:
    """Token ids or a mask, int32: smaller Vulkan targets refuse 64-bit arithmetic."""
    return torch.ones(1, length, dtype=torch.int32)


def image(*shape: int) -> tuple[torch.Tensor]:
    """One float input of this shape."""
    return (torch.zeros(1, *shape),)


RECIPES = {
    "bert_l4_f32_s128": Recipe(bert, Encoder, (ids(), ids())),
    "bert_l4_f32_dyn": Recipe(bert, Encoder, (ids(), ids()), dynamic=("input_ids", "attention_mask")),
    "gpt2_f32_dyn": Recipe(gpt2, Decoder, (ids(),), dynamic=("input_ids",)),
    "tinyllama_l4_f32_dyn": Recipe(tinyllama, Decoder, (ids(),), dynamic=("input_ids",)),
    "mobilebert_l6_f32_s128": Recipe(mobilebert, Encoder, (ids(), ids())),
    "vit_l4_f32_224": Recipe(vit, Vision, image(3, 224, 224)),
    "mobilenet_v1_f32_224": Recipe(mobilenet_v1, Vision, image(3, 224, 224)),
    "mobilenet_v2_f32_224": Recipe(mobilenet_v2, Vision, image(3, 224, 224)),
    "deeplabv3p_mnv2_f32_257": Recipe(deeplab, Vision, image(3, 257, 257)),
    "whisper_tiny_encoder_f32": Recipe(whisper, Vision, image(80, 3000)),
}
BUILDERS = {name: partial(export, name, recipe) for name, recipe in RECIPES.items()}

if __name__ == "__main__":
    sys.exit(run(BUILDERS, __doc__ or ""))
