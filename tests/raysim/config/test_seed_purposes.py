"""The option ``seed_of``."""

from __future__ import annotations

import pytest

from raysim.config.run_config import build, differences, to_yaml
from raysim.errors import ConfigError
from raysim.seeds import Seed


def test_it_goes_through_text_and_back() -> None:
    config = build([{"seed": "3", "seed_of": "training=7,participants=1"}])
    assert isinstance(config.seed, Seed) and config.seed == 3
    assert config.seed.others == {"training": 7, "participants": 1}
    assert "seed: 3\nseed_of: [training=7, participants=1]\n" in to_yaml(config)
    assert differences(build([{"seed": 3}]), config) == ["seed_of: [] → ['training=7', 'participants=1']"]


@pytest.mark.parametrize(
    ("given", "said"),
    [("trainin=7", "Did you mean training?"), ("training", "training=SEED"), ("model=-1", "model=SEED")],
)
def test_what_is_no_purpose_or_no_seed_is_refused(given: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"seed_of: '{given}' is not allowed.*{said}"):
        build([{"seed_of": given}])
    with pytest.raises(ConfigError, match="seed_of: model is given twice, as 1 and 2"):
        build([{"seed_of": "model=1,model=2"}])
