"""The image and graph models a run can train, by name.

Reading this package and the modules of options does not import torch: the process that starts a run needs only
names and options. A model is built with `model_class(name)(**options).build(task)`.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, cast

from workloads.errors import WorkloadError

if TYPE_CHECKING:
    from workloads.models.image_specs import ModelOptions

MODELS: dict[str, str] = {
    "logistic": "workloads.models.image_specs:Logistic",
    "mlp": "workloads.models.image_specs:Mlp",
    "cnn": "workloads.models.image_specs:Cnn",
    "alexnet": "workloads.models.image_specs:AlexNet",
    "mobilenet": "workloads.models.image_specs:MobileNet",
    "resnet18": "workloads.models.image_specs:ResNet18",
    "resnet50": "workloads.models.image_specs:ResNet50",
    "spectral": "workloads.models.spectral_specs:Spectral",
    "gin": "workloads.models.graph_specs:Gin",
    "graphsage": "workloads.models.graph_specs:GraphSage",
    "gin-star": "workloads.models.graph_specs:StructuralGin",
}


def model_class(name: str) -> type[ModelOptions]:
    """The options class (a frozen dataclass with `build`) of a model; WorkloadError for a name that is not known."""
    if name not in MODELS:
        nearest = get_close_matches(name, MODELS, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise WorkloadError(f"Unknown model {name!r}.{hint} Known models: {', '.join(MODELS)}.")
    module, _, attribute = MODELS[name].partition(":")
    return cast("type[ModelOptions]", getattr(import_module(module), attribute))
