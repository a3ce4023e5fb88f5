"""cosFormer attention in Python: the operators of libcosformer.so as functions with documentation.

    import cosformer
    cosformer.load("build/lib/libcosformer.so")         # with the torch that the library was built against
    out = cosformer.attention(q, k, v, causal=True)     # differentiable

The functions only pass on to torch.ops.cosformer, which has their documentation too once load() was called:
torch.ops.cosformer.attention.__doc__. Arguments that cannot work are refused with a ValueError that says what was
expected and what came.
"""
import torch


def load(path):
    """Loads libcosformer.so, which registers the operators."""
    torch.ops.load_library(path)
    for function in (attention, attention_with_state, attention_state):
        getattr(torch.ops.cosformer, function.__name__).__doc__ = function.__doc__


def attention(q, k, v, *, causal=False, horizon=None, theta=None, log_decay=None, feature_map="relu", reweight=True,
              normalizer="sum", eps=1e-6, key_mask=None, cu_seqlens_q=None, cu_seqlens_k=None):
    """Exact attention whose cost grows linearly with length.

        w_ij = f(q_i)·f(k_j) · cos(theta·(i - j)) · exp(log_decay·|i - j|)
        out_i = sum_j w_ij v_j / max(sum_j w_ij, eps)

    q             [batch, time, heads, dim], k [batch, time of k, heads, dim], v [batch, time of k, heads, value_dim];
                  float32, bfloat16, float16 or, on the CPU, float64; the last dimension contiguous. dim: 1 to 256
    causal        query i sees keys j <= i; otherwise all keys
    horizon       M, with theta = pi / (2 M): at least the greatest distance between two tokens. None: the longer of the
                  two lengths, as published
    theta         [heads] float32: an angle per token of each head, in place of that of the horizon
    log_decay     [heads] float32 <= 0: the logarithm of a decay per token of each head; differentiable
    feature_map   f: relu, elu1, leaky_relu, silu or identity
    reweight      False: no cosine, plain linear attention
    normalizer    sum, or none: no division
    eps           the least divisor
    key_mask      [batch, time of k] bool, True where there is a key
    cu_seqlens_q  [sequences + 1] int32 or int64: sequences that lie end to end in a batch of one, which do not see each
                  other; with cu_seqlens_k

    Returns [batch, time, heads, value_dim]. Differentiable once in q, k, v and log_decay.
    """
    return torch.ops.cosformer.attention(
        q, k, v, causal=causal, horizon=horizon, theta=theta, log_decay=log_decay, feature_map=feature_map,
        reweight=reweight, normalizer=normalizer, eps=eps, key_mask=key_mask, cu_seqlens_q=cu_seqlens_q,
        cu_seqlens_k=cu_seqlens_k)


def attention_state(q, v):
    """What attention_with_state begins with, for queries and values like these: a list of three tensors.

    [sums of keys and values, sums of keys, tokens consumed]: [batch, heads, 2, dim, value_dim] and
    [batch, heads, 2, dim] in float32 (float64 for float64), and [batch] int64. Their size does not depend on how many
    tokens they stand for.
    """
    return torch.ops.cosformer.attention_state(q, v)


def attention_with_state(q, k, v, state, *, horizon, theta=None, log_decay=None, feature_map="relu", reweight=True,
                         normalizer="sum", eps=1e-6):
    """Causal attention of the next tokens of each sequence, after those that the state stands for.

        state = attention_state(q, v)
        for q, k, v in pieces:                                          # of any lengths
            out, state = attention_with_state(q, k, v, state, horizon=65536)

    gives what attention(..., causal=True, horizon=65536) gives of the whole. Returns the output and the state behind
    these tokens, its position advanced; the state that came in is as it was. Differentiable through the state.

    horizon       M, in tokens: the stream may reach so far (with theta, or without reweight, any length)
    The others are those of attention().

    torch.ops.cosformer.attention_with_state(q, k, v, state_kv, state_z, position, ...), which takes the three tensors
    one by one and returns (out, state_kv, state_z), leaves it to the caller to add q.shape[1] to the position.
    """
    return torch.ops.cosformer.attention_with_state(
        q, k, v, state, horizon=horizon, theta=theta, log_decay=log_decay, feature_map=feature_map, reweight=reweight,
        normalizer=normalizer, eps=eps)
