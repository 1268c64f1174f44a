"""torchvision without torch's compiler."""

from raysim.workloads._compiler import left_out

with left_out("torch._dynamo.utils"):
    from torchvision import datasets, models

__all__ = ["datasets", "models"]
