"""Builds the crate of one or several runs: a folder a run, and an action that says how it was made."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from shlex import quote as quoted
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from raysim.crate.run_facts import RunFacts, as_text
from raysim.errors import ConfigError
from raysim.portable import VARIABLES
from raysim.storage.folder_files import open_file
from raysim.units import counted

if TYPE_CHECKING:
    from io import FileIO

    from rocrate.model import ContextEntity, DataEntity, Entity
    from rocrate.rocrate import ROCrate

VERSION = "1.1"
"""Version of RO-Crate that the profile extends."""
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
UNLICENSED = "No license is stated: ask the authors before you use the files."
TERMS = {name: f"https://w3id.org/ro/terms/workflow-run#{name}" for name in ("sha256", "environment")}
"""Terms of the profile that RO-Crate 1.1 does not have."""
FORMATS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".log": "text/plain",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".safetensors": "application/octet-stream",
    ".yaml": "application/yaml",
}
FILES = {
    "config.yaml": "the complete settings; python -m raysim.launch --config repeats the run, unless it is a replay",
    "environment.json": "versions, processor and commit that the run was computed with",
    "rounds.csv": "measurements, a row a round",
    "clients.csv": "measurements, a row a client and round",
    "summary.json": "the last and the best of all rounds",
    "model.safetensors": "the trained model",
    "partition.csv": "who has which data",
    "report.html": "a page that shows the run",
    "origin.json": "the run whose first rounds this one has, and what differs",
}
"""Files of a run's folder that are described in a few words."""


@dataclass(frozen=True)
class Author:
    """A person who made the runs.

    Args:
        name: as it is printed.
        orcid: the person's page, https://orcid.org/…; empty: none is stated.
    """

    name: str
    orcid: str = ""


def crate_of(
    folders: Sequence[Path],
    *,
    name: str = "",
    license: str = "",
    author: Author | None = None,
    places: Sequence[str] = (),
) -> ROCrate:
    """The crate of finished runs, each in a folder of its own; files can be added to it before it is written.

    Args:
        folders: run folders, which are only read and may be anybody's.
        name: the crate's title; by default that of the run.
        license: the URL of a license of all files; empty: the crate says that none is stated.
        places: the name of each run's folder in the crate; by default its own.

    Raises:
        ConfigError: the package rocrate is missing.
        ResultsError: a folder is no finished run's, or is not what its proof says.
    """
    if find_spec("rocrate") is None:
        raise ConfigError("the package rocrate is not installed. Install it with pip install rocrate.")
    from rocrate.model import ContextEntity, Person
    from rocrate.rocrate import ROCrate

    runs = [RunFacts.of(folder) for folder in folders]
    crate = ROCrate(version=VERSION)
    crate.metadata.extra_terms = dict(TERMS)
    profile = {"@type": "CreativeWork", "name": "Process Run Crate", "version": PROFILE.rpartition("/")[2]}
    root = crate.root_dataset
    root["conformsTo"] = crate.add(ContextEntity(crate, PROFILE, profile))
    root["name"] = name or (runs[0].title if len(runs) == 1 else counted(len(runs), "run"))
    root["description"] = (
        "Federated learning, simulated with raysim. Each action names the command that checks its run."
    )
    terms = {"@type": "CreativeWork", "name": license, "description": "the license of all files"}
    root["license"] = crate.add(ContextEntity(crate, license, terms)) if license else UNLICENSED
    agent = author and crate.add(Person(crate, author.orcid or f"#{quote(author.name)}", {"name": author.name}))
    if agent:
        root["author"] = agent
    taken: set[str] = set()
    names = places or [folder.resolve().name for folder in folders]
    if unfit := [name for name in names if not name.isprintable()]:
        raise ConfigError(f"{unfit[0]!a} is no name for a folder of a crate. Rename it.")
    actions = [_RunEntities(crate, run, place_of(own, taken)).add(agent) for run, own in zip(runs, names, strict=True)]
    root["mentions"] = _plain(actions)
    return crate


def file_facts(name: str, file: FileIO) -> dict[str, str]:
    """The properties of a file in a crate: its name, size in bytes, SHA-256 digest and format.

    Args:
        file: opened at its beginning.
    """
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    format = FORMATS.get(PurePosixPath(name).suffix, "application/octet-stream")
    return {"name": name, "contentSize": str(file.tell()), "sha256": digest, "encodingFormat": format}


def _plain(entities: list[Any]) -> Any:
    """A single entity without its list, as RO-Crate writes it."""
    return entities if len(entities) > 1 else entities[0]


def place_of(own: str, taken: set[str]) -> str:
    """The name of a run's folder in the crate, with a number behind it where another has it; it is ``taken`` then."""
    names = (own, *(f"{own}-{number}" for number in range(2, len(taken) + 2)))
    found = next(name for name in names if name not in taken)
    taken.add(found)
    return found


def _package_url(name: str, version: str) -> str:
    """The identifier of Python or of a package, as the standard for package URLs has it (github.com/package-url)."""
    own = "generic/python" if name == "Python" else f"pypi/{name.lower().replace('_', '-')}"
    return f"pkg:{own}@{quote(version)}"


