"""The models a run can train, by name: of images, tables, signals, text and graphs.

Reading this package and the modules of options does not import torch: the process that starts a run needs only
names and options. A model is built by its class: ``Cnn(...).build(task)``.
"""

from __future__ import annotations

MODELS: dict[str, str] = {
    "logistic": "workloads.models.image_specs:Logistic",
    "mlp": "workloads.models.image_specs:Mlp",
    "cnn": "workloads.models.image_specs:Cnn",
    "alexnet": "workloads.models.image_specs:AlexNet",
    "mobilenet": "workloads.models.image_specs:MobileNet",
    "resnet18": "workloads.models.image_specs:ResNet18",
    "resnet50": "workloads.models.image_specs:ResNet50",
    "cnn1d": "workloads.models.sequence_specs:Cnn1d",
    "embedding-bag": "workloads.models.sequence_specs:EmbeddingBag",
    "lstm": "workloads.models.sequence_specs:Lstm",
    "transformer": "workloads.models.sequence_specs:Transformer",
    "spectral": "workloads.models.graph_specs:Spectral",
    "gin": "workloads.models.graph_specs:Gin",
    "graphsage": "workloads.models.graph_specs:GraphSage",
    "gin-star": "workloads.models.graph_specs:StructuralGin",
    "gcn": "workloads.models.graph_specs:Gcn",
}
