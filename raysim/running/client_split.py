"""``raysim.split``: one data set of a user's own, cut over clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raysim import seeds
from raysim.config.nearest import did_you_mean
from raysim.config.options import options_of_class
from raysim.errors import ConfigError, warn
from raysim.leaving import staying

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITIONS = (
    *("auto", "iid", "dirichlet", "equal_dirichlet", "shards", "pathological"),
    *("quantity", "lognormal", "sites"),
)
"""Partitions of given data, which has no superclasses and no feature to sort by, and whose clients share no samples."""
_UNREAD = ("local_test", "test_share", "validation_share", "view_samples", "beta")
"""Options of a split that a run has for itself, that only clients without arrays of their own have, or that none of
:data:`PARTITIONS` reads."""


@staying()
def split(
    data: Any,
    clients: int = 10,
    partition: str = "dirichlet",
    *,
    seed: int = 0,
    sites: Sequence[object] | None = None,
    **options: Any,
) -> Any:
    """Cut a data set over clients, for ``raysim.run(…, clients=…)``.

    Args:
        data: a pair (x, y) of arrays or tensors, x also a list of texts, a torch Dataset of such pairs, or graphs: a
            data set or a list of PyTorch Geometric's ``Data``, labeled, of which every client gets a list.
        clients: number of clients.
        partition: iid, dirichlet, equal_dirichlet, shards, pathological, quantity, lognormal, sites (docs/data.md), or
            auto: sites where these are given, else dirichlet.
        seed: of the split, which is the same in every run with it.
        sites: the client of each sample, by name; then ``partition`` and ``clients`` need not be given.
        options: alpha, sigma, classes_per_client, min_samples, …, as the command line has them.

    Returns:
        A :class:`raysim.workloads.given.arrays.ClientSplit`, the sequence of every client's (x, y); of graphs
        a list with every client's list of ``Data``, or with ``sites`` a dict name → list.

    Raises:
        ConfigError: an option is unknown or not allowed.
        WorkloadError: the data is not sound or cannot be cut so.
    """
    from raysim.workloads.errors import WorkloadError
    from raysim.workloads.given.arrays import ClientSplit, read, site_names
    from raysim.workloads.given.labels import as_classes
    from raysim.workloads.graphs.given_graphs import hold_graphs
    from raysim.workloads.graphs.pyg_data import as_graph_classes, labels_of
    from raysim.workloads.splits.partition import Partition
    from raysim.workloads.splits.split_options import Labeled, SplitOptions, unread

    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"split.seed: {seed!r} is not allowed. Allowed: a whole number ≥ 0; default 0.")
    if sites is None and partition not in PARTITIONS:
        raise ConfigError(
            f"split.partition: {partition!r} is not allowed.{did_you_mean(str(partition), PARTITIONS)} "
            f"Allowed: {' | '.join(PARTITIONS)}; default dirichlet."
        )
    known = {path.partition(".")[2]: option for path, option in options_of_class("split", SplitOptions).items()}
    known = {name: option for name, option in known.items() if name not in _UNREAD}
    values: dict[str, Any] = {}
    wanted = {"clients": clients, "partition": "sites" if sites is not None else partition, **options}
    for name, value in wanted.items():
        if name not in known:
            listing = ", ".join(["seed", "sites", *known])
            raise ConfigError(f"split: unknown option {name}.{did_you_mean(name, known)} Options of split: {listing}.")
        values[name] = known[name].convert(value)
    with seeds.kept_streams(seeds.number(0, "data")):  # a Dataset may draw from them
        graphs = hold_graphs(data)
        x, y = (np.zeros(0), labels_of(data)) if graphs else read(data, "data")
    named = None if sites is None else site_names(sites)
    if named is not None and named.shape != (len(y),):
        raise WorkloadError(f"sites: {named.shape} for {len(y)} samples; give one name for each sample")
    by_label = y.ndim == 1 and y.dtype.kind in "iub"
    if not by_label and values["partition"] not in ("iid", "quantity", "lognormal", "sites"):
        classes = as_graph_classes(y) if graphs else as_classes(y)
        advice = f"give {classes} if they are classes, or " if classes else ""
        raise WorkloadError(
            f"partition={values['partition']} goes by whole-number labels, one a sample, and y is {y.dtype} "
            f"{y.shape}; {advice}choose iid, quantity, lognormal or sites"
        )
    labels = y.astype(np.int64) if by_label else np.zeros(len(y), np.int64)
    # The one test sample is for local tests, which a run cuts for itself; those of this split are dropped.
    described = Labeled(labels, 1, named, sites_from="sites=…, the client of every sample by name")
    found = SplitOptions(local_test="global", **values).split(
        described, lambda purpose: seeds.numpy_generator(seed, f"split {purpose}")
    )
    assert isinstance(found.train, Partition), "views are none of PARTITIONS"
    for name in options:
        if (why := unread(name, found.partition, PARTITIONS)) and values[name] != known[name].default:
            warn(f"split: {name} has no effect with partition {found.partition}: {why}.")
    if graphs:
        parts = [[data[index] for index in found.train.of(client).tolist()] for client in range(found.train.clients)]
        return dict(zip(found.client_names.tolist(), parts, strict=True)) if named is not None else parts
    return ClientSplit(x, y, found.train, found.client_names)
