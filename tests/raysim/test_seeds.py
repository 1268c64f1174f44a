"""Random streams: the same for the same (seed, purpose, round, client), another for any other."""

from __future__ import annotations

import pickle
import subprocess
import sys

from raysim import seeds


def test_every_part_of_the_key_counts() -> None:
    base = (3, "shuffle", 5, 7)
    others = [(4, "shuffle", 5, 7), (3, "sample", 5, 7), (3, "shuffle", 7, 5), (3, "shuffle", 5, 8)]
    assert seeds.number(*base) == seeds.number(*base)
    assert len({seeds.number(*key) for key in [base, *others]}) == 5


def test_the_same_in_another_process() -> None:
    # Python salts hash() of strings in each process; a seed must not see that.
    code = "from raysim import seeds; print(seeds.number(3, 'shuffle', 5, 7))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == seeds.number(3, "shuffle", 5, 7)


def test_torch_and_numpy_streams_repeat() -> None:
    import torch

    first, second = seeds.torch_generator(0, "x", 1, 2), seeds.torch_generator(0, "x", 1, 2)
    assert torch.equal(torch.randperm(9, generator=first), torch.randperm(9, generator=second))
    assert seeds.numpy_generator(0, "x").random() == seeds.numpy_generator(0, "x").random()


def test_a_purpose_of_its_own_root_changes_its_streams_and_no_others() -> None:
    seed = pickle.loads(pickle.dumps(seeds.Seed(3, {"training": 7, "data": 5})))
    assert seed == 3
    for purpose in ("shuffle", "shuffle weights", "global"):
        assert seeds.number(seed, purpose, 5, 7) == seeds.number(7, purpose, 5, 7)
    for purpose in ("participants", "model", "intervals", "privacy noise", "compression", "attack clients", "timeline"):
        assert seeds.number(seed, purpose, 5, 7) == seeds.number(3, purpose, 5, 7)
    assert seeds.data_streams(seed)("partition").random() == seeds.numpy_generator(5, "partition").random()
