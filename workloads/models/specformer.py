"""The spectral graph network of FedSSP: a Specformer whose filters are evaluated at a graph's edges only.

Sources: Bo et al. 2023, Specformer: spectral graph neural networks meet transformers (ICLR); Tan et al. 2024, FedSSP,
section 4. The print builds dense n x n bases S_m = U diag(λ'_m) Uᵀ; only their entries at edges are used, and

    S_m(i, j) = Σ_k U_ik λ'_mk U_jk = Σ_k (U_ik U_jk) λ'_mk

is one product of a constant [edges, n] (in every batch's packs) with the new eigenvalues [n, heads]. S is symmetric, so
all up to the softmax is computed once per undirected edge; dropout in the filter encoder is then the same in both
directions of an edge, which the published code draws apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from raysim.workloads.errors import WorkloadError
from raysim.workloads.graphs.batch import GraphBatch, Pack, Spectrum
from raysim.workloads.models.dropout import GeneratorDropout


class EigenvalueEncoder(nn.Module):
    """Z = [λ ‖ ρ(λ)] W_eig with ρ(λ)_2i = sin(100 λ / 10000^(2i/h)), ρ(λ)_2i+1 = cos of the same: [N] -> [N, h]."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.linear = nn.Linear(hidden + 1, hidden)

    def forward(self, eigenvalues: Tensor) -> Tensor:
        powers = torch.arange(0, self.hidden, 2, device=eigenvalues.device) / self.hidden
        angles = eigenvalues[:, None] * (100.0 * torch.exp(-math.log(10000.0) * powers))
        waves = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
        encoded: Tensor = self.linear(torch.cat([eigenvalues[:, None], waves], dim=1))
        return encoded


