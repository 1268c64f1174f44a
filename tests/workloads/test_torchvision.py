"""Networks and data sets of torchvision without torch's compiler, which is there for whoever asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "[name for name in ('torch._dynamo', 'sympy', 'triton') if name in sys.modules]"
BUILT = f"""
import sys
import torch
from workloads.images.torchvision_sets import Cifar10
from workloads.models import torchvision_models
from workloads._torchvision import datasets
torchvision_models.mobilenet_v2(3, 10, small=True, width=0.1, dropout=0.0)(torch.zeros(2, 3, 8, 8)).sum().backward()
assert datasets.CIFAR10.__module__ == "torchvision.datasets.cifar"
assert not {LOADED} and "torch._dynamo.utils" not in sys.modules, {LOADED}
"""
ASKED = """
from torchvision.ops import roi_align
supported = sys.modules["torchvision.ops.roi_align"].is_compile_supported
import torch._dynamo.utils
assert supported("cpu") == torch._dynamo.utils.is_compile_supported("cpu")
assert sys.modules["torch._dynamo.utils"].__file__
assert float(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(()))) == 2
"""
FIRST = """
import sys
import torch._dynamo.utils as real
from workloads.models import torchvision_models
assert sys.modules[real.__name__] is real
"""
WHILE = """
import sys
from workloads._torchvision import _compiler_left_out
with _compiler_left_out():
    from torch._dynamo.utils import is_compile_supported
    assert is_compile_supported("cpu") and "torch._dynamo" in sys.modules
assert sys.modules["torch._dynamo.utils"].is_compile_supported is not is_compile_supported
"""


@pytest.mark.parametrize("code", [BUILT + ASKED, FIRST, WHILE], ids=["asked for afterwards", "before", "meanwhile"])
def test_the_compiler_is_left_alone(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
