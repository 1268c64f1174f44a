"""``python -m docs.site FOLDER``: build the site, with warnings as errors and every link inside it checked."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docs.site.links import faults
from docs.site.staging import stage

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for the pages, new or empty")
    parser.add_argument("--quick", action="store_true", help="no llms.txt, and no outputs in the notebook")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    if folder.exists() and any(folder.iterdir()):
        print(f"docs.site: {folder} is not empty; name a new folder, or remove it first", file=sys.stderr)
        return 2
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "source"
        source.mkdir()
        stage(source, run=not options.quick)
        shutil.copytree(HERE / "static", source / "_static")
        shutil.copy2(HERE / "conf.py", source)
        given = ["-D", "llms_txt_enabled=0"] if options.quick else []
        code = build_main([*given, "-q", "-W", "--keep-going", "-d", f"{place}/doctrees", str(source), str(folder)])
    found = faults(folder) if code == 0 else []
    for fault in found:
        print(f"docs.site: {fault}", file=sys.stderr)
    return code or int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
