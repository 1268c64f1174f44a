"""Freed memory stays with the process: what one step frees, the next has without a page fault."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

STEPS = """
import ctypes, resource, sys
from raysim.client_side.allocator import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

def step():
    blocks = [libc.malloc(size << 20) for size in (20, 8)]
    for block, size in zip(blocks, (20, 8)):
        ctypes.memset(block, 1, size << 20)
    for block in blocks:
        libc.free(block)

step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's allocator is set")
def test_what_is_freed_is_had_again_without_page_faults() -> None:
    faults = {
        how: int(subprocess.run([sys.executable, "-c", STEPS, how], capture_output=True, text=True, check=True).stdout)
        for how in ("default", "kept")
    }
    assert faults["default"] > 1000
    assert faults["kept"] < 100
