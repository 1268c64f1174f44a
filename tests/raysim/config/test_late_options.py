"""A late option at its default is in no proof and in no checkpoint, and any other value of it is."""

from __future__ import annotations

from raysim.config.late_options import in_full, late_defaults, recorded
from raysim.config.run_config import build, options_of, settings

OPTION = "training.batchnorm_statistics"


def test_at_its_default_it_is_left_out_and_filled_in_again() -> None:
    default = settings(build([{}]))
    assert default[OPTION] == "averaged" and OPTION not in recorded(default)
    assert in_full(recorded(default)) == default
    other = settings(build([{OPTION: "local", "method.name": "fedavg"}]))
    assert recorded(other)[OPTION] == in_full(recorded(other))[OPTION] == "local"


def test_all_others_are_recorded() -> None:
    default = settings(build([{}]))
    assert default.keys() - recorded(default).keys() == late_defaults().keys()


def test_a_late_option_has_a_plain_default_and_can_change_results() -> None:
    options = options_of({})
    assert OPTION in late_defaults()
    for path, default in late_defaults().items():
        assert isinstance(default, str | int | float | bool) and not options[path].help.placement