class EigenvalueAttention(nn.Module):
    """A pre-norm block of multi-head attention and FFN over the eigenvalues of each graph: [N, h] -> [N, h].

    Dropout is on the attention weights, behind the attention and behind the FFN.
    """

    def __init__(self, hidden: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = GeneratorDropout(dropout)
        self.attention_norm = nn.LayerNorm(hidden)
        self.queries_keys_values = nn.Linear(hidden, 3 * hidden)
        self.output = nn.Linear(hidden, hidden)
        self.ffn_norm = nn.LayerNorm(hidden)
        self.ffn = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, hidden))

    def forward(self, tokens: Tensor, packs: tuple[Pack, ...]) -> Tensor:
        projected = self.queries_keys_values(self.attention_norm(tokens))
        # Split at once: a slice for each pack would cost a backward pass over all tokens for each.
        parts = projected.split([len(pack.node_slots) for pack in packs])
        mixed = torch.cat([self._attend(part, pack) for part, pack in zip(parts, packs, strict=True)])
        tokens = tokens + self.dropout(self.output(mixed))
        result: Tensor = tokens + self.dropout(self.ffn(self.ffn_norm(tokens)))
        return result

    def _attend(self, projected: Tensor, pack: Pack) -> Tensor:
        """Attention within each graph of a pack: [nodes, 3h] -> [nodes, h]."""
        graphs, size = pack.present.shape
        width = projected.shape[1] // 3
        full = len(pack.node_slots) == graphs * size
        padded = projected if full else _spread(projected, pack.node_slots, graphs * size)
        parts = padded.view(graphs, size, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        present = None if full else pack.present[:, None, None, :]
        attended = self._weighted(parts[0], parts[1], parts[2], present)
        flat = attended.transpose(1, 2).reshape(graphs * size, width)
        return flat if full else flat.index_select(0, pack.node_slots)

    def _weighted(self, queries: Tensor, keys: Tensor, values: Tensor, present: Tensor | None) -> Tensor:
        """softmax(Q Kᵀ / √d) V: three times [graphs, heads, size, d] -> the same.

        Where weights are dropped it is torch's own arithmetic without its search for rows that have nothing to attend
        to: every graph has a node.
        """
        if not self.training or self.dropout.p == 0:
            return scaled_dot_product_attention(queries, keys, values, attn_mask=present)
        root = math.sqrt(1 / math.sqrt(queries.shape[-1]))
        scores = (queries * root) @ (keys * root).transpose(2, 3)
        if present is not None:
            scores += scores.new_zeros(present.shape).masked_fill_(~present, -torch.inf)
        weighted: Tensor = self.dropout(scores.softmax(dim=3)) @ values
        return weighted


class FilterEncoder(nn.Sequential):
    """The MLP [1_{i=j}, S_1 … S_M] -> h on edges, with BatchNorm and GELU twice, then dropout: [E, M + 1] -> [E, h]."""

    def __init__(self, heads: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__(
            nn.Linear(heads + 1, hidden),
            nn.BatchNorm1d(hidden),
            nn.GELU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.GELU(),
            GeneratorDropout(dropout),
        )

    def forward(self, bases: Tensor) -> Tensor:
        return of_rows(super().forward, bases, self.training)


def of_rows(layers: Callable[[Tensor], Tensor], rows: Tensor, training: bool) -> Tensor:
    """The layers' output for rows [N, ·], of which training may have a single one: a graph of one node, say.

    BatchNorm refuses to train on a single row; the row twice has the same mean, and variance 0.
    """
    return layers(rows.expand(2, -1))[:1] if training and len(rows) == 1 else layers(rows)


class SpectralConvolution(nn.Module):
    """x_i ← x_i + Σ_{j→i} S_ij ⊙ GELU(W x_j), then x ← x + FFN(x), the FFN with BatchNorm and ReLU, twice.

    Dropout is on both terms that are added to x.
    """

    def __init__(self, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.before = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU())
        self.ffn = nn.Sequential(
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
        )
        self.dropout = GeneratorDropout(dropout)

    def forward(self, nodes: Tensor, edges: EdgeFilter | None) -> Tensor:
        if edges is not None:
            nodes = nodes + self.dropout(edges.gather(self.before(nodes)))
        result: Tensor = nodes + self.dropout(of_rows(self.ffn, nodes, self.training))
        return result


class EdgeFilter:
    """S after the softmax over each node's incoming edges, kept as numerators [E, h] and denominators [N, h].

    Numerators exp(S − shift) are the same for both directions of an edge. The shift is half of each channel's largest
    S: a softmax does not change with it, and since GELU ends the filter encoder (S > −0.2), nothing overflows or
    vanishes up to S = 160; above that the exponent is cut off.
    """

    def __init__(self, filters: Tensor, batch: GraphBatch) -> None:
        self._target, self._source = batch.edges[0], batch.edges[1]
        # A self-loop is one incoming edge of its node, any other edge one of each of its two.
        self._apart = (self._target != self._source).nonzero()[:, 0]
        self._loops = len(self._apart) < len(self._target)
        shift = filters.detach().amax(dim=0) / 2
        self._numerators = (filters - shift).clamp(max=80.0).exp()
        nodes = len(batch.x)
        self._inverse = self._sum(self._numerators, self._numerators, nodes).clamp(min=1e-35).reciprocal()

    def gather(self, values: Tensor) -> Tensor:
        """Σ_{j→i} S_ij ⊙ v_j for every node i: [N, h] -> [N, h]; zero for a node without edges."""
        to_target = self._numerators * values.index_select(0, self._source)
        to_source = self._numerators * values.index_select(0, self._target)
        return self._sum(to_target, to_source, len(values)) * self._inverse

    def _sum(self, to_target: Tensor, to_source: Tensor, nodes: int) -> Tensor:
        total = to_target.new_zeros(nodes, to_target.shape[1]).index_add_(0, self._target, to_target)
        if self._loops:
            return total.index_add_(0, self._source[self._apart], to_source.index_select(0, self._apart))
        return total.index_add_(0, self._source, to_source)


class SpectralBody(nn.Module):
    """GraphBatch of B graphs with spectra -> graph features [B, h], the mean over each graph's nodes.

    FedSSP shares ``eigenvalue_encoder`` and ``filter_encoder``; all else is local.
    """

    task_specific = ("node_encoder",)

    def __init__(
        self, features: int, hidden: int, heads: int, layers: int, decoder_activation: str, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.node_encoder = nn.Sequential(nn.Linear(features, hidden), nn.ReLU())
        self.eigenvalue_encoder = EigenvalueEncoder(hidden)
        self.attention = EigenvalueAttention(hidden, heads, dropout)
        activation = {"none": nn.Identity(), "relu": nn.ReLU(), "tanh": nn.Tanh()}[decoder_activation]
        self.decoder = nn.Sequential(nn.Linear(hidden, heads), activation)
        self.filter_encoder = FilterEncoder(heads, hidden, dropout)
        self.convolutions = nn.ModuleList(SpectralConvolution(hidden, dropout) for _ in range(layers))

    def forward(self, batch: GraphBatch) -> Tensor:
        if batch.spectrum is None:
            raise WorkloadError("the spectral model needs the graphs' spectra, and this batch has none")
        edges = None
        if batch.edges.shape[1]:
            tokens = self.attention(self.eigenvalue_encoder(batch.spectrum.eigenvalues), batch.spectrum.packs)
            bases = entries_at_edges(self.decoder(tokens), batch.spectrum)
            same = (batch.edges[0] == batch.edges[1]).to(bases.dtype)
            edges = EdgeFilter(self.filter_encoder(torch.cat([same[:, None], bases], dim=1)), batch)
        nodes = self.node_encoder(batch.x)
        for convolution in self.convolutions:
            nodes = convolution(nodes, edges)
        return mean_of_nodes(nodes, batch)


def entries_at_edges(new_eigenvalues: Tensor, spectrum: Spectrum) -> Tensor:
    """S_m(i, j) = Σ_k U_ik λ'_mk U_jk at every undirected edge: λ' [N, M] -> [E, M]."""
    parts = []
    own = torch.split(new_eigenvalues, [len(pack.node_slots) for pack in spectrum.packs])
    for values, pack in zip(own, spectrum.packs, strict=True):
        graphs, _, size = pack.products.shape
        padded = _spread(values, pack.node_slots, graphs * size).view(graphs, size, -1)
        entries = torch.bmm(pack.products, padded).flatten(0, 1)
        parts.append(entries.index_select(0, pack.edge_slots))
    return torch.cat(parts)


def mean_of_nodes(nodes: Tensor, batch: GraphBatch) -> Tensor:
    """Mean over the nodes of each graph: [N, h] -> [B, h]."""
    sums = nodes.new_zeros(batch.num_graphs, nodes.shape[1]).index_add_(0, batch.batch, nodes)
    return sums / torch.bincount(batch.batch, minlength=batch.num_graphs)[:, None]


def _spread(rows: Tensor, slots: Tensor, count: int) -> Tensor:
    """Rows at their slots of a larger table, zeros elsewhere."""
    return rows.new_zeros(count, rows.shape[1]).index_copy_(0, slots, rows)
