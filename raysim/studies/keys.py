"""The keys of a study file and the types of their values, as pydantic models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from raysim.columns import Best, Column
from raysim.comparison.outcomes import Pairing
from raysim.results.measures import column_of
from raysim.studies.curves import Curves
from raysim.studies.entries import (
    Entry,
    Measured,
    Options,
    Seeds,
    Text,
    context_of,
    file_place,
    flat_options,
    or_empty,
    read_measure,
)
from raysim.studies.pictures import HeatMap, Picture
from raysim.units import UNITS


class OwnMeasure(Entry):
    """A measure with its heading; one of a column that a method reports itself says the unit too."""

    title: str | None = None
    unit: Literal[UNITS] | None = None  # type: ignore[valid-type]
    best: Best | None = None

    def column(self) -> Column | None:
        """The column that it declares; None: one of the engine's."""
        if self.unit is None:
            return None
        return Column(self.unit, self.best or ("largest" if self.unit == "percent" else "smallest"))


def _titled(given: object) -> object:
    """A heading alone, as what it stands for."""
    if not isinstance(given, str | Mapping):
        raise ValueError(f"{given!r} is not allowed. Allowed: the heading, as text, or {{title, unit, best}}.")
    return {"title": given} if isinstance(given, str) else given


class WithOptions(Entry):
    """Options of a run beside keys of the study's own."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _has_options(self) -> WithOptions:
        flat_options(self.model_extra or {})
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Path → value."""
        return flat_options(self.model_extra or {})


class ColumnEntry(WithOptions):
    """A column: options that hold in it, seeds of its own, and the rows that alone have cells in it."""

    seeds: Seeds | None = None
    rows: Annotated[list[str], Field(min_length=1)] | None = None
    """None: all of the study."""


Printed = Annotated[dict[str, str | int | float], Field(min_length=1)]
"""Measure → its number in a paper, in the unit of the table."""


class RowEntry(WithOptions):
    """A row: its options, those of one column, measures that it shows in the place of others, a paper's numbers."""

    inside: dict[str, Options] = Field(default_factory=dict, alias="in")
    shows: dict[str, Measured] = Field(default_factory=dict)
    paper: dict[str, Printed | str | int | float] = Field(default_factory=dict)
    """Column → its numbers; without columns the numbers alone."""


class Compare(Entry):
    """One entry of a study file's ``compare``: rows, each less the row ``against``."""

    rows: Annotated[list[str], Field(min_length=1)]
    against: str
    measure: Measured
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    """None: all of the study."""

    @model_validator(mode="after")
    def _has_two_rows(self) -> Compare:
        if self.against in self.rows:
            raise ValueError(f"{self.against!r} is compared with itself.")
        return self

    def pairing(self) -> Pairing:
        """The same without what pydantic knows of it."""
        return Pairing(tuple(self.rows), self.against, self.measure, tuple(self.columns) if self.columns else None)


class Choose(Entry):
    """Options of a grid of which the best value is chosen for each row: ``choose`` of a study file."""

    options: Annotated[list[str], Field(min_length=1)]
    measure: Measured


Latex = Annotated[Path, BeforeValidator(partial(file_place, ".tex"))]
Csv = Annotated[Path, BeforeValidator(partial(file_place, ".csv"))]


class Reproduces(Entry):
    """The table of a paper that a study reproduces, and what changes in the study at other sizes than its own."""

    table: Text
    """Its paper and number in words."""
    small: dict[str, Any]
    """Keys of a study file, for a run of some minutes: ``base`` is added to the study's, others replace its."""
    paper: dict[str, Any]
    """The same for the published protocol."""


class Resampled(Entry):
    """How many test and training samples every seed draws anew from the same ones."""

    test: Annotated[int, Field(ge=1)]
    training: Annotated[int, Field(ge=1)]
    folds: Annotated[int, Field(ge=2)] | None = None
    """Where a seed is a fold: how many there are."""

    @property
    def ratio(self) -> float:
        """Test samples per training sample."""
        return self.test / self.training


class StudyFile(Entry):
    """The keys of a study file; values are read in this order."""

    title: Text
    results: Text
    table: Text
    base: Options
    measures: Annotated[dict[str, Annotated[OwnMeasure, BeforeValidator(_titled)]], Field(min_length=1)]
    columns: Annotated[dict[str, Annotated[ColumnEntry, BeforeValidator(or_empty)]], Field(min_length=1)] | None = None
    """None: one, without a name."""
    rows: Annotated[dict[str, Annotated[RowEntry, BeforeValidator(or_empty)]], Field(min_length=1)] | None = None
    grid: Annotated[dict[str, Annotated[list[Any], Field(min_length=1)]], Field(min_length=1)] | None = None
    """Option → its values; all combinations are the rows."""
    choose: Choose | None = None
    seeds: Seeds
    per_seed: list[Text] = Field(default_factory=list)
    """Options whose value is the cell's seed: folds of a cross-validation, say."""
    picture: Picture | None = None
    latex: Latex | None = None
    """A file with the tables for a paper."""
    csv: Csv | None = None
    """A file with the table's numbers, and beside it those of differences, tests and runs."""
    curves: Curves | None = None
    heat_map: HeatMap | None = None
    compare: list[Compare] = Field(default_factory=list)
    resampled: Resampled | None = None
    """None: test samples are the same for every seed, or drawn afresh."""
    reproduces: Reproduces | None = None
    """Read by ``python -m raysim.reproduce`` alone."""
    statistics: bool = False
    """Whether tests of the differences stand under the table, and the best rows are marked in it."""

    @model_validator(mode="after")
    def _has_rows(self) -> StudyFile:
        if (self.rows is None) == (self.grid is None):
            raise ValueError("a study has either rows, each with its options, or a grid, an option with its values.")
        if self.choose is not None and self.grid is None:
            raise ValueError("choose: it chooses among the values of a grid, and the file has none.")
        if self.statistics and self.resampled is not None:
            raise ValueError("statistics: signed ranks do not know of resampled; take one of the two out.")
        return self

    @field_validator("measures")
    @classmethod
    def _declare(cls, measures: dict[str, OwnMeasure], info: ValidationInfo) -> dict[str, OwnMeasure]:
        for name, given in measures.items():
            if (column := given.column()) is not None:
                context_of(info).own[column_of(name)] = column
        for name in measures:
            read_measure(name, info)
        return measures
