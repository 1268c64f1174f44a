"""Adult and heart disease of the UCI repository, in the files as they are published."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from raysim.workloads.errors import WorkloadError
from raysim.workloads.files.table_files import read_table
from raysim.workloads.option_types import Help
from raysim.workloads.tables.table import Rows, TableOptions

if TYPE_CHECKING:
    import pandas

FOLDER = "folder with the published files; empty: {0} in the folder tabular of $RAYSIM_DATA"


@dataclass(frozen=True)
class Adult(TableOptions):
    """Adult (Becker and Kohavi 1996): whether a person earns more than 50,000 dollars, by the census of 1994.

    32,561 training and 16,281 test rows of six numeric and eight categorical columns.
    """

    name: ClassVar[str] = "adult"
    columns: ClassVar[tuple[str, ...]] = (
        "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
        "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
    )  # fmt: skip

    path: Annotated[str, Help(FOLDER.format("adult"))] = ""

    def rows(self) -> Rows:
        import pandas

        folder = published_folder(self.path, self.name, ("adult.data", "adult.test"))
        train = read_table(folder / "adult.data", self.columns)
        test = read_table(folder / "adult.test", self.columns, skip=1)  # "|1x3 Cross validator"
        table = pandas.concat([train, test], ignore_index=True)
        table["income"] = table["income"].str.rstrip(".")
        return Rows(self.name, table, "income", np.arange(len(table)) >= len(train))


@dataclass(frozen=True)
class HeartDisease(TableOptions):
    """Heart disease (Detrano et al. 1989): whether a patient has it, at four hospitals, which are the clients.

    303 patients in Cleveland, 294 in Hungary, 123 in Switzerland and 200 in Long Beach (VA); 13 columns with many
    missing values, and the class is 1 for the published 1 to 4.
    """

    name: ClassVar[str] = "heart-disease"
    columns: ClassVar[tuple[str, ...]] = (
        "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal",
        "disease",
    )  # fmt: skip
    categorical: ClassVar[tuple[str, ...]] = ("sex", "cp", "fbs", "restecg", "exang", "slope", "thal")
    hospitals: ClassVar[tuple[str, ...]] = ("cleveland", "hungarian", "switzerland", "va")

    path: Annotated[str, Help(FOLDER.format("heart-disease"))] = ""

    def rows(self) -> Rows:
        import pandas

        names = {hospital: f"processed.{hospital}.data" for hospital in self.hospitals}
        folder = published_folder(self.path, self.name, tuple(names.values()))
        parts: list[pandas.DataFrame] = [read_table(folder / name, self.columns) for name in names.values()]
        table = pandas.concat(parts, ignore_index=True)
        table["disease"] = (table["disease"] > 0).astype(int)
        sites = np.repeat(np.array(self.hospitals), [len(part) for part in parts])
        return Rows(self.name, table, "disease", sites=sites, categorical=self.categorical)


def published_folder(path: str, name: str, files: tuple[str, ...]) -> Path:
    """The folder that holds these files; WorkloadError that says what to put where."""
    base = os.environ.get("RAYSIM_DATA")
    if not path and not base:
        raise WorkloadError(
            f"{name}: option path is empty and RAYSIM_DATA is not set; set path to the folder of {files[0]}, or set "
            f"RAYSIM_DATA and fetch it: python -m raysim.data fetch {name}"
        )
    folder = Path(path or f"{base}/tabular/{name}").expanduser()
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise WorkloadError(
            f"{name}: no {', '.join(missing)} in {folder}; python -m raysim.data fetch {name} downloads them, or set "
            "path to the folder that has them"
        )
    return folder
