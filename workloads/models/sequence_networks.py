"""Networks of token sequences, int64 [B, length], in which padding (token 0 of a padded task) changes nothing."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from raysim.workloads.text.tokens import PADDING


def of_last_token(features: Tensor, tokens: Tensor, padded: bool) -> Tensor:
    """Features [B, length, width] of the last token of each text that is no padding, [B, width]."""
    if not padded:
        return features[:, -1]
    last = (tokens != PADDING).sum(1).sub(1).clamp(min=0)
    return features.gather(1, last[:, None, None].expand(-1, 1, features.shape[2]))[:, 0]


class BagBody(nn.Module):
    """The mean of the embeddings of the tokens that are no padding, [B, width]; of none 0."""

    def __init__(self, vocabulary: int, width: int, padded: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.padded = padded

    def forward(self, tokens: Tensor) -> Tensor:
        features: Tensor = self.embedding(tokens)
        if not self.padded:
            return features.mean(1)
        real = (tokens != PADDING).to(features.dtype)
        return (features * real[:, :, None]).sum(1) / real.sum(1, keepdim=True).clamp(min=1)


class CnnBody(nn.Module):
    """Two convolutions of 5 tokens, the largest value of each channel in the text, a fully connected layer [B, units].

    Embeddings and features of padding are 0, as beyond the ends of a text: one with padding has the features of one
    without.
    """

    def __init__(self, vocabulary: int, width: int, units: int, padded: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(*channels, kernel_size=5, padding=2) for channels in ((width, 32), (32, 64))
        )
        self.connected = nn.Linear(64, units)
        self.padded = padded

    def forward(self, tokens: Tensor) -> Tensor:
        features: Tensor = self.embedding(tokens).transpose(1, 2)
        real = (tokens != PADDING)[:, None].to(features.dtype) if self.padded else None
        features = features if real is None else features * real
        for convolution in self.convolutions:
            features = torch.relu(convolution(features))
            features = features if real is None else features * real
        found: Tensor = torch.relu(self.connected(features.amax(2)))
        return found


class LstmBody(nn.Module):
    """LEAF's stacked LSTM: tokens [B, length] to the last layer's state at the last token [B, hidden]."""

    def __init__(self, vocabulary: int, embedding: int, hidden: int, layers: int, padded: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True)
        self.padded = padded

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        return of_last_token(states, tokens, self.padded)


class TransformerLayers(NamedTuple):
    """Sizes of a transformer: width of a token's features, layers, heads, and dropout in each layer."""

    width: int
    layers: int
    heads: int
    dropout: float


class DecoderBody(nn.Module):
    """Tokens [B, length] to the features of the last one [B, width]; each looks at those before it and itself."""

    def __init__(self, vocabulary: int, length: int, sizes: TransformerLayers, padded: bool) -> None:
        super().__init__()
        width = sizes.width
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, sizes.heads, 4 * width, sizes.dropout, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(sizes.layers)
        )
        self.norm = nn.LayerNorm(width)
        self.padded = padded
        self.task_specific = ("tokens", "positions")

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        features = self.tokens(tokens) + self.positions(torch.arange(length, device=tokens.device))
        for layer in self.layers:
            features = layer(features, src_mask=mask, is_causal=True)
        last: Tensor = self.norm(of_last_token(features, tokens, self.padded))
        return last
