"""The spectral network at the edges: against dense bases, and what must not change it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import dense_spectral
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.graphs.batch import GraphBatch, GraphSamples, Spectrum, collate, pack_starts
from raysim.workloads.graphs.graph_set import Graphs
from raysim.workloads.graphs.spectra import compute_spectra
from raysim.workloads.models.graph_specs import Spectral
from raysim.workloads.models.specformer import (
    EdgeFilter,
    EigenvalueAttention,
    EigenvalueEncoder,
    SpectralBody,
    SpectralConvolution,
    entries_at_edges,
    mean_of_nodes,
)
from tests.made_graphs import Made, graphs_of, path


def with_spectra(graphs: Graphs) -> Graphs:
    return compute_spectra([graphs], "normalized", cache=None)[0]


def featured(made: list[Made], seed: int = 0) -> Graphs:
    """With three random features, of two classes."""
    features = np.random.default_rng(seed).standard_normal((sum(nodes for nodes, _ in made), 3)).astype(np.float32)
    return graphs_of(*made, features=features, labels=np.arange(len(made)) % 2)


def random_graphs(count: int, seed: int, loops: bool = False) -> Graphs:
    """Sizes 1 to 12, sparse to dense, some without an edge."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, 13, count).tolist()
    edges = []
    for size in sizes:
        pairs = [(i, j) for i in range(size) for j in range(i if loops else i + 1, size)]
        chance = generator.uniform(0, 0.7)
        edges.append([pair for pair in pairs if generator.uniform() < chance])
    return featured(list(zip(sizes, edges, strict=True)), seed)


def with_short_eigenvectors(graphs: Graphs) -> Graphs:
    """Eigenvectors of float16's 11 bits: the products of two of them, which a batch keeps in float32, are exact."""
    assert graphs.eigenvectors is not None
    return replace(graphs, eigenvectors=graphs.eigenvectors.astype(np.float16).astype(np.float32))


def in_float64(batch: GraphBatch) -> GraphBatch:
    assert batch.spectrum is not None
    packs = tuple(replace(pack, products=pack.products.double()) for pack in batch.spectrum.packs)
    spectrum = Spectrum(batch.spectrum.eigenvalues.double(), packs)
    return replace(batch, x=batch.x.double(), spectrum=spectrum)


def body(width: int = 3, hidden: int = 8) -> SpectralBody:
    torch.manual_seed(1)
    return SpectralBody(width, hidden, heads=2, layers=2, decoder_activation="none")


def test_entries_at_edges_are_those_of_the_dense_matrix() -> None:
    graphs = with_spectra(random_graphs(40, seed=3, loops=True))
    batch = collate(graphs)
    assert batch.spectrum is not None and len(batch.spectrum.packs) > 3
    new = torch.randn(len(batch.x), 3)
    found = entries_at_edges(new, batch.spectrum)
    assert found.shape == (batch.edges.shape[1], 3)
    for number in range(len(graphs)):
        size = int(graphs.sizes[number])
        vectors = torch.tensor(graphs.subset(np.array([number])).eigenvectors).view(size, size)
        nodes = slice(int(graphs.node_offsets[number]), int(graphs.node_offsets[number + 1]))
        edges = slice(int(graphs.edge_offsets[number]), int(graphs.edge_offsets[number + 1]))
        i, j = torch.tensor(graphs.edges[:, edges])
        for head in range(3):
            dense = vectors @ torch.diag(new[nodes, head]) @ vectors.T
            torch.testing.assert_close(found[edges, head], dense[i, j], atol=1e-6, rtol=1e-5)


