"""Networks of token sequences, int64 [B, length]: stacked LSTMs and a small decoder-only transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LstmBody(nn.Module):
    """LEAF's stacked LSTM: tokens [B, length] to the last layer's last state [B, hidden]."""

    def __init__(self, vocabulary: int, embedding: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, layers, batch_first=True)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        last: Tensor = states[:, -1]
        return last


class DecoderBody(nn.Module):
    """Tokens [B, length] to the features of the last one [B, width]; each looks at those before it and itself."""

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 4 * width, dropout, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.task_specific = ("tokens", "positions")

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        features = self.tokens(tokens) + self.positions(torch.arange(length, device=tokens.device))
        for layer in self.layers:
            features = layer(features, src_mask=mask, is_causal=True)
        last: Tensor = self.norm(features[:, -1])
        return last
