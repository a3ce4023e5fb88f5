"""flash-linear-attention's kernels out of its source tree, as a peer; nothing of it is part of this project.

The package's own first page imports every model it has, and with them libraries that a bench does not need. So the
packages `fla` and `fla.ops` stand here as empty ones whose modules are found in the tree. Its kernels try out several
configurations at their first call, for minutes, which is not timed.
"""
import pathlib
import sys
import types

import torch

SHORTEST, LONGEST = -0.2, -0.002  # logarithms of the decays, of the first head and of the last


def use(tree):
    """Makes `fla` importable from TREE, the folder that holds the folder fla. Throws where it does not."""
    folder = pathlib.Path(tree) / "fla"
    if not (folder / "ops").is_dir():
        raise SystemExit(f"--fla {tree}: it has no folder fla/ops; expected the source tree of flash-linear-attention")
    for name, path in (("fla", folder), ("fla.ops", folder / "ops")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        package.__version__ = "0"
        sys.modules[name] = package
    sys.modules["fla"].ops = sys.modules["fla.ops"]


def decays(q):
    return torch.linspace(SHORTEST, LONGEST, q.shape[2], device=q.device)


def decay_per_head(q, k, v):
    """Causal linear attention with a constant decay per head and nothing else: no features, angles or division."""
    from fla.ops.simple_gla import chunk_simple_gla

    return chunk_simple_gla(q, k, v, g_gamma=decays(q), scale=1.0)[0]
