"""Classes that reach another process by value, as those of a script's ``__main__`` do on Ray."""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Literal

import pytest

from raysim.config import run_config as configs
from raysim.config.run_config import RunConfig, Training, default_config
from raysim.errors import ConfigError


def by_value() -> RunConfig:
    """A run's config as Ray hands it to another process, with a method of ``__main__``, which is another one there."""
    from ray import cloudpickle

    source = (
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from typing import Annotated, Literal\n"
        "from raysim.workloads.option_types import Help\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n"
        "    kind: Literal['one', 'two'] = 'two'\n"
        "    factor: Annotated[float, Help('a factor')] = 0.5\n"
    )
    main = sys.modules["__main__"]
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    try:
        exec(source, module.__dict__)
        config = dataclasses.replace(default_config("fedavg"), method=module.Mine())
        data = cloudpickle.dumps(config)
    finally:
        sys.modules["__main__"] = main
    found: RunConfig = cloudpickle.loads(data)
    return found


def test_a_method_that_came_by_value_still_says_its_options() -> None:
    config = by_value()
    assert configs.to_dict(config)["method"] == {"name": "__main__:Mine", "kind": "two", "factor": 0.5}
    changed = configs.with_sections(config, training=Training(learning_rate=0.25))
    assert changed.training.learning_rate == 0.25 and changed.method is config.method
    assert config.training.learning_rate != 0.25
    with pytest.raises(ConfigError, match=r"training\.momentum"):
        configs.with_sections(config, training=Training(optimizer="adamw", momentum=0.5))


def test_a_default_is_found_in_a_class_that_came_by_value() -> None:
    from raysim.config.options import options_of_class

    kind = type(by_value().method)
    kind.__annotations__.update(kind=Literal["one", "two"], factor=float)
    assert {path: option.default for path, option in options_of_class("method", kind).items()} == {
        "method.kind": "two",
        "method.factor": 0.5,
    }
