from __future__ import annotations

from workloads.federated_data import NO_SAMPLES, ClientData, InputSpec


def test_a_task_is_of_arrays_and_validation_empty_unless_said() -> None:
    assert InputSpec((3, 8, 8), 10) == InputSpec((3, 8, 8), 10, "array")
    assert InputSpec((7,), 2, "graph") != InputSpec((7,), 2)
    data = ClientData(0, "one", NO_SAMPLES, NO_SAMPLES)
    assert (len(data.validation), list(data.validation.batches(4)), data.samples) == (0, [], 0)