def test_the_normalized_laplacian_itself_comes_back_at_the_edges() -> None:
    """λ' = λ gives S = L: on the path 0 - 1 - 2 both edges are −1/√2."""
    graphs = with_spectra(featured([path(3)]))
    batch = collate(graphs)
    assert batch.spectrum is not None
    found = entries_at_edges(batch.spectrum.eigenvalues[:, None], batch.spectrum)
    np.testing.assert_allclose(found[:, 0], [-1 / math.sqrt(2)] * 2, atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_outputs_and_gradients_equal_the_dense_form(training: bool, seed: int) -> None:
    # Without self-loops: with them BatchNorm sees a loop once and other edges twice in the dense form. In float64:
    # gradients of what stands before BatchNorm are differences of large sums, and another processor rounds them apart.
    torch.manual_seed(seed)  # of the first values and the weights: whatever ran before would draw other ones
    graphs = with_short_eigenvectors(with_spectra(random_graphs(30, seed)))
    network = body().train(training).double()
    reference = dense_spectral.DenseBasesBody(network)
    batch = in_float64(collate(graphs))
    weights = torch.randn(len(graphs), 8, dtype=torch.float64)
    outputs = network(batch), reference(dense_spectral.DenseBatch(graphs, batch))
    torch.testing.assert_close(*outputs, atol=1e-9, rtol=1e-9)
    gradients = [torch.autograd.grad((output * weights).sum(), list(network.parameters())) for output in outputs]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


def test_outputs_equal_those_of_dense_filters() -> None:
    graphs = with_spectra(random_graphs(30, seed=4, loops=True))
    network, batch = body().eval(), collate(graphs)
    reference = dense_spectral.DenseFiltersBody(network)(dense_spectral.DenseBatch(graphs, batch))
    torch.testing.assert_close(network(batch), reference, atol=1e-5, rtol=1e-5)


def test_features_do_not_depend_on_the_numbering_of_nodes() -> None:
    generator = np.random.default_rng(5)
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 5)]
    graphs = featured([(6, edges)])
    order = generator.permutation(6)
    place = np.argsort(order)
    moved = Graphs(
        graphs.features[order],
        graphs.node_offsets,
        np.sort(place[np.array(edges)], axis=1).T,
        graphs.edge_offsets,
        graphs.labels,
    )
    network = body().eval()
    first, second = (network(collate(with_spectra(each))) for each in (graphs, moved))
    torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-5)


def test_a_graph_has_the_same_features_alone_and_in_any_batch() -> None:
    graphs = with_spectra(random_graphs(25, seed=7))
    network = body().eval()
    together = network(collate(graphs))
    for number in range(len(graphs)):
        alone = network(collate(graphs.subset(np.array([number]))))
        torch.testing.assert_close(alone[0], together[number], atol=1e-5, rtol=1e-5)


def test_batches_without_edges_and_with_one_edge_train() -> None:
    network = body().train()
    alone: Made = (1, [])
    for made in ([alone, (3, [])], [path(2), alone], [(1, [(0, 0)]), alone]):
        output = network(collate(with_spectra(featured(made))))
        assert output.shape == (2, 8) and bool(torch.isfinite(output).all())


def test_a_graph_of_one_node_trains_alone() -> None:
    """BatchNorm refuses a single row: the row counts as if it were there twice, and only once in the output."""
    convolution = SpectralConvolution(2).train()
    node = torch.tensor([[1.0, -2.0]])
    found = convolution(node, None)
    assert found.shape == (1, 2)
    torch.testing.assert_close(found, convolution(node.expand(2, -1), None)[:1])


def test_eigenvalue_encoding_by_hand() -> None:
    """λ = 0.01, h = 4: angles 1 and 100 · 0.01 / 100 = 0.01; [λ, sin 1, cos 1, sin 0.01, cos 0.01]."""
    encoder = EigenvalueEncoder(4)
    with torch.no_grad():
        encoder.linear.weight.copy_(torch.eye(5)[1:])
        encoder.linear.bias.zero_()
        found = encoder(torch.tensor([0.01]))
    expected = [math.sin(1.0), math.cos(1.0), math.sin(0.01), math.cos(0.01)]
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_softmax_over_incoming_edges_by_hand(scale: float) -> None:
    """Path 0 - 1 - 2: the end nodes take their only neighbor whole, the middle weighs both by exp of the filters."""
    batch = collate(featured([path(3)]))
    filters = torch.tensor([[0.2], [0.7]]) * scale
    values = torch.tensor([[1.0], [10.0], [100.0]])
    found = EdgeFilter(filters, batch).gather(values)
    first = 1 / (1 + math.exp(0.5 * scale))
    np.testing.assert_allclose(found[:, 0], [10.0, first * 1 + (1 - first) * 100, 10.0], rtol=1e-5)


