"""How labeled samples are split over clients: the options of it, and what they make of a data set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from raysim.workloads.errors import WorkloadError
from raysim.workloads.federated_data import Stream
from raysim.workloads.naming import check_names
from raysim.workloads.option_types import Ge, Help, Le, OpenShare, Positive, PositiveInt, ShareBelowOne
from raysim.workloads.splits import partition, skewed_splits
from raysim.workloads.splits.partition import Common, Integers, Partition
from raysim.workloads.splits.time_order import Recordings
from raysim.workloads.splits.virtual_clients import Views, set_aside, views

PartitionName = Literal[
    "auto",
    "iid",
    "dirichlet",
    "equal_dirichlet",
    "shards",
    "pathological",
    "pachinko",
    "quantile",
    "quantity",
    "lognormal",
    "sites",
    "views",
]
PARTITION_HELP = (
    "split of the training samples: auto (sites where the data names real clients, else dirichlet); iid; dirichlet "
    "(label skew); equal_dirichlet (label skew of clients that have equally many samples); shards (exactly "
    "classes_per_client classes a client); pathological (sorted by label, shards_per_client equal shards a client); "
    "pachinko (label skew in superclasses and classes, of data that has both); quantile (sorted by a feature, one "
    "quantile a client); quantity and lognormal (skewed sizes); sites (the real clients of the data); views (label "
    "skew, samples drawn for each client by itself, so that any number of clients may exist; clients overlap)"
)
OPTIONS_OF_PARTITIONS: Mapping[str, tuple[str, ...]] = {
    "dirichlet": ("alpha",),
    "equal_dirichlet": ("alpha",),
    "shards": ("classes_per_client",),
    "pathological": ("shards_per_client",),
    "pachinko": ("alpha", "beta"),
    "quantity": ("alpha",),
    "lognormal": ("sigma",),
    "views": ("alpha", "view_samples"),
}
"""The options of :class:`SplitOptions` that say how skewed a split is; the others have none."""
ValidationShare = Annotated[
    ShareBelowOne,
    Help(
        "share of a client's training samples that is its validation set, which it does not train on; the rounds table "
        "then has validation_accuracy, the mean over clients. 0: none"
    ),
]
NO_NAMES = np.zeros(0, dtype=np.str_)
"""Names of clients that have numbers only."""


@dataclass(frozen=True, eq=False)
class Labeled:
    """Facts that a split has to know about a data set with N training and M test samples.

    Args:
        labels: class of each training sample, int64 [N].
        test_size: M.
        sites: real client of each training sample [N], None if not known.
        test_sites: the same of each test sample [M].
        superclasses: superclass of each class, int64 [classes], None if there are none.
        feature: gives one number for each training sample, float [N], by which quantiles are cut.
        sites_from: where sites would come from, for the error if there are none.
        recordings: of which the training samples are windows, None where they are not.
    """

    labels: Integers
    test_size: int
    sites: NDArray[np.str_] | None = None
    test_sites: NDArray[np.str_] | None = None
    superclasses: Integers | None = None
    feature: Callable[[], NDArray[np.floating]] | None = None
    sites_from: str = "the real client of every training sample"
    recordings: Recordings | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """Which samples each client trains on, is tested with and is validated with."""

    train: Partition | Views
    """Indices into the training samples."""
    local_test: Partition | Views | Common
    """Indices into the test samples if ``local_test_is_global``, else into the training samples."""
    local_test_is_global: bool = False
    validation: Partition | Views | None = None
    """Indices into the training samples."""
    client_names: NDArray[np.str_] = field(default_factory=lambda: NO_NAMES)
    """Empty: clients are called by their numbers."""
    partition: str = ""
    """The one by which the samples were split, in the place of auto; empty: that of the workload's options."""


