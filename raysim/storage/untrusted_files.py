"""Read YAML and JSON that anyone may have written: plain data only, within limits of size, depth and number of values.

A run folder or a study can come from anywhere. What shows or resumes it must answer within a second, whatever is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raysim.storage.folder_files import LinkError, open_file
from raysim.units import byte_count

if TYPE_CHECKING:
    from yaml import Node

MAX_YAML_BYTES = 2**18
"""Largest YAML file that is read: a configuration has a few kilobytes, and this much takes less than a second."""
MAX_JSON_BYTES = 2**24
"""Largest JSON file that is read: the status of a run with many slots and faults stays far below."""
MAX_DEPTH = 32
MAX_VALUES = 100_000
"""Largest number of values of a YAML document, aliases written out: a few lines can stand for billions."""
MAX_DIGITS = 100
"""Most signs of a whole number: Python cannot write one of thousands of digits, nor make a float of it."""


class UnreadableFileError(ValueError):
    """A file is not what it should be; the message says why, without the file's name."""


def read_text(path: Path, limit: int, *, own: bool = False) -> str:
    """The text of a regular file of at most ``limit`` bytes, in UTF-8.

    Args:
        own: it is a run folder's own file, and so no link.

    Raises:
        UnreadableFileError: it is something else (a pipe, a folder), larger, or not UTF-8.
        OSError: it is not there, or may not be read.
    """
    try:
        with open_file(path, links=not own) as file, BufferedReader(file) as content_of:
            content = content_of.read(limit + 1)
    except LinkError as error:
        raise UnreadableFileError(error.strerror) from error
    if len(content) > limit:
        raise UnreadableFileError(f"it is larger than {byte_count(limit)}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UnreadableFileError(f"it is not UTF-8 text (byte {error.start})") from error


def read_yaml(path: Path, *, own: bool = False) -> Any:
    """The plain data in a YAML file; None if the file is empty.

    Raises:
        UnreadableFileError: as :func:`read_text` and :func:`yaml_of`.
        OSError: it is not there, or may not be read.
    """
    return yaml_of(read_text(path, MAX_YAML_BYTES, own=own))


def yaml_of(text: str) -> Any:
    """The plain data of a YAML text; None if it is empty.

    Raises:
        UnreadableFileError: it is not valid YAML, asks for Python objects, has a key twice in one place, or is nested
            or multiplied by aliases beyond the limits.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's parser where PyYAML was built with it
    try:
        _check_depth(event for event in yaml.parse(text, Loader=loader))
        node = yaml.compose(text, Loader=loader)
        if node is None:
            return None
        _check_size(node)
        return yaml.SafeLoader("").construct_document(node)
    except (AttributeError, LookupError) as error:  # PyYAML's own, of !!timestamp x, !!bool x and !!int ""
        raise UnreadableFileError("not valid YAML: a value is not what its tag (!!bool, !!int …) says") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, UnreadableFileError):
            raise
        raise UnreadableFileError(f"not valid YAML: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file of a run's folder.

    Raises:
        UnreadableFileError: as :func:`read_text`; it is not valid JSON (which has no Infinity and no NaN), nested too
            deep, or no object.
        OSError: it is not there, or may not be read.
    """

    def refuse(constant: str) -> None:
        raise UnreadableFileError(f"not valid JSON: it holds {constant}")

    def whole(digits: str) -> int:
        _check_digits(digits)
        return int(digits)

    text = read_text(path, MAX_JSON_BYTES, own=True)
    try:
        found = json.loads(text, parse_constant=refuse, parse_int=whole)
    except RecursionError as error:
        raise UnreadableFileError("not valid JSON: it is nested too deep") from error
    except UnreadableFileError:
        raise
    except ValueError as error:
        raise UnreadableFileError(f"not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableFileError(f"it holds {_kind(found)} where an object is expected")
    return found


def check_types(data: Mapping[str, Any], expected: Mapping[str, type | tuple[type, ...]]) -> None:
    """Raise UnreadableFileError for the first entry with another type than expected; bool is no number."""
    for name, kinds in expected.items():
        value = data.get(name)
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if name in data and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
            raise UnreadableFileError(f"{name} is {_kind(value)} where {_names(allowed)} is expected")


def _check_depth(events: Iterable[Any]) -> None:
    """Check the nesting by parser events, which PyYAML gives without recursion."""
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UnreadableFileError(f"it is nested deeper than {MAX_DEPTH} levels")


def _check_size(root: Node) -> None:
    """Check keys, and the number of values before anything is constructed: merge keys (``<<``) copy what they name."""
    import yaml

    count, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        count += 1
        if count > MAX_VALUES:
            raise UnreadableFileError(f"with its aliases written out it holds more than {MAX_VALUES} values")
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            _check_keys(node)
            waiting.extend(part for pair in node.value for part in pair)
        elif node.tag == "tag:yaml.org,2002:int":
            _check_digits(node.value)


def _check_digits(text: str) -> None:
    if len(text) > MAX_DIGITS:
        raise UnreadableFileError(f"it holds a whole number of {len(text)} signs, more than {MAX_DIGITS}")


def _check_keys(mapping: Node) -> None:
    """Check that no key is there twice: PyYAML would keep the last and drop the others without a word."""
    lines: dict[str, int] = {}
    for key, _ in mapping.value:
        line = key.start_mark.line + 1
        name = key.value if isinstance(key.value, str) else ""  # a list or section as a key is refused elsewhere
        if name in lines:
            raise UnreadableFileError(
                f"line {line}: the key {name} is there a second time (the first is in line {lines[name]}), and only "
                "the last would count. Take one out, or give it another name"
            )
        if name:
            lines[name] = line


_KINDS: Mapping[type, str] = {
    dict: "a section",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def _names(kinds: Iterable[type]) -> str:
    return " or ".join(dict.fromkeys(_KINDS[kind] for kind in kinds))
