"""The workloads by name. A workload's module is imported only when it is asked for."""

from __future__ import annotations

WORKLOADS: dict[str, str] = {
    "digits": "raysim.workloads.images.digits:Digits",
    "cifar10": "raysim.workloads.images.torchvision_sets:Cifar10",
    "cifar10-full": "raysim.workloads.images.torchvision_sets:Cifar10Full",
    "cifar100": "raysim.workloads.images.torchvision_sets:Cifar100",
    "mnist": "raysim.workloads.images.torchvision_sets:Mnist",
    "fashion-mnist": "raysim.workloads.images.torchvision_sets:FashionMnist",
    "femnist": "raysim.workloads.images.femnist:Femnist",
    "digit-domains": "raysim.workloads.images.digit_domains:DigitDomains",
    "folder": "raysim.workloads.images.folder:Folder",
    "npz": "raysim.workloads.images.npz:Npz",
    "retinamnist": "raysim.workloads.images.medical:RetinaMnist",
    "covid-xray": "raysim.workloads.images.medical:CovidXray",
    "retina": "raysim.workloads.images.ssl_fl:Retina",
    "covid-fl": "raysim.workloads.images.ssl_fl:CovidFl",
    "table": "raysim.workloads.tables.table:Table",
    "huggingface": "raysim.workloads.huggingface.huggingface:HuggingFace",
    "adult": "raysim.workloads.tables.uci:Adult",
    "heart-disease": "raysim.workloads.tables.uci:HeartDisease",
    "text": "raysim.workloads.text.text:Text",
    "tinyshakespeare": "raysim.workloads.text.text:TinyShakespeare",
    "shakespeare": "raysim.workloads.text.text:Shakespeare",
    "har": "raysim.workloads.signals.har:Har",
    "synthetic": "raysim.workloads.images.synthetic:Synthetic",
    "tudataset": "raysim.workloads.graphs.tudataset:TuDataset",
    "nodes": "raysim.workloads.graphs.nodes:Nodes",
    "ogb": "raysim.workloads.graphs.ogb:Ogb",
    "toy-graphs": "raysim.workloads.graphs.toy:ToyGraphs",
}
