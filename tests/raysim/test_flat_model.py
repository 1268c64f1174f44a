"""The flat buffer: views, order, shared and kept parts, and the rule for BatchNorm."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from raysim.errors import ConfigError
from raysim.flat_model import FlatModel, all_names, batch_norm_names


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))


def shared_network() -> tuple[torch.nn.Module, FlatModel]:
    """Such a network, all of which is shared."""
    module = network()
    return module, FlatModel(module, all_names(module))


def test_values_survive_the_move_into_the_buffer() -> None:
    plain, (_, model) = network(), shared_network()
    x = torch.randn(5, 3)
    assert torch.equal(plain.eval()(x), model.module.eval()(x))
    assert model.parameters.numel() == sum(p.numel() for p in plain.parameters())
    # 4 running means and 4 running variances behind the parameters; the integer counter does not travel.
    assert model.shared.numel() == model.parameters.numel() + 8


def test_one_flat_step_equals_the_step_of_every_tensor() -> None:
    plain, (moved, model) = network(), shared_network()
    x, y = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
    ordinary = torch.optim.SGD(plain.parameters(), 0.1, momentum=0.9, weight_decay=0.01)
    flat = torch.optim.SGD(model.select(lambda name: True), 0.1, momentum=0.9, weight_decay=0.01)
    for _ in range(3):
        ordinary.zero_grad()
        model.gradient.zero_()
        for module in (plain, moved):
            torch.nn.functional.cross_entropy(module(x), y).backward()
        ordinary.step()
        flat.step()
    for one, other in zip(plain.state_dict().values(), moved.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


def test_shared_and_kept_parts_are_a_partition() -> None:
    module = network()
    model = FlatModel(module, all_names(module) - batch_norm_names(module))
    assert batch_norm_names(module) == {"1.weight", "1.bias", "1.running_mean", "1.running_var"}
    # Linear 3·4+4 and 4·2+2 are shared; 2·4 of BatchNorm's parameters and 2·4 of its statistics stay.
    assert (model.shared.numel(), model.take_private().size, model.shared_parameter_count) == (26, 16, 26)
    shared, kept = model.take_shared(), model.take_private()
    model.load_shared(np.full(26, 7, np.float32))
    assert np.array_equal(model.take_private(), kept)
    assert module.get_parameter("0.weight").detach().eq(7).all()
    model.load_private(np.arange(16, dtype=np.float32))
    assert module.get_parameter("1.weight").tolist() == [0, 1, 2, 3]
    assert module.get_buffer("1.running_var").tolist() == [12, 13, 14, 15]
    model.load_shared(shared)
    assert np.array_equal(model.take_shared(), shared)


def test_reset_leaves_nothing_of_a_client_task() -> None:
    module = network()
    module.get_buffer("1.num_batches_tracked").fill_(7)  # an integer is no part of the flat buffer
    model = FlatModel(module, all_names(module))
    before = model.take_shared()
    module.train()(torch.randn(5, 3)).sum().backward()
    assert int(module.get_buffer("1.num_batches_tracked")) == 8
    model.reset()
    assert np.array_equal(model.take_shared(), before)
    assert int(module.get_buffer("1.num_batches_tracked")) == 7
    assert not model.gradient.any()


def test_a_taken_vector_is_a_copy() -> None:
    _, model = shared_network()
    taken = model.take_shared()
    model.buffer.zero_()
    assert taken.any()


def test_select_merges_neighbors_and_keeps_gaps() -> None:
    _, model = shared_network()
    assert [p.numel() for p in model.select(lambda name: True)] == [34]
    assert [p.numel() for p in model.select(lambda name: not name.startswith("1."))] == [16, 10]


def test_read_only_arrays_load_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    _, model = shared_network()
    vector = np.ones(model.shared.numel(), np.float32)
    vector.flags.writeable = False
    model.load_shared(vector)
    assert not recwarn.list
    assert float(model.buffer.sum()) == vector.size


def test_an_unknown_shared_name_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"head\.weight"):
        FlatModel(network(), {"head.weight"})


def test_gradients_do_not_depend_on_what_a_process_did_before() -> None:
    """A method may drop the module's own gradients, torch's usual way to clear them."""
    module = torch.nn.Linear(1, 1, bias=False)
    model = FlatModel(module, all_names(module))
    for _ in range(3):
        model.reset()
        module(torch.tensor([[2.0]])).sum().backward()
        assert model.gradient.tolist() == [2.0] and module.weight.grad is not None
        assert module.weight.grad.tolist() == [[2.0]]
        module.zero_grad()


def test_the_scaled_gradient_is_laid_out_like_what_travels() -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Flatten())
    unused = torch.nn.Linear(4, 2)
    module.append(torch.nn.Linear(12, 2)).append(torch.nn.Identity())
    module.register_module("unused", unused)
    shared = all_names(module) - {"3.bias"}
    model = FlatModel(module, shared)
    inputs = torch.randn(5, 2, 4, 4)

    def backward() -> None:
        hidden = module[3](module[2](module[1](module[0](inputs))))
        hidden.square().sum().backward()

    with model.loose_gradients(lambda name: True):
        backward()
        found = model.scaled_loose_gradient(-0.5)
    model.gradient.zero_()
    backward()
    count = model.shared_parameter_count
    assert found.numel() == model.shared.numel() == count + 6
    torch.testing.assert_close(found[:count], -0.5 * model.shared_gradient)
    assert float(found[:count].abs().max()) > 0 and float(found[count:].abs().max()) == 0
    (weight,) = (entry for entry in model.entries if entry.name == "unused.weight")
    start = model.parameters.numel() - count
    assert float(found[weight.start - start : weight.stop - start].abs().max()) == 0


def test_a_parameter_may_be_a_single_number_or_empty() -> None:
    class Temperature(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value, self.none = torch.nn.Parameter(torch.tensor(2.0)), torch.nn.Parameter(torch.zeros(0, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.value

    model = FlatModel(torch.nn.Sequential(torch.nn.Linear(3, 4), Temperature()), {"1.value", "1.none"})
    assert model.shared.tolist() == [2.0] and model.shared_parameter_count == 1
    model.gradient.zero_()
    values = model.module[0](torch.ones(1, 3))  # type: ignore[index]
    expected = -0.5 * float(values.detach().sum())
    model.module[1](values).sum().backward()  # type: ignore[index]
    before = model.take_shared()
    torch.optim.SGD(model.select(lambda name: True), 0.5).step()
    assert model.change_from(before).tolist() == pytest.approx([expected])
