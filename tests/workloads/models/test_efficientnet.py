"""EfficientNet-Lite0 from the packages of the extra ``medical``."""

from __future__ import annotations

import pytest
import torch

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.models import pretrained_specs
from raysim.workloads.models.classifier import has_batch_norm
from raysim.workloads.models.pretrained_specs import PACKAGES, EfficientNetLite0

GRAY = InputSpec((1, 64, 64), 3)


def test_imagenet_weights_are_the_packages_and_the_head_is_random() -> None:
    network = pytest.importorskip(PACKAGES[0])
    pytest.importorskip(PACKAGES[1])
    options = EfficientNetLite0(weights_file="imagenet")
    torch.manual_seed(2)
    model = options.build(GRAY).eval()
    assert has_batch_norm(model) and options.batch_norm
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} == {"body", "head"}
    assert sum(
        value.numel() for value in model.body.parameters()
    ) == 4_652_008 - 1_281_000 and model.head.weight.shape == (3, 1280)
    published = network.EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=str(options.weights_path()), image_size=[64, 64]
    ).eval()
    images = torch.randn(2, 1, 64, 64)
    with torch.no_grad():
        features = published.extract_features(images.expand(-1, 3, -1, -1)).mean((2, 3))
        assert torch.allclose(model(images), model.head(features), atol=1e-5)


def test_what_it_cannot_do_with_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkloadError, match=r"at least 32x32 pixels"):
        EfficientNetLite0().build(InputSpec((3, 28, 28), 3))
    with pytest.raises(WorkloadError, match=r"1 or 3 channels, but the workload's have 2"):
        EfficientNetLite0().build(InputSpec((2, 64, 64), 3))
    monkeypatch.setattr(pretrained_specs, "find_spec", lambda name: None)
    with pytest.raises(WorkloadError, match=r"pip install 'raysim\[medical\]'"):
        EfficientNetLite0().build(GRAY)
