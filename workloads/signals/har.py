"""UCI HAR: what thirty people do, by the accelerometer and gyroscope of the telephone at their waist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.arrays.array_federation import ArrayFederation
from raysim.workloads.arrays.labeled_arrays import Part, federation_of
from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import published_place
from raysim.workloads.images.image_set import read_npz
from raysim.workloads.option_types import Help, ShareBelowOne
from raysim.workloads.splits.split_options import PARTITION_HELP, PartitionName, SplitOptions
from raysim.workloads.splits.time_order import Recordings, hold_out_ends

ACTIVITIES = ("walking", "walking upstairs", "walking downstairs", "sitting", "standing", "laying")
FILES = ("har/har.npz", "har/uci-har.npz")
WINDOW = 128
OVERLAP = 1
"""Windows that overlap, by half, with the one that follows them."""


@dataclass(frozen=True)
class Har(SplitOptions):
    """Human activity recognition (Anguita et al. 2013): 10,299 windows of 9 signals x 128 points, six activities.

    Thirty people are the clients. With persons=own the last windows of each activity of each person are its tests, and
    all of these the global test; the window before them, which overlaps them by half, is left out. With
    persons=published 21 people train and the windows of the nine others are the global test. Signals are normalized by
    the training windows.
    """

    name: ClassVar[str] = "har"
    inputs: ClassVar[Literal["array", "graph"]] = "array"
    defaults: ClassVar[Mapping[str, object]] = {"model.name": "cnn1d", "training.learning_rate": 0.05}

    path: Annotated[str, Help("the file har.npz or uci-har.npz; empty: that in the folder har of $RAYSIM_DATA")] = ""
    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "auto"
    persons: Annotated[
        Literal["own", "published"], Help("test set: the ends of every person's own windows, or nine other people's")
    ] = "own"
    global_test_share: Annotated[
        ShareBelowOne, Help("share of a person's windows of an activity, the last, for the test; for persons=own")
    ] = 0.2

    def load(self, stream: Stream) -> ArrayFederation:
        """Reads and normalizes the windows. WorkloadError if they cannot be had or cannot be split as asked."""
        windows, labels, persons, tested = _read(self._place())
        _, number = np.unique(persons, return_inverse=True)
        recordings = number * len(ACTIVITIES) + labels
        if self.persons == "published":
            trained, tests = np.flatnonzero(~tested), np.flatnonzero(tested)
        else:
            trained, tests = hold_out_ends(recordings, self.global_test_share, OVERLAP)
        mean = windows[trained].mean(axis=(0, 2), dtype=np.float64)[:, None]
        deviation = windows[trained].std(axis=(0, 2), dtype=np.float64)[:, None]
        windows = ((windows - mean) / deviation).astype(np.float32)
        train = Part(windows[trained], labels[trained], persons[trained])
        test = Part(windows[tests], labels[tests], persons[tests] if self.persons == "own" else None)
        found = Recordings(recordings[trained], OVERLAP)
        return federation_of(self, stream, self.name, train, test, ACTIVITIES, recordings=found)

    def sketch(self, stream: Stream) -> None:
        """Only looks whether the file is there."""
        self._place()

    def _place(self) -> Path:
        how = "; python -m raysim.data convert har makes har.npz of UCI's folder"
        return published_place(self.name, self.path, FILES, how, Path.is_file)


def _read(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.str_], NDArray[np.bool_]]:
    """(windows [N, 9, 128], activities [N], persons [N], whether of the published test [N]) of either file."""
    arrays = read_npz(path)
    try:
        if "signal" in arrays:  # every point once; a window is 128 from its start
            windows = arrays["signal"].astype(np.float32)[arrays["start"][:, None] + np.arange(WINDOW)]
            labels, persons, tested = arrays["labels"], arrays["subjects"], arrays["split"] == "test"
            names = np.array([f"person-{person:02d}" for person in persons.tolist()])
        else:
            windows = np.concatenate([arrays["train_x"], arrays["test_x"]]).astype(np.float32)
            labels = np.concatenate([arrays["train_labels"], arrays["test_labels"]])
            names = np.concatenate([arrays["train_sites"], arrays["test_sites"]]).astype(np.str_)
            tested = np.arange(len(windows)) >= len(arrays["train_x"])
        if windows.shape[1:] != (WINDOW, 9) or not len(windows) == len(labels) == len(names):
            raise ValueError(f"windows {windows.shape}, labels {labels.shape}, persons {names.shape}")
        if labels.min() < 0 or labels.max() >= len(ACTIVITIES) or not np.isfinite(windows).all():
            raise ValueError("a label outside 0..5, or a window with a value that is not finite")
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise WorkloadError(
            f"{path} is no file of UCI HAR ({type(error).__name__}: {error}); its arrays are {', '.join(arrays)}"
        ) from error
    return windows.transpose(0, 2, 1), labels.astype(np.int64), names, tested
