"""The workloads by name. A workload's module is imported only when it is asked for."""

from __future__ import annotations

WORKLOADS: dict[str, str] = {
    "digits": "workloads.images.digits:Digits",
    "cifar10": "workloads.images.torchvision_sets:Cifar10",
    "cifar10-full": "workloads.images.torchvision_sets:Cifar10Full",
    "cifar100": "workloads.images.torchvision_sets:Cifar100",
    "mnist": "workloads.images.torchvision_sets:Mnist",
    "fashion-mnist": "workloads.images.torchvision_sets:FashionMnist",
    "femnist": "workloads.images.femnist:Femnist",
    "digit-domains": "workloads.images.digit_domains:DigitDomains",
    "folder": "workloads.images.folder:Folder",
    "npz": "workloads.images.npz:Npz",
    "retinamnist": "workloads.images.medical:RetinaMnist",
    "covid-xray": "workloads.images.medical:CovidXray",
    "retina": "workloads.images.ssl_fl:Retina",
    "covid-fl": "workloads.images.ssl_fl:CovidFl",
    "table": "workloads.tables.table:Table",
    "huggingface": "workloads.huggingface.huggingface:HuggingFace",
    "adult": "workloads.tables.uci:Adult",
    "heart-disease": "workloads.tables.uci:HeartDisease",
    "text": "workloads.text.text:Text",
    "tinyshakespeare": "workloads.text.text:TinyShakespeare",
    "shakespeare": "workloads.text.text:Shakespeare",
    "har": "workloads.har:Har",
    "synthetic": "workloads.images.synthetic:Synthetic",
    "tudataset": "workloads.graphs.tudataset:TuDataset",
    "nodes": "workloads.graphs.nodes:Nodes",
    "ogb": "workloads.graphs.ogb:Ogb",
    "toy-graphs": "workloads.graphs.toy:ToyGraphs",
}