def unread(option: str, partition: str, there: Collection[str]) -> str:
    """Which partitions read an option of the split that this one does not read, in words; empty if it does.

    Args:
        option: its own name, ``alpha``; one that does not say how skewed a split is is none of these.
        partition: the one in force.
        there: the partitions that can be chosen.
    """
    readers = [name for name in there if option in OPTIONS_OF_PARTITIONS.get(name, ())]
    return f"it is read with {', '.join(readers)}" if readers and partition not in readers else ""


def held_out(  # noqa: PLR0913 - what is cut off, how much of it, and from which samples
    whole: Partition,
    tests: Partition | Common | None,
    test_share: float,
    validation_share: float,
    stream: Stream,
    client_names: NDArray[np.str_],
    recordings: Recordings | None = None,
) -> Split:
    """The split of samples that clients have already: what they are tested and validated with is cut off.

    Args:
        whole: the samples of each client.
        tests: each client's part of the global test set; None: its local test set is cut off its own samples.
        test_share: how much of these.
        validation_share: how much of the rest is for validation.
        stream: gives the random numbers, local_test and validation.
        client_names: empty where clients have numbers only.
        recordings: each client has whole ones, whose ends are cut off; None: samples are drawn at random.
    """

    def cut(samples: Partition, share: float, purpose: str) -> tuple[Partition, Partition]:
        return recordings.cut_ends(samples, share) if recordings else partition.cut(samples, share, stream(purpose))

    train, local_test = whole, tests
    if local_test is None:
        train, local_test = cut(whole, test_share, "local_test")
    validation = None
    if validation_share:
        train, validation = cut(train, validation_share, "validation")
    return Split(train, local_test, tests is not None, validation, client_names)


