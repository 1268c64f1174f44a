"""The garbage collector passes over what an import creates, and works again afterwards."""

from __future__ import annotations

import gc

import pytest

from raysim.actors.quick_import import garbage_collection_paused


def test_the_collector_is_paused_and_works_again_after_an_error() -> None:
    before = gc.get_freeze_count()
    try:
        with pytest.raises(ImportError), garbage_collection_paused():
            assert not gc.isenabled()
            kept = [[number] for number in range(1000)]
            raise ImportError
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(kept)
    finally:
        gc.unfreeze()
