"""Export the JAX model of the suite: one training step of an MLP, as StableHLO, parameters as arguments.

examples:
  python jax_models.py --list
  python jax_models.py jax_mlp_train_step_f32 --out /tmp/models
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from common import run, strip_directories

LAYER_WIDTHS = (512, 256, 128)
CLASSES = 10
BATCH, PIXELS = 32, 784
LEARNING_RATE = 0.01


class MLP(nn.Module):
    """Dense layers with GELU, then the head. The names of layers and functions become the locations."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for index, width in enumerate(LAYER_WIDTHS):
            x = nn.gelu(nn.Dense(width, name=f"fc{index}")(x))
        return nn.Dense(CLASSES, name="head")(x)


def mlp_train() -> str:
    """StableHLO text of ``step(params, x, y) -> params``: softmax cross-entropy, plain gradient descent."""
    model = MLP()
    images = jax.ShapeDtypeStruct((BATCH, PIXELS), jnp.float32)
    labels = jax.ShapeDtypeStruct((BATCH,), jnp.int32)
    params = jax.eval_shape(model.init, jax.random.key(0), images)

    def step(p: Any, x: jax.Array, y: jax.Array) -> Any:
        def loss(q: Any) -> jax.Array:
            scores = jax.nn.log_softmax(model.apply(q, x)) * jax.nn.one_hot(y, CLASSES)
            return -jnp.mean(jnp.sum(scores, axis=-1))

        return jax.tree.map(lambda w, g: w - LEARNING_RATE * g, p, jax.grad(loss)(p))

    return save(step, params, images, labels)


def save(step: Callable[..., Any], *shapes: Any) -> str:
    """The text of the traced function, with scopes; only base names of files stay in it."""
    jax.config.update("jax_traceback_in_locations_limit", 1)  # the innermost frame is enough
    module = jax.jit(step).lower(*shapes).compiler_ir("stablehlo")
    return strip_directories(module.operation.get_asm(enable_debug_info=True))


BUILDERS = {"jax_mlp_train_step_f32": mlp_train}

if __name__ == "__main__":
    sys.exit(run(BUILDERS, __doc__ or ""))