@dataclass(frozen=True)
class SplitOptions:
    """The split of a data set over clients. It draws from the streams partition, local_test and validation."""

    clients: Annotated[PositiveInt, Help("number of clients (partition=sites: ignored, one a site)")] = 10
    partition: Annotated[PartitionName, Help(PARTITION_HELP)] = "dirichlet"
    alpha: Annotated[
        Positive,
        Help(
            "concentration of the Dirichlet distribution, for dirichlet, equal_dirichlet, quantity, views and "
            "pachinko (of superclasses); smaller is more skewed",
            "Hsu et al. 2019, arXiv 1909.06335",
        ),
    ] = 0.5
    beta: Annotated[
        Positive,
        Help(
            "concentration of the Dirichlet distribution of the classes of a superclass, for pachinko",
            "Reddi et al. 2021, arXiv 2003.00295",
        ),
    ] = 10.0
    sigma: Annotated[
        float,
        Ge(0),
        Le(5),
        Help(
            "standard deviation of the logarithm of the clients' sizes, for lognormal",
            "FedProx's synthetic data have 2",
        ),
    ] = 1.0
    classes_per_client: Annotated[
        PositiveInt, Help("classes of each client, for shards", "Li et al. 2022, arXiv 2102.02079")
    ] = 2
    shards_per_client: Annotated[
        PositiveInt, Help("shards of each client, for pathological", "McMahan et al. 2017")
    ] = 2
    min_samples: Annotated[
        PositiveInt, Help("least samples of a client, before its local test set is cut off (not for sites and views)")
    ] = 10
    view_samples: Annotated[PositiveInt, Help("samples of a client, its local test set among them, for views")] = 50
    local_test: Annotated[
        Literal["cut", "global"],
        Help(
            "a client's local test set: cut (test_share of its own samples, which it then does not train on; "
            "with partition=sites, the test samples of its own site where the data says their sites) or global (the "
            "common test set, the same for every client, as in the code of FedLD; nothing is cut off)"
        ),
    ] = "cut"
    test_share: Annotated[
        OpenShare, Help("share of a client's samples that is its local test set, for local_test=cut")
    ] = 0.2
    validation_share: ValidationShare = 0.0

    def split(self, data: Labeled, stream: Stream) -> Split:
        """Split the training samples over clients. WorkloadError if they cannot be split as asked."""
        if self.partition == "auto":
            return replace(self, partition="dirichlet" if data.sites is None else "sites").split(data, stream)
        if self.local_test == "global" and not data.test_size:
            raise WorkloadError("local_test=global needs test samples, and the data has none; set local_test to cut")
        if self.partition == "views":
            return self._views(data, stream("partition"))
        recordings = None
        if self.partition == "sites":
            (whole, client_names), recordings = _sites(data), data.recordings
        else:
            whole, client_names = self._split_at_random(data, stream("partition")), NO_NAMES
        tests: Partition | Common | None = None
        if self.local_test == "global":
            tests = Common(np.arange(data.test_size), whole.clients)
        elif self.partition == "sites" and data.test_sites is not None:
            tests = _tests_of_sites(data.test_sites, client_names)
        split = held_out(whole, tests, self.test_share, self.validation_share, stream, client_names, recordings)
        return replace(split, partition=self.partition)

    def _views(self, data: Labeled, generator: np.random.Generator) -> Split:
        common = Common(np.arange(data.test_size), self.clients) if self.local_test == "global" else None
        test_share, validation = self.test_share if common is None else 0.0, None
        train, test = views(data.labels, self.clients, self.alpha, self.view_samples, test_share, generator)
        if self.validation_share:
            train, validation = set_aside(train, self.validation_share)
        return Split(train, test if common is None else common, common is not None, validation, NO_NAMES, "views")

    def _split_at_random(self, data: Labeled, generator: np.random.Generator) -> Partition:
        """The training samples, split at random over clients that have no names."""
        labels, clients, least = data.labels, self.clients, self.min_samples
        if self.partition == "iid":
            return partition.iid(len(labels), clients, least, generator)
        if self.partition == "quantity":
            order = partition.lie_by_class(labels)
            return partition.quantity(len(labels), clients, self.alpha, least, generator, by_class=order)
        if self.partition == "lognormal":
            order = partition.lie_by_class(labels)
            return partition.lognormal(len(labels), clients, self.sigma, least, generator, by_class=order)
        if self.partition == "shards":
            return partition.shards(labels, clients, self.classes_per_client, least, generator)
        if self.partition == "pathological":
            return skewed_splits.sorted_shards(labels, clients, self.shards_per_client, least, generator)
        if self.partition == "quantile":
            return skewed_splits.quantiles(_feature(data), clients, least, generator)
        if self.partition == "equal_dirichlet":
            return skewed_splits.equal_dirichlet(labels, clients, self.alpha, least, generator)
        if self.partition == "pachinko":
            above = _superclasses(data)
            return skewed_splits.pachinko(labels, above, clients, self.alpha, self.beta, least, generator)
        return partition.dirichlet(labels, clients, self.alpha, least, generator)


def _sites(data: Labeled) -> tuple[Partition, NDArray[np.str_]]:
    """A client for each site, with their names; WorkloadError for one that cannot stand in tables."""
    if data.sites is None:
        raise WorkloadError(
            f"partition=sites needs {data.sites_from}, and there is none; choose iid, dirichlet, shards, quantity or "
            "lognormal"
        )
    whole, client_names = partition.sites(data.sites)
    check_names(client_names.tolist(), "partition=sites")
    return whole, client_names


def _superclasses(data: Labeled) -> Integers:
    if data.superclasses is None:
        raise WorkloadError(
            "partition=pachinko needs data whose classes have superclasses, as those of cifar100 (the array "
            "superclasses of an npz file), and there are none; choose dirichlet"
        )
    return data.superclasses


def _feature(data: Labeled) -> NDArray[np.floating]:
    if data.feature is None:
        raise WorkloadError("partition=quantile needs a feature to sort by, and this data has none; choose dirichlet")
    return data.feature()


def _tests_of_sites(test_sites: NDArray[np.str_], client_names: NDArray[np.str_]) -> Partition:
    """Indices into the test samples of each site; those of a site without training data are in the global test only."""
    owners = np.full(len(test_sites), -1, dtype=np.int64)
    for client, site in enumerate(client_names):
        owners[test_sites == site] = client
    return partition.from_owners(owners, len(client_names))
