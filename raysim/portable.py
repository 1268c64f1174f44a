"""Instruction sets that libraries choose by the processor, capped at AVX2: so x86 processors can give the same bits.

torch, oneDNN, MKL, numpy and OpenBLAS each take the widest instructions that they find, and so round sums differently
from one kind of processor to the next. Environment variables cap them, read when a library is loaded: they must be set
before Python starts, in every process. Public experience: Deep-MI/FastSurfer #886 and #892, pytorch #155552.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from raysim.errors import ConfigError

VARIABLES: Mapping[str, str] = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",  # MKL takes no other branch on processors that are not Intel's
    "OPENBLAS_CORETYPE": "Haswell",
    # By the names of numpy from 2.4 on and of those before; of the others numpy says that it does not know them.
    "NPY_DISABLE_CPU_FEATURES": (
        "X86_V4 AVX512_ICL AVX512_SPR AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_KNL AVX512_KNM"
    ),
}
"""Environment variable → its value."""


def missing() -> dict[str, str]:
    """The variables that are not set so in this process."""
    return {name: value for name, value in VARIABLES.items() if os.environ.get(name) != value}


def start_again() -> None:
    """Begin this command again with the variables set, unless they are; nothing has been done yet.

    In a process that is not one of raysim's commands nothing happens: :func:`check` then says what to do.
    """
    if missing() and _is_command():
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **VARIABLES})


def ensure() -> None:
    """Begin this command again with the variables set, unless they are, and :func:`check` what no command can."""
    start_again()
    check()


def check() -> None:
    """Check that this process computes so.

    Raises:
        ConfigError: the processor cannot, or a variable is not set.
    """
    if not has_avx2():
        raise ConfigError("engine.portable: this processor has no AVX2 and FMA, in which portable runs are computed.")
    if missing():
        words = " ".join(f"{name}='{value}'" for name, value in missing().items())
        raise ConfigError(
            "engine.portable: libraries that are loaded already have chosen their instructions by this processor. "
            f"Start Python with {words}, or the run with python -m raysim.launch"
        )


def _is_command() -> bool:
    """Whether this process is a command of raysim's, started as such."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name if spec is not None else ""
    return module.partition(".")[0] == "raysim" or Path(sys.argv[0]).name == "raysim"


def has_avx2() -> bool:
    """Whether the processor has AVX2 and FMA."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:  # not Linux: torch says so where it cannot
        return True
    return "avx2" in flags and "fma" in flags
