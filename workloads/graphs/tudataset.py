"""TUDatasets (Morris et al. 2020, arXiv 2007.08663) as clients, in FedSSP's settings or any others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import CACHE, search_folders
from raysim.workloads.graphs import tu_reader
from raysim.workloads.graphs.client_parts import Skew, client_parts
from raysim.workloads.graphs.federation import GraphClient, GraphFederation
from raysim.workloads.graphs.graph_set import Graphs, Integers, without_nodes
from raysim.workloads.graphs.spectra import Laplacian
from raysim.workloads.graphs.stratified_split import folded, published, stratified
from raysim.workloads.graphs.transforms import TransformOption, built, parsed, transformed
from raysim.workloads.option_types import (
    ALLOW_DOWNLOAD,
    Help,
    NonNegativeInt,
    OnlyWith,
    OpenShare,
    PositiveInt,
    ShareBelowOne,
)

if TYPE_CHECKING:
    from raysim.workloads.graphs.set_files import SetFiles

MOLECULES = ("MUTAG", "BZR", "COX2", "DHFR", "PTC_MR", "AIDS", "NCI1")
BIOLOGY = ("Peking_1", "OHSU", "PROTEINS")
SOCIAL = ("IMDB-BINARY", "IMDB-MULTI")
VISION = ("Letter-low", "Letter-med", "Letter-high")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "SM": MOLECULES,
    "SM-BIO": MOLECULES + BIOLOGY,
    "SM-CV": MOLECULES + VISION,
    "SM-BIO-SN": MOLECULES + BIOLOGY + SOCIAL,
    "BIO-SN-CV": BIOLOGY + SOCIAL + VISION,
    "SM-SN-CV": MOLECULES + SOCIAL + VISION,
}
# What FedSSP trains with.
DEFAULTS: Mapping[str, object] = {
    "model.name": "spectral",
    "training.optimizer": "adamw",
    "training.learning_rate": 1e-3,
    "training.weight_decay": 5e-4,
    "training.batch_size": 128,
    "schedule.rounds": 200,
    "schedule.local_epochs": 1,
}
LAPLACIAN = Help(
    "matrix whose spectrum the spectral model uses: normalized (I − D^{-1/2} A D^{-1/2}) or combinatorial "
    "(D − A, as in the code of FedSSP)",
    "FedSSP, section 3",
)
PAPER = "FedSSP, section 5.1"
TEST_SHARE = "share of a client's graphs that is its test set, stratified by class"
VALIDATION_SHARE = "share of a client's graphs that is its validation set, stratified by class"


@dataclass(frozen=True)
class TuDataset:
    """One client a set, or one set cut over clients (sets=NAME, parts=n), from files in ``data``.

    Node features are one-hot node labels; where a set has none, the node attributes of the Letter sets, and one-hot
    degrees of all others. Nothing is fetched without the option download. ``load`` draws from the streams "split NAME"
    (only if the split is drawn) and "partition" (for parts).
    """

    name: ClassVar[str] = "tudataset"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
    defaults: ClassVar[Mapping[str, object]] = DEFAULTS

    setting: Annotated[
        Literal["SM", "SM-BIO", "SM-CV", "SM-BIO-SN", "BIO-SN-CV", "SM-SN-CV"],
        Help(
            "sets of FedSSP's study: SM small molecules (7 sets), BIO bioinformatics (3), SN social networks "
            "(2), CV letters (3)",
            PAPER,
        ),
    ] = "SM"
    sets: Annotated[
        tuple[str, ...], Help("names of the sets, one client each, as MUTAG,ENZYMES; empty: those of setting")
    ] = ()
    parts: Annotated[PositiveInt, Help("number of clients that one set is cut over")] = 1
    partition: Annotated[
        Literal["iid", "dirichlet"], Help("how a set is cut, for parts > 1: iid or dirichlet (label skew)")
    ] = "dirichlet"
    alpha: Skew = 0.5
    test_share: Annotated[OpenShare, Help(TEST_SHARE, PAPER)] = 0.1
    validation_share: Annotated[ShareBelowOne, Help(VALIDATION_SHARE, PAPER)] = 0.1
    split: Annotated[
        Literal["drawn", "published", "folds"],
        Help(
            "training, validation and test graphs: drawn with the run's seed; published: the one split (seed 123) that "
            "the code of GCFL, FedStar and FedSSP has for all seeds; or folds: fold number workload.fold of a "
            "cross-validation, ten stratified folds with a test_share of 0.1, which together test every graph once"
        ),
    ] = "drawn"
    fold: Annotated[
        NonNegativeInt,
        Help("the fold that is tested: 0 to 9 of ten; 10 to 19 are those of a second drawing, and so on"),
        OnlyWith("workload.split", "folds"),
    ] = 0
    keep_edgeless: Annotated[
        bool, Help("false: graphs without edges are left out once a set is split, as in the code of FedSSP")
    ] = True
    transform: TransformOption = ""
    laplacian: Annotated[Laplacian, LAPLACIAN] = "normalized"
    path: Annotated[
        str,
        Help(
            "folder with NAME.zip or NAME/raw/NAME_A.txt … of the sets, where downloads go too; empty: the "
            f"folder tudataset of $RAYSIM_DATA, else {CACHE}/tudataset"
        ),
    ] = ""
    download: Annotated[bool, Help("allow the download of sets that are not there, from where PyG has them")] = False

    def __post_init__(self) -> None:
        check_shares(self.test_share, self.validation_share)
        parsed(self.transform)
        for name in self.sets:
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise WorkloadError(f"sets: {name!r} is no name of a TUDataset; they are listed on {tu_reader.PAGE}")
            if self.sets.count(name) > 1:
                raise WorkloadError(f"sets: {name} is there {self.sets.count(name)} times; name each set once")
        if self.parts > 1 and len(self.names) > 1:
            raise WorkloadError(
                f"parts = {self.parts} cuts one set over clients, but there are {len(self.names)}: "
                f"{', '.join(self.names)}; set sets to one name, or parts to 1"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The sets of this run."""
        return self.sets or SETTINGS[self.setting]

    def load(self, stream: Stream) -> GraphFederation:
        """Reads the sets and splits them. WorkloadError if they cannot be had or cannot be cut as asked."""
        sets = [(files.name, *tu_reader.read_graphs(files)) for files in self._files()]
        changed = [(name, transformed(graphs, self.transform, name), classes) for name, graphs, classes in sets]
        return self._federation(changed, stream)

    def sketch(self, stream: Stream) -> GraphFederation | None:
        """The clients that ``load`` gives, with graphs that have no nodes and no features.

        It reads the labels alone, so it is None where the split depends on more than these, or where a set is yet to be
        downloaded. WorkloadError as in ``load``.
        """
        built(self.transform)  # which says what is wrong with it
        if not self._all_there() or self.split == "published" or not self.keep_edgeless:
            return None
        sets = [(files.name, *tu_reader.read_classes(files)) for files in self._files()]
        return self._federation([(name, without_nodes(labels), classes) for name, labels, classes in sets], stream)

    def _federation(self, sets: list[tuple[str, Graphs, tuple[str, ...]]], stream: Stream) -> GraphFederation:
        """From the name, graphs and class names of every set."""
        clients: list[GraphClient] = []
        for set_name, graphs, class_names in sets:
            for name, own in self._cut(set_name, graphs, stream):
                clients.append(GraphClient(name, own, *self._split(name, own, stream), class_names, set_name))
        return GraphFederation(self.name, False, tuple(clients), self.laplacian)

    def _all_there(self) -> bool:
        """Whether nothing has to be downloaded; the error names all that are missing and may not be."""
        folders = search_folders(self.path, self.name)
        missing = [name for name in self.names if tu_reader.find(name, folders) is None]
        if missing and not self.download:
            absent = " (no such folder)" if self.path and not folders[0].is_dir() else ""
            raise WorkloadError(
                f"{self.name}: no files of {', '.join(missing)} in {' or '.join(map(str, folders))}{absent}. Put "
                f"{', '.join(f'{name}.zip' for name in missing)} from {tu_reader.PAGE} there, or give --path "
                f"FOLDER, the folder that has them, or {ALLOW_DOWNLOAD}"
            )
        return not missing

    def _files(self) -> list[SetFiles]:
        """Where the sets are, downloaded if they may be."""
        self._all_there()
        folders = search_folders(self.path, self.name)
        return [tu_reader.find(name, folders) or tu_reader.download(name, folders[-1]) for name in self.names]

    def _cut(self, name: str, graphs: Graphs, stream: Stream) -> list[tuple[str, Graphs]]:
        """(client name, its graphs) of every client that has graphs of this set."""
        if self.parts == 1:
            return [(name, graphs)]
        parts = client_parts(name, graphs.labels, self.parts, self.partition, self.alpha, stream, "parts")
        return [(f"{name} part {part}", graphs.subset(chosen)) for part, chosen in enumerate(parts)]

    def _split(self, name: str, graphs: Graphs, stream: Stream) -> tuple[Integers, Integers, Integers]:
        """A client's training, validation and test graphs."""
        if self.split == "published":
            parts = published(graphs.labels, self.validation_share, self.test_share, name)
        elif self.split == "folds":
            parts = folded(graphs.labels, self.validation_share, self.test_share, self.fold, name)
        else:
            parts = stratified(graphs.labels, self.validation_share, self.test_share, stream(f"split {name}"))
        if self.keep_edgeless:
            return parts
        train, validation, test = (part[graphs.edge_counts[part] > 0] for part in parts)
        return train, validation, test


def check_shares(test_share: float, validation_share: float) -> None:
    """WorkloadError if nothing would be left to train on."""
    if not np.isfinite(test_share + validation_share) or test_share + validation_share >= 1:
        raise WorkloadError(
            f"test_share + validation_share = {test_share + validation_share:g} leaves nothing to train on; "
            "their sum must be below 1"
        )
