"""FedSSP's network written plainly, with dense n x n bases: the references for workloads/models/specformer.py.

Everything is padded to the largest graph of the batch, and S_m = U diag(λ'_m) Uᵀ is built in full for every head. In
``DenseBasesBody`` the filter encoder then runs over both directions of every edge; in ``DenseFiltersBody``, the form
that a reader of the paper's equations would write first, it runs over all n x n pairs, and edges are a mask. The
parameters are those of a ``SpectralBody``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from raysim.workloads.graphs.batch import GraphBatch
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.models.specformer import SpectralBody, mean_of_nodes


class DenseBatch:
    """λ [B, n] and U [B, n, n] in the type of the batch's features, zeros for padding, beside the ordinary batch."""

    def __init__(self, graphs: Graphs, batch: GraphBatch) -> None:
        self.batch = batch
        sizes = torch.tensor(graphs.sizes)
        n = int(sizes.max())
        self.present = torch.arange(n)[None] < sizes[:, None]
        self.eigenvalues = batch.x.new_zeros(len(graphs), n)
        self.eigenvalues[self.present] = torch.tensor(graphs.eigenvalues).to(batch.x)
        self.eigenvectors = batch.x.new_zeros(len(graphs), n, n)
        start = 0
        for graph, size in enumerate(sizes.tolist()):
            own = torch.tensor(graphs.eigenvectors[start : start + size * size]).view(size, size)
            self.eigenvectors[graph, :size, :size] = own
            start += size * size
        directed = batch.edge_index
        within = directed - torch.tensor(graphs.node_offsets)[batch.batch[directed[0]]]
        self.graph, self.source, self.target = batch.batch[directed[0]], within[0], within[1]
        self.sources, self.targets = directed[0], directed[1]


class DenseBasesBody(torch.nn.Module):
    """The same function of the same parameters as ``body``, by dense matrices."""

    def __init__(self, body: SpectralBody) -> None:
        super().__init__()
        self.body = body

    def forward(self, dense: DenseBatch) -> Tensor:
        body: Any = self.body
        bases = dense_bases(body, dense)
        filters = body.filter_encoder(bases[dense.graph, dense.source, dense.target])
        count = len(dense.batch.x)
        index = dense.targets[:, None].expand_as(filters)
        largest = filters.new_full((count, filters.shape[1]), -torch.inf)
        largest = largest.scatter_reduce(0, index, filters.detach(), "amax")
        weights = (filters - largest[dense.targets]).exp()
        weights = weights / torch.zeros_like(largest).index_add(0, dense.targets, weights)[dense.targets]
        nodes = body.node_encoder(dense.batch.x)
        for convolution in body.convolutions:
            sent = weights * convolution.before(nodes)[dense.sources]
            nodes = nodes + torch.zeros_like(nodes).index_add(0, dense.targets, sent)
            nodes = nodes + convolution.ffn(nodes)
        return mean_of_nodes(nodes, dense.batch)


class DenseFiltersBody(torch.nn.Module):
    """The same, with filters [B, n, n, h] for all pairs. While training, their BatchNorm sees all pairs too."""

    def __init__(self, body: SpectralBody) -> None:
        super().__init__()
        self.body = body

    def forward(self, dense: DenseBatch) -> Tensor:
        body: Any = self.body
        graphs, n = dense.present.shape
        bases = dense_bases(body, dense)
        filters = body.filter_encoder(bases.flatten(0, 2)).view(graphs, n, n, -1)
        edge = torch.zeros(graphs, n, n, 1, dtype=torch.bool)
        edge[dense.graph, dense.target, dense.source] = True
        weights = filters.masked_fill(~edge, -torch.inf).softmax(dim=2)
        weights = torch.where(edge, weights, torch.zeros_like(weights))  # a node without edges has no softmax
        nodes = body.node_encoder(dense.batch.x)
        for convolution in body.convolutions:
            padded = nodes.new_zeros(graphs, n, nodes.shape[1])
            padded[dense.present] = convolution.before(nodes)
            nodes = nodes + torch.einsum("bijh,bjh->bih", weights, padded)[dense.present]
            nodes = nodes + convolution.ffn(nodes)
        return mean_of_nodes(nodes, dense.batch)


def dense_bases(body: Any, dense: DenseBatch) -> Tensor:
    """[1_{i=j}, S_1 … S_M] of all pairs: [B, n, n, M + 1]."""
    graphs, n = dense.present.shape
    tokens = body.eigenvalue_encoder(dense.eigenvalues.flatten()).view(graphs, n, -1)
    new = body.decoder(attention(body.attention, tokens, dense.present))  # [B, n, M]
    u = dense.eigenvectors
    each = (u @ torch.diag_embed(new[..., head]) @ u.mT for head in range(new.shape[2]))
    return torch.stack([torch.eye(n).to(u).expand(graphs, n, n), *each], dim=3)


def attention(block: Any, tokens: Tensor, present: Tensor) -> Tensor:
    """The attention block on padded tokens [B, n, h]."""
    graphs, n, hidden = tokens.shape
    projected = block.queries_keys_values(block.attention_norm(tokens))
    parts = projected.view(graphs, n, 3, block.heads, hidden // block.heads).permute(2, 0, 3, 1, 4)
    mixed = scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=present[:, None, None, :])
    tokens = tokens + block.output(mixed.transpose(1, 2).reshape(graphs, n, hidden))
    result: Tensor = tokens + block.ffn(block.ffn_norm(tokens))
    return result
