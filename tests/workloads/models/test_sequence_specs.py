from __future__ import annotations

from typing import Any

import pytest
import torch

from raysim.config.registry import resolve
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import InputSpec
from raysim.workloads.models.classifier import task_specific
from raysim.workloads.models.image_specs import Logistic, Mlp
from raysim.workloads.models.mlp_cnn import TableInput
from raysim.workloads.models.sequence_specs import Cnn1d, EmbeddingBag, Lstm, Transformer

CHARACTERS = InputSpec((80,), 80, vocabulary=80)
TABLE = InputSpec((4,), 2, categories=(3, 9))
"""Two numbers and two categories."""


def count(options: Any, inputs: InputSpec) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in options.build(inputs).parameters())


@pytest.mark.parametrize(
    ("options", "inputs", "expected"),
    [
        # 80·8, then 4·256·(8 + 256 + 2) and 4·256·(256 + 256 + 2), then 257·80.
        (Lstm(), CHARACTERS, 640 + 272_384 + 526_336 + 20_560),
        # (80 + 80)·64; a layer: 4·64·65 of attention, 64·256 + 256 + 256·64 + 64, two norms of 128; a norm; 65·80.
        (Transformer(), CHARACTERS, 10_240 + 2 * (16_640 + 33_088 + 256) + 128 + 5_200),
        # 80·64, 65·80.
        (EmbeddingBag(), CHARACTERS, 5_120 + 5_200),
        # 80·64, 5·64·32 + 32, 5·32·64 + 64, 64·128 + 128, 129·80.
        (Cnn1d(), CHARACTERS, 5_120 + 10_272 + 10_304 + 8_320 + 10_320),
        # 5·9·32 + 32, 5·32·64 + 64, 64·32·128 + 128, 129·6.
        (Cnn1d(), InputSpec((9, 128), 6), 1_472 + 10_304 + 262_272 + 774),
        # One column a category: 2 + 3 + 9 inputs.
        (Logistic(), TABLE, 15 * 2),
        # Widths 2 and 5 of the embeddings: 3·2 + 9·5, then 2 + 2 + 5 inputs.
        (Mlp(hidden=4), TABLE, 51 + 10 * 4 + 5 * 2),
        (Mlp(hidden=4, embedding=1), TABLE, 12 + 5 * 4 + 5 * 2),
    ],
)
def test_parameter_counts(options: Any, inputs: InputSpec, expected: int) -> None:
    assert count(options, inputs) == expected


def test_rows_of_a_table_by_hand() -> None:
    """Numbers stay, categories become columns of which one is 1; a number that is no category counts as the nearest."""
    rows = torch.tensor([[0.5, 2.0, 1.0], [-1.0, 0.0, 7.0]])
    assert TableInput((3, 2), 0)(rows).tolist() == [[0.5, 0, 0, 1, 0, 1], [-1, 1, 0, 0, 0, 1]]
    embedded: Any = TableInput((3, 2), 8)
    with torch.no_grad():
        embedded.embeddings[0].weight.copy_(torch.tensor([[1.0, 2], [3, 4], [5, 6]]))
        embedded.embeddings[1].weight.copy_(torch.tensor([[7.0], [8]]))
        assert embedded(rows).tolist() == [[0.5, 5, 6, 8], [-1, 1, 2, 8]]


def test_what_fits_one_table_alone() -> None:
    assert task_specific(Mlp(hidden=(4, 4)).build(TABLE)) == ("body.0", "body.1", "head")
    assert task_specific(Logistic().build(TABLE)) == ("head",)


def test_the_lstm_gives_its_last_state() -> None:
    model: Any = Lstm(hidden=6).build(CHARACTERS)
    tokens = torch.randint(80, (3, 80))
    with torch.no_grad():
        _, (last, _) = model.body.lstm(model.body.embedding(tokens))
        assert torch.equal(model.body(tokens), last[1])
        changed = tokens.clone()
        changed[:, 0] = (changed[:, 0] + 1) % 80
        assert not torch.equal(model.body.lstm(model.body.embedding(changed))[0][:, 0], last[1])


def test_a_token_of_the_transformer_does_not_see_those_after_it() -> None:
    model: Any = Transformer().build(CHARACTERS)
    seen: list[torch.Tensor] = []
    model.body.layers[-1].register_forward_hook(lambda module, inputs, output: seen.append(output))
    tokens = torch.randint(80, (2, 80))
    changed = tokens.clone()
    changed[:, 50] = (changed[:, 50] + 1) % 80
    outputs = [model(tokens), model(changed)]
    torch.testing.assert_close(seen[0][:, :50], seen[1][:, :50])
    assert (seen[0][:, 50:] - seen[1][:, 50:]).abs().amax(dim=-1).min() > 1e-5
    assert not torch.allclose(*outputs)


@pytest.mark.parametrize("name", ["lstm", "transformer", "cnn1d"])
def test_initial_values_follow_the_global_seed(name: str) -> None:
    inputs = InputSpec((9, 32), 6) if name == "cnn1d" else CHARACTERS
    values = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        values.append(resolve("model", name)().build(inputs).state_dict()["head.weight"])
    assert torch.equal(values[0], values[1]) and not torch.equal(values[0], values[2])


@pytest.mark.parametrize("shape", [(3, 8, 8), (9, 3)])
def test_signals_have_two_dimensions_and_a_least_length(shape: tuple[int, ...]) -> None:
    with pytest.raises(WorkloadError, match=r"'cnn1d' needs signals.*length of at least 4.*\((3, 8, 8|9, 3)\)"):
        Cnn1d().check(InputSpec(shape, 6))


def test_heads_divide_the_width() -> None:
    with pytest.raises(WorkloadError, match=r"width = 30 is no multiple of heads = 4\. Set width to 28"):
        Transformer(width=30).check(CHARACTERS)


TEXTS = InputSpec((8,), 3, vocabulary=9, padded=True)


@pytest.mark.parametrize("options", [EmbeddingBag(), Cnn1d(), Lstm(hidden=6), Transformer(width=8)])
def test_padding_changes_nothing(options: Any) -> None:
    """A text of three tokens has the outputs that it has without what fills it up, and padding is given no gradient."""
    torch.manual_seed(0)
    model: Any = options.build(TEXTS)
    filled = torch.tensor([[2, 5, 3, 0, 0, 0, 0, 0], [4, 4, 8, 7, 6, 5, 3, 2]])
    outputs = model(filled)
    torch.testing.assert_close(outputs[:1], model(filled[:1, :3]))
    outputs.sum().backward()
    embedding = getattr(model.body, "embedding", None) or model.body.tokens
    weight = embedding.weight
    assert not weight.grad[0].any() and weight.grad[2].any()
    with torch.no_grad():
        weight[0] = 100.0
        torch.testing.assert_close(model(filled), outputs)
        full = InputSpec((8,), 3, vocabulary=9)
        assert not torch.equal(options.build(full)(filled[:1]), options.build(full)(filled[:1, :3]))


def test_the_mean_of_a_bag_by_hand() -> None:
    model: Any = EmbeddingBag(embedding=2).build(TEXTS)
    with torch.no_grad():
        model.body.embedding.weight.copy_(torch.arange(18.0).reshape(9, 2))
        # Tokens 1 and 3 are [2, 3] and [6, 7]; of no token it is 0.
        assert model.body(torch.tensor([[1, 3, 0], [0, 0, 0]])).tolist() == [[4.0, 5.0], [0.0, 0.0]]