class _RunEntities:
    """Adds one run to a crate.

    Args:
        place: the name of its folder there.
    """

    def __init__(self, crate: ROCrate, run: RunFacts, place: str) -> None:
        self._crate, self._run, self._place = crate, run, place
        self._id = uuid.uuid5(uuid.NAMESPACE_URL, f"{run.head} {place}")

    def add(self, agent: Entity | None) -> ContextEntity:
        """Add its files and what they were made of, and return the action that made them.

        Args:
            agent: who made it, if that is stated.
        """
        run, files = self._run, self._files()
        folder = self._crate.add_dataset(dest_path=self._place, properties={"name": run.title})
        folder["hasPart"] = list(files.values())
        given = [self._value(path, value) for path, value in run.settings.items()]
        action = self._entity(
            f"#{self._id}",
            {
                "@type": "CreateAction",
                "name": run.title,
                "description": self._description(),
                "startTime": run.started,
                "endTime": run.ended,
            },
        )
        action["instrument"] = self._software()
        action["object"] = [files["config.yaml"], self._data(), *given]
        made = [file for name, file in files.items() if name != "config.yaml"]
        numbers = [self._value(name, value, f"{self._id}/") for name, value in run.results.items()]
        action["result"] = [*made, *numbers, *self._proof(folder)]
        if agent:
            action["agent"] = agent
        caps = run.environment.get("caps") or {}
        if set_here := [self._value(name, caps[name]) for name in VARIABLES if name in caps]:
            action["environment"] = _plain(set_here)
        return action

    def _description(self) -> str:
        if not self._run.head:
            return "raysim simulated federated learning with these settings. The run has no proof."
        return (
            "raysim simulated federated learning with these settings. Check the files against the proof, or with --all "
            f"compute all of it again: python -m raysim.verify {quoted(self._place)} --head {self._run.head}"
        )

    def _entity(self, identifier: str, properties: Mapping[str, Any]) -> ContextEntity:
        from rocrate.model import ContextEntity

        said = {name: value for name, value in properties.items() if value not in ("", None)}
        return self._crate.add(ContextEntity(self._crate, identifier, said))

    def _value(self, name: str, value: object, owner: str = "") -> ContextEntity:
        """A name with its value; runs that share it share the entity, unless it has an owner."""
        text = as_text(value)
        identifier = f"#{quote(f'{owner}{name}={text}')}"
        return self._entity(identifier, {"@type": "PropertyValue", "name": name, "value": text or '""'})

    def _files(self) -> dict[str, DataEntity]:
        """The run's files with their sizes in bytes and SHA-256 digests, by their names in its folder."""
        found = {}
        for path in self._run.files():
            name = path.as_posix()
            with open_file(self._run.folder / path, inner=len(path.parts) - 1) as file:
                properties = file_facts(name, file)
            if name in FILES:
                properties["description"] = FILES[name]
            target = PurePosixPath(self._place) / name
            found[name] = self._crate.add_file(self._run.folder / path, str(target), properties=properties)
        return found

    def _software(self) -> ContextEntity:
        """raysim, and the Python and the packages that it computed with."""
        versions = dict(self._run.versions)
        own = versions.pop("raysim", "")
        needed = []
        for name, version in versions.items():
            properties = {"@type": "SoftwareApplication", "name": name, "softwareVersion": version}
            needed.append(self._entity(_package_url(name, version), properties))
        processor = self._run.environment.get("cpu")
        found = self._entity(
            f"#raysim-{self._id}",
            {
                "@type": "SoftwareApplication",
                "name": "raysim",
                "description": "simulates federated learning in parallel on Ray",
                "softwareVersion": own,
                "operatingSystem": self._run.environment.get("platform"),
                "processorRequirements": processor and f"computed on {processor}",
            },
        )
        found["softwareRequirements"] = needed
        return found

    def _data(self) -> ContextEntity:
        """The data set, with its digests where they are known."""
        run, published = self._run, self._run.published
        made = " (made up by raysim)" if run.summary.get("synthetic") else ""
        found = self._entity(
            f"#data-{self._id}",
            {
                "@type": "CreativeWork",
                "name": f"{run.data}{made}",
                "description": published and published.title,
                "url": published and published.source,
                "license": published and published.license,
            },
        )
        kind = "digest of the published " if published else "digest of "
        if known := [self._value(name, digest, kind) for name, digest in run.data_digests.items()]:
            found["identifier"] = _plain(known)
        return found

    def _proof(self, folder: Entity) -> list[ContextEntity]:
        """The head of the run's proof, by which its folder is known too; none of a run without one."""
        if not self._run.head:
            return []
        found = self._entity(
            f"#proof-{self._run.head}",
            {
                "@type": "PropertyValue",
                "name": "head of the proof",
                "description": "SHA-256 chain over settings, rounds, states and model, the last line of proof.jsonl",
                "propertyID": "https://en.wikipedia.org/wiki/SHA-2",
                "value": self._run.head,
            },
        )
        folder["identifier"] = found
        return [found]
