"""A late option at its default is in no proof and in no checkpoint, and any other value of it is."""

from __future__ import annotations

import pytest

from raysim.config import registry
from raysim.config.late_options import in_full, late_defaults, recorded
from raysim.config.run_config import build, options_of, settings

OPTION = "training.batchnorm_statistics"
OF_MODEL = "model.norm"


@pytest.mark.parametrize(("option", "usual", "other"), [(OPTION, "averaged", "local"), (OF_MODEL, "batch", "group")])
def test_at_its_default_it_is_left_out_and_filled_in_again(option: str, usual: str, other: str) -> None:
    names = {"method.name": "fedavg", "model.name": "mobilenet"}
    default = settings(build([names]))
    assert default[option] == usual and option not in recorded(default)
    assert in_full(recorded(default)) == default
    changed = settings(build([{**names, option: other}]))
    assert recorded(changed)[option] == in_full(recorded(changed))[option] == other


def test_an_option_is_late_in_the_class_that_says_so_alone() -> None:
    older = settings(build([{"model.name": "resnet18"}]))
    assert recorded(older)[OF_MODEL] == older[OF_MODEL] == "batch"


def test_a_class_of_ones_own_is_not_imported_for_its_late_options() -> None:
    assert late_defaults({"model.name": "not_there:Model"}) == late_defaults({})


def test_all_others_are_recorded() -> None:
    default = settings(build([{}]))
    assert default.keys() - recorded(default).keys() == late_defaults(default).keys()


@pytest.mark.parametrize("kind", registry.KINDS)
def test_a_late_option_has_a_plain_default_and_can_change_results(kind: registry.Kind) -> None:
    for name in registry.known(kind):
        options = options_of({kind: registry.resolve(kind, name)})
        found = late_defaults({f"{kind}.name": name})
        assert OPTION in found and (OF_MODEL in found) == (name == "mobilenet")
        for path, default in found.items():
            assert isinstance(default, str | int | float | bool) and not options[path].help.placement
