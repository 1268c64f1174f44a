"""Graph property sets of the Open Graph Benchmark (Hu et al. 2020, arXiv 2005.00687), cut over clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.files.cache_files import CACHE, search_folders
from raysim.workloads.graphs.client_parts import Skew, client_parts
from raysim.workloads.graphs.federation import GraphClient, GraphFederation
from raysim.workloads.graphs.graph_set import Integers, without_nodes
from raysim.workloads.graphs.ogb_reader import TEST, TRAIN, VALIDATION, read_graphs, read_labels, read_split
from raysim.workloads.graphs.set_files import SetFiles
from raysim.workloads.graphs.spectra import Laplacian
from raysim.workloads.graphs.stratified_split import stratified
from raysim.workloads.graphs.transforms import TransformOption, built, parsed, transformed
from raysim.workloads.graphs.tudataset import LAPLACIAN, TEST_SHARE, VALIDATION_SHARE, check_shares
from raysim.workloads.option_types import Help, NonNegativeInt, OpenShare, PositiveInt, ShareBelowOne

SOURCE = "Hu et al. 2020, arXiv 2005.00687"
PAGE = "https://ogb.stanford.edu/docs/graphprop"


@dataclass(frozen=True)
class Ogb:
    """One set cut over clients, from the folder that the package ``ogb`` unpacks; nothing is fetched.

    Edges are undirected. A graph without a label in the column ``target`` is left out. ``load`` draws from the streams
    "partition" and, unless the split is the published one, "split NAME".
    """

    name: ClassVar[str] = "ogb"
    inputs: ClassVar[Literal["array", "graph"]] = "graph"
    defaults: ClassVar[Mapping[str, object]] = {
        "model.name": "gin",
        "training.optimizer": "adam",
        "training.learning_rate": 1e-3,
        "training.batch_size": 32,
        "schedule.rounds": 100,
        "schedule.local_epochs": 1,
    }

    set: Annotated[str, Help("name of the set, ogbg-molhiv for instance", SOURCE)] = "ogbg-molhiv"
    target: Annotated[NonNegativeInt, Help("which column of its labels is learned, from 0")] = 0
    clients: Annotated[PositiveInt, Help("number of clients that the set is cut over")] = 10
    partition: Annotated[Literal["iid", "dirichlet"], Help("how it is cut: iid or dirichlet (label skew)")] = (
        "dirichlet"
    )
    alpha: Skew = 0.5
    split: Annotated[
        Literal["published", "drawn"],
        Help("training, validation and test graphs: the set's own split, or drawn with the run's seed", SOURCE),
    ] = "published"
    test_share: Annotated[OpenShare, Help(f"{TEST_SHARE}; for split=drawn")] = 0.1
    validation_share: Annotated[ShareBelowOne, Help(f"{VALIDATION_SHARE}; for split=drawn")] = 0.1
    features: Annotated[
        Literal["one-hot", "numbers"],
        Help("columns of whole numbers (kinds of atoms and bonds): one-hot, or numbers for embeddings of one's own"),
    ] = "one-hot"
    transform: TransformOption = ""
    laplacian: Annotated[Laplacian, LAPLACIAN] = "normalized"
    path: Annotated[
        str,
        Help(f"folder with ogbg_molhiv/raw/edge.csv.gz …; empty: the folder ogb of $RAYSIM_DATA, else {CACHE}/ogb"),
    ] = ""

    def __post_init__(self) -> None:
        check_shares(self.test_share, self.validation_share)
        parsed(self.transform)
        if not re.fullmatch(r"ogbg-[a-z0-9]+(-[a-z0-9]+)*", self.set):
            raise WorkloadError(f"set: {self.set!r} is no graph property set of OGB, ogbg-NAME; they are on {PAGE}")

    def load(self, stream: Stream) -> GraphFederation:
        """Reads and splits the set. WorkloadError if it is not there or cannot be cut as asked."""
        return self._federation(stream, with_nodes=True)

    def sketch(self, stream: Stream) -> GraphFederation:
        """The clients that ``load`` gives, with graphs that have no nodes: by labels and splits alone."""
        built(self.transform)  # which says what is wrong with it
        return self._federation(stream, with_nodes=False)

    def _federation(self, stream: Stream, with_nodes: bool) -> GraphFederation:
        files = self._files()
        every, classes = read_labels(files, self.target)
        labeled = np.flatnonzero(every >= 0)
        labels = every[labeled]
        roles = read_split(files, len(every))[labeled] if self.split == "published" else None
        graphs = without_nodes(labels)
        if with_nodes:
            graphs = read_graphs(files, every, self.features == "one-hot").subset(labeled)
            graphs = transformed(graphs, self.transform, self.set)
        parts = client_parts(self.set, labels, self.clients, self.partition, self.alpha, stream)
        clients = []
        for number, chosen in enumerate(parts):
            own = None if roles is None else roles[chosen]
            split = self._split(number, labels[chosen], own, stream)
            clients.append(GraphClient(f"{self.set} part {number}", graphs.subset(chosen), *split, classes, self.set))
        left_out = len(every) - len(labeled)
        notes = (f"{left_out} of {len(every)} graphs have no label in column {self.target} and are left out",)
        return GraphFederation(self.set, False, tuple(clients), self.laplacian, notes if left_out else ())

    def _split(
        self, client: int, labels: Integers, roles: Integers | None, stream: Stream
    ) -> tuple[Integers, Integers, Integers]:
        """A client's training, validation and test graphs; a published split may leave the last two empty."""
        if roles is None:
            drawn = stream(f"split {self.set} part {client}")
            return stratified(labels, self.validation_share, self.test_share, drawn)
        train, validation, test = (np.flatnonzero(roles == role) for role in (TRAIN, VALIDATION, TEST))
        if not len(train):
            raise WorkloadError(
                f"{self.set}: none of the {len(roles)} graphs of client {client} is in the published training split; "
                "take fewer clients, set partition to iid, or set split to drawn"
            )
        return train, validation, test

    def _files(self) -> SetFiles:
        """Where the set is, by the name that the package ogb gives its folder."""
        folders = search_folders(self.path, self.name)
        name = self.set.replace("-", "_")
        for folder in folders:
            if (folder / name / "raw").is_dir():
                return SetFiles(self.set, folder / name, "{}.csv.gz", empty_lines=True)
        raise WorkloadError(
            f"{self.set}: there is no folder {name}/raw in {' or '.join(map(str, folders))}. Fetch the set from {PAGE} "
            f"or with the package ogb, unpack it as {name}, and give --path FOLDER, the folder that has it"
        )
