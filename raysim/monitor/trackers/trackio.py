"""A run in trackio: in ``TRACKIO_DIR``, by default trackio's folder of the Hugging Face cache."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from io import StringIO

from raysim.monitor.tracker import Tracked, Tracker


class Trackio(Tracker):
    """The experiment is trackio's project; nothing leaves this machine unless ``TRACKIO_SPACE_ID`` names a place."""

    package = "trackio"

    def begin(self, run: Tracked, earlier: str) -> str:
        """Open a run of the project."""
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # nothing is ever sent that was not asked for
        import trackio

        project = re.sub(r"[^\w .-]+", "-", run.experiment)  # it is a file's name
        if earlier:
            with suppress(ValueError):  # it was in another store
                for known in [each for each in trackio.Api().runs(project) if each.id == earlier]:
                    known.delete()
        with redirect_stdout(StringIO()):  # of a study's cells it would tell each
            self._run = trackio.init(
                project,
                name=run.name,
                config=dict(run.settings) | dict(run.tags),
                embed=False,
                auto_log_cpu=False,
                auto_log_gpu=False,
            )
        self._number = 0
        return str(self._run.id)

    def log(self, number: int, values: Mapping[str, float]) -> None:
        """Keep the round."""
        self._run.log(dict(values), step=number)
        self._number = number

    def end(self, status: str, proof: str) -> None:
        """Close the run; its status and the head of its proof stand with the last round."""
        self._run.log({"status": status} | ({"proof": proof} if proof else {}), step=self._number)
        with redirect_stdout(StringIO()):
            self._run.finish()


TRACKER = Trackio