def test_the_convolutions_ffn_has_relu() -> None:
    """It ends in max(0, ·): what is added to a node is nowhere negative; GELU goes down to −0.17."""
    torch.manual_seed(0)
    convolution = SpectralConvolution(8).eval()
    nodes = torch.randn(50, 8)
    added = convolution(nodes, None).detach() - nodes
    assert float(added.min()) > -1e-6 and float((added == 0).float().mean()) > 0.2


def test_dropout_is_where_the_published_network_has_it() -> None:
    """With a rate of 1 what is dropped vanishes: both terms of the attention and of a convolution, and the filters."""
    graphs = with_spectra(random_graphs(12, seed=2))
    batch = collate(graphs)
    assert batch.spectrum is not None
    torch.manual_seed(1)
    network = SpectralBody(3, 8, heads=2, layers=2, decoder_activation="none", dropout=1.0).train()
    tokens = network.eigenvalue_encoder(batch.spectrum.eigenvalues)
    assert torch.equal(network.attention(tokens, batch.spectrum.packs), tokens)
    assert not network.filter_encoder(torch.randn(5, 3)).any()
    edges = EdgeFilter(torch.zeros(batch.edges.shape[1], 8), batch)
    nodes = network.node_encoder(batch.x)
    assert torch.equal(network.convolutions[0](nodes, edges), nodes)
    torch.testing.assert_close(network(batch), mean_of_nodes(nodes, batch))
    network.eval()
    assert not torch.equal(network.attention(tokens, batch.spectrum.packs), tokens)
    assert not torch.equal(network.convolutions[0](nodes, edges), nodes)


def test_attention_weights_are_dropped_too() -> None:
    """Weights alone, as what stands behind the attention is a dropout of its own: set to 0, the draws still matter."""
    graphs = with_spectra(random_graphs(12, seed=2))
    spectrum = collate(graphs).spectrum
    assert spectrum is not None
    torch.manual_seed(1)
    attention = EigenvalueAttention(8, 2, dropout=0.5).train()
    projected = torch.randn(len(spectrum.packs[-1].node_slots), 24)
    first, second = (attention._attend(projected, spectrum.packs[-1]) for _ in range(2))
    assert not torch.equal(first, second)
    attention.eval()
    first, second = (attention._attend(projected, spectrum.packs[-1]) for _ in range(2))
    assert torch.equal(first, second)


def test_dropout_is_on_by_default_as_published() -> None:
    model = Spectral(hidden=8, heads=2).build(InputSpec((3,), 2, "graph"))
    rates = {part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)}
    assert rates == {0.1}


def test_packs_cover_all_graphs_with_little_padding() -> None:
    sizes = np.sort(np.random.default_rng(0).integers(3, 100, 128))
    starts = pack_starts(sizes, sizes + 2)
    assert starts[0] == 0 and starts == sorted(set(starts))
    padded = sum(
        int(sizes[start:stop].max()) * (stop - start)
        for start, stop in zip(starts, [*starts[1:], len(sizes)], strict=True)
    )
    assert padded <= 1.3 * sizes.sum()


def test_a_batch_keeps_labels_with_their_graphs() -> None:
    graphs = random_graphs(20, seed=2)
    graphs.features[:, 0] = np.repeat(graphs.labels, graphs.sizes)  # every node knows its graph's label
    samples = GraphSamples(graphs, "cpu")
    for batch in samples.batches(7, torch.Generator().manual_seed(0)):
        assert torch.equal(batch.x.x[:, 0].long(), batch.y[batch.x.batch])
    assert sum(len(batch) for batch in samples.batches(7)) == 20


@pytest.mark.parametrize(
    ("options", "message"), [(Spectral(hidden=9, heads=3), "hidden 12"), (Spectral(hidden=2), "hidden 4")]
)
def test_widths_that_do_not_fit_are_refused(options: Spectral, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        options.build(InputSpec((3,), 2, "graph"))
