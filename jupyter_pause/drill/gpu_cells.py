# Copyright (c) jupyter-pause contributors.
# Distributed under the terms of the Apache License 2.0.
"""The cells of the drill's GPU part (Python 3.9 syntax: they run in the person's kernel)."""

from __future__ import annotations

#: What must be the same before and after, in words.
PROMISES = {
    "arrays": "every array is back on its device, byte for byte (SHA-256)",
    "ties": "what was one piece of memory is one again: a view, and tied parameters and their optimizer with PyTorch",
    "random": "the device's random numbers go on where they were (CuPy does not tell its state: nothing to compare)",
}

LIBRARY = """
def _drill_gpu_library():
    try:
        import torch
        if torch.cuda.is_available():
            return "torch"
    except ImportError:
        pass
    try:
        import cupy
        if cupy.cuda.runtime.getDeviceCount() > 0:
            return "cupy"
    except Exception:
        pass
    return None
"""
LIBRARY_EXPRESSION = "globals().pop('_drill_gpu_library')()"

_TORCH = """
import torch
device = torch.device("{device}")
large = torch.randint(0, 256, ({size},), dtype=torch.uint8, device=device)
view = large[: {size} // 2]
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).to(device)
model[2].weight = model[0].weight
optimizer = torch.optim.Adam(model.parameters())
model(torch.rand(8, 256, device=device)).sum().backward()
optimizer.step()
"""

_CUPY = """
import cupy
large = cupy.random.randint(0, 256, {size}, dtype="uint8")
view = large[: {size} // 2]
parts = [large, cupy.arange(1000.0)]
"""

#: Leaves nothing behind: the function is taken out of the namespace by the expression that calls it.
PROBE = """
def _drill_gpu_probe():
    import hashlib, json, os
    found = {}
    def look(name, ask):
        try:
            found[name] = {"value": ask()}
        except BaseException as error:
            found[name] = {"error": type(error).__name__ + ": " + str(error)}
    def digest(array):
        if "model" in globals():
            array = array.detach().cpu().contiguous().view(torch.uint8).numpy()
        else:
            array = cupy.asnumpy(array)
        return hashlib.sha256(memoryview(array).cast("B")).hexdigest()
    def arrays():
        if "model" not in globals():
            return [str(getattr(large, "device", "")), digest(large), *[digest(part) for part in parts]]
        moments = [part["exp_avg"] for part in optimizer.state.values()]
        tensors = [*model.parameters(), *moments]
        return [str(large.device), digest(large), *[str(t.device) + " " + digest(t)[:8] for t in tensors]]
    def shares():
        before = int(large[0])
        large[0] = (before + 1) % 256
        seen = int(view[0]) == int(large[0])
        large[0] = before
        return seen
    def ties():
        if "model" not in globals():
            return [shares(), parts[0] is large]
        known = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        mine = list(model.parameters())
        same = len(known) == len(mine) and all(one is other for one, other in zip(known, mine))
        return [shares(), model[2].weight is model[0].weight, same]
    def random():
        if "model" in globals():
            state = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
            return hashlib.sha256(state.numpy().tobytes()).hexdigest()
        return "CuPy does not tell"
    look("arrays", arrays)
    look("ties", ties)
    look("random", random)
    found["pid"] = {"value": os.getpid()}
    return json.dumps(found)
"""
PROBE_EXPRESSION = "globals().pop('_drill_gpu_probe')()"


def build(library: str, size: int, device: str = "cuda") -> str:
    """The cell that makes the arrays: `library` is torch or cupy, `size` bytes, `device` PyTorch's name of it."""
    return {"torch": _TORCH, "cupy": _CUPY}[library].format(size=size, device=device)
