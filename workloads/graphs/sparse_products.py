"""Products of a constant sparse matrix and a dense one, whose gradient is by the dense one alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

Dropout = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix [n, m] and its transpose, both by rows: neither direction of a product makes the other anew."""

    rows: Tensor
    """The matrix as torch's CSR [n, m]."""
    columns: Tensor
    """Its transpose as torch's CSR [m, n]."""
    order: Tensor
    """int64 [entries]: which entry of ``rows`` each of ``columns`` is."""

    @classmethod
    def of(cls, dense: Tensor) -> Sparse:
        """The entries of a dense matrix that are not 0."""
        places = dense.nonzero().T
        return cls.of_entries(places, dense[tuple(places)], (dense.shape[0], dense.shape[1]))

    @classmethod
    def of_entries(cls, places: Tensor, values: Tensor, shape: tuple[int, int]) -> Sparse:
        """A matrix of entries at places [2, entries], in ascending order by row and column."""
        order = torch.argsort(places[1], stable=True)
        rows = _by_rows(places, values, shape)
        return cls(rows, _by_rows(places.flip(0)[:, order], values[order], (shape[1], shape[0])), order)

    def changed(self, change: Dropout) -> Sparse:
        """The matrix with its entries changed: dropout of these alone is that of the whole, as 0 dropped is 0."""
        values = change(self.rows.values())
        return replace(self, rows=_like(self.rows, values), columns=_like(self.columns, values[self.order]))

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(dense.to(self.rows.dtype), self.rows, self.columns)
        return product


def symmetric(places: Tensor, values: Tensor, size: int) -> Sparse:
    """A symmetric matrix [size, size] of entries at places [2, entries], in any order."""
    order = torch.argsort(places[0] * size + places[1], stable=True)
    rows = _by_rows(places[:, order], values[order], (size, size))
    return Sparse(rows, rows, torch.arange(len(values), device=values.device))


class _Product(torch.autograd.Function):
    """matrix @ dense, with the gradient matrixᵀ @ gradient by the dense factor."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        ctx.columns = columns
        with torch.autocast(dense.device.type, enabled=False):  # sparse products are in float32
            return rows @ dense.contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.columns @ gradients[0].contiguous(), None, None


def _by_rows(places: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    starts = torch.zeros(shape[0] + 1, dtype=torch.int64, device=values.device)
    starts[1:] = torch.bincount(places[0], minlength=shape[0]).cumsum(0)
    return _csr(starts, places[1].contiguous(), values, shape)


def _like(matrix: Tensor, values: Tensor) -> Tensor:
    return _csr(matrix.crow_indices(), matrix.col_indices(), values, (matrix.shape[0], matrix.shape[1]))


def _csr(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta", category=UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)
