"""The used part of PyTorch Geometric, without torch's compiler and the warnings of what it imports."""

import warnings

from raysim.workloads._compiler import left_out

with left_out("torch._dynamo"), warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    from torch_geometric import transforms
    from torch_geometric.data import Data
    from torch_geometric.datasets import TUDataset
    from torch_geometric.nn import GATConv, GCNConv, MessagePassing, SAGEConv, SimpleConv, global_add_pool
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

__all__ = [
    "Data",
    "GATConv",
    "GCNConv",
    "MessagePassing",
    "SAGEConv",
    "SimpleConv",
    "TUDataset",
    "gcn_norm",
    "global_add_pool",
    "transforms",
]
