"""The models a run can train, by name: of images, tables, signals, text and graphs.

Reading this package and the modules of options does not import torch: the process that starts a run needs only
names and options. A model is built by its class: ``Cnn(...).build(task)``.
"""

from __future__ import annotations

MODELS: dict[str, str] = {
    "logistic": "raysim.workloads.models.image_specs:Logistic",
    "mlp": "raysim.workloads.models.image_specs:Mlp",
    "cnn": "raysim.workloads.models.image_specs:Cnn",
    "alexnet": "raysim.workloads.models.image_specs:AlexNet",
    "mobilenet": "raysim.workloads.models.image_specs:MobileNet",
    "resnet18": "raysim.workloads.models.image_specs:ResNet18",
    "resnet50": "raysim.workloads.models.image_specs:ResNet50",
    "efficientnet-lite0": "raysim.workloads.models.pretrained_specs:EfficientNetLite0",
    "cnn1d": "raysim.workloads.models.sequence_specs:Cnn1d",
    "embedding-bag": "raysim.workloads.models.sequence_specs:EmbeddingBag",
    "lstm": "raysim.workloads.models.sequence_specs:Lstm",
    "transformer": "raysim.workloads.models.sequence_specs:Transformer",
    "spectral": "raysim.workloads.models.graph_specs:Spectral",
    "gin": "raysim.workloads.models.graph_specs:Gin",
    "graphsage": "raysim.workloads.models.graph_specs:GraphSage",
    "gin-star": "raysim.workloads.models.graph_specs:StructuralGin",
    "gcn": "raysim.workloads.models.node_specs:Gcn",
    "gat": "raysim.workloads.models.node_specs:Gat",
    "sage": "raysim.workloads.models.node_specs:Sage",
    "sgc": "raysim.workloads.models.node_specs:Sgc",
    "gamlp": "raysim.workloads.models.node_specs:Gamlp",
}
