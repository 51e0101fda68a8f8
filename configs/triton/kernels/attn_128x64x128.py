"""Attention, forward: 128 rows of queries at a time against blocks of 64 keys, heads of 128."""

import triton
import triton.language as tl


@triton.jit
def attn(q, k, v, o, N, sm, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    pm = tl.program_id(0)
    rm = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    rn = tl.arange(0, BN)
    Q = tl.load(q + rm[:, None] * D + d[None, :])
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for s in range(0, N, BN):
        K = tl.load(k + (s + rn)[None, :] * D + d[:, None])
        S = tl.dot(Q, K) * sm
        mn = tl.maximum(m, tl.max(S, 1))
        p = tl.exp(S - mn[:, None])
        al = tl.exp(m - mn)
        l = l * al + tl.sum(p, 1)
        m = mn
        V = tl.load(v + (s + rn)[:, None] * D + d[None, :])
        acc = acc * al[:, None]
        acc = tl.dot(p.to(tl.float16), V, acc)
    tl.store(o + rm[:, None] * D + d[None, :], (acc / l[:, None]).to(tl.float16))


KERNEL = attn
SIGNATURE = {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp16", "N": "i32", "sm": "fp32"}
CONSTANTS = {"BM": 128, "BN": 64, "D": 128}
