"""Chooses and limits the device that a run's client tasks are computed on."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from raysim.errors import GpuMemoryError, HostMemoryError, PlacementError, RaysimError, reason_of
from raysim.leaving import staying

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import Engine
    from raysim.exchange.pool_protocol import RemoteTask


def device_of(engine: Engine) -> str:
    """``cuda`` if actors were asked to have a GPU or a part of one, else ``cpu``; never one for the other.

    Raises:
        PlacementError: torch finds no GPU in this process.
    """
    if not engine.gpus_per_client:
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        raise PlacementError(
            f"--engine.gpus_per_client {engine.gpus_per_client:g}: torch {torch.__version__} finds no GPU on "
            f"{socket.gethostname()}. Install a torch for its GPUs, or set it to 0 to train on the CPU"
        )
    return "cuda"


def cap_memory(engine: Engine) -> None:
    """Let this process have no more of its GPU's memory than its share.

    Beyond it torch raises OutOfMemoryError here, where otherwise a neighbor on the same GPU might get it. What CUDA
    itself takes for each process is not counted.
    """
    if engine.gpu_memory_cap and 0 < engine.gpus_per_client < 1:
        import torch

        torch.cuda.set_per_process_memory_fraction(engine.gpus_per_client)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a GPU's memory, or this machine's, was used up: what the machine lacks is no client's error."""
    import torch

    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "DefaultCPUAllocator" in str(error)


def run_task(task: RemoteTask[Worker], worker: Worker, inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Do the task.

    Raises:
        GpuMemoryError: torch ran out of memory; what the task had of it is free again.
        HostMemoryError: the process got no more main memory.
        RaysimError: code of a user's own called ``sys.exit`` or ``os._exit``, or changed what belongs to the process.
    """
    import torch

    from raysim.client_side import process_state

    before = process_state.snapshot() if worker.own_code else None
    try:
        with staying():  # an actor, or this program, would end without a word
            found = task.run(worker, inputs)
        changed = process_state.put_back(before) if before is not None else ""
        if changed:
            raise RaysimError(changed)
        return found
    except torch.OutOfMemoryError as error:
        reason = str(error).partition(" If reserved but")[0]  # torch's advice on its allocator
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise HostMemoryError(
            f"{socket.gethostname()} has no main memory left for it ({reason_of(error)}). Lower --training.batch_size, "
            "or use a machine with more memory"
        ) from error
    # Only here nothing refers to the failed task's tensors any more.
    torch.cuda.empty_cache()
    raise GpuMemoryError(reason)
