"""Ranges and choices of a search, as they are typed and as an option's type has them."""

from __future__ import annotations

import math

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from raysim.config.run_config import choose_classes, options_of
from raysim.errors import ConfigError
from raysim.search.space import Axis, read_axes

OPTIONS = options_of(choose_classes([{"method.name": "fedprox"}])[0])


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("mu=0.001:1:log", Axis("method.mu", low=0.001, high=1.0, log=True)),
        ("training.momentum=0:0.9", Axis("training.momentum", low=0.0, high=0.9)),
        ("training.batch_size=8:64", Axis("training.batch_size", low=8, high=64, whole=True)),
        ("optimizer=sgd,adam", Axis("training.optimizer", choices=("sgd", "adam"))),
        ("learning-rate=0.1,0.01", Axis("training.learning_rate", choices=(0.1, 0.01))),
        ("optimizer", Axis("training.optimizer", choices=("sgd", "adam", "adamw"))),
        ("freeze_batchnorm", Axis("training.freeze_batchnorm", choices=(False, True))),
        ("momentum", Axis("training.momentum", low=0.0, high=math.nextafter(1, 0))),
        ("sampling_rate", Axis("schedule.sampling_rate", low=math.nextafter(0, 1), high=1.0)),
    ],
)
def test_an_axis_is_read(text: str, axis: Axis) -> None:
    assert read_axes([text], OPTIONS) == [axis]
    assert read_axes([axis.words()], OPTIONS) == [axis]


def test_choices_are_typed_as_they_were_given() -> None:
    """Those in upper case were printed in lower case, which the option does not take."""
    (axis,) = read_axes(["setting=SM,SM-CV"], options_of(choose_classes([{"workload.name": "tudataset"}])[0]))
    assert axis.words() == "workload.setting=SM,SM-CV"
    assert Axis("training.freeze_batchnorm", choices=(False, True)).words().endswith("=false,true")
    assert Axis("training.learning_rate", choices=(1e-5, 10.0)).words().endswith("=1e-05,10.0")
    (axis,) = read_axes(["ignore=age,sex"], options_of(choose_classes([{"workload.name": "table"}])[0]))
    assert axis == Axis("workload.ignore", choices=(("age",), ("sex",))) and axis.words() == "workload.ignore=age,sex"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mu", r"method\.mu: its own range \(a finite number ≥ 0\) has no end to search to\. Give one: --space mu=LOW"),
        ("mu=-1:1", r"method\.mu: -1 is not allowed"),
        ("mu=1:0.1", "LOW below HIGH"),
        ("mu=0.1:1:cubic", "LOW below HIGH"),
        ("mu=0:1:log", "a range in logarithms begins above 0"),
        ("optimizer=sgd,sgd", "different values, at least two"),
        ("mu=0.1", "different values, at least two"),
        ("optimizer=sgd:adam", "LOW below HIGH"),
        ("method=fedavg,fedprox", "a search is of one method"),
        ("seed=1:9", "seed cannot be searched"),
        ("checkpoint_every=1:9", "engine.checkpoint_every cannot be searched"),
        ("no_such=1:2", "Unknown option no_such"),
    ],
)
def test_other_axes_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_axes([text], OPTIONS)


def test_an_option_is_searched_once() -> None:
    with pytest.raises(ConfigError, match=r"method\.mu is there twice"):
        read_axes(["mu=0.1:1", "method.mu=0.1,1"], OPTIONS)


def test_optuna_has_the_same_ranges() -> None:
    axes = read_axes(["mu=0.001:1:log", "training.batch_size=8:64", "optimizer=sgd,adam"], OPTIONS)
    assert [axis.distribution() for axis in axes] == [
        FloatDistribution(0.001, 1.0, log=True),
        IntDistribution(8, 64),
        CategoricalDistribution(("sgd", "adam")),
    ]
