"""Decides what ``training.last_batch auto`` is for the run's model, and which models can train on one sample."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from raysim import seeds
from raysim.config.all_sections import DECIDED
from raysim.config.run_config import with_sections
from raysim.errors import ConfigError
from raysim.training.gradients import training_mode
from raysim.workloads.models.classifier import has_batch_norm

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig


def with_last_batch(config: RunConfig, worker: Worker) -> RunConfig:
    """The config with ``training.last_batch`` decided.

    A mini-batch of a few samples gives BatchNorm a mean and a variance of few values: over 1 x 1 maps as few as
    samples. ``auto`` is therefore ``merge`` where BatchNorm normalizes by the mini-batch, and ``keep`` elsewhere.

    Raises:
        ConfigError: mini-batches of one sample, whose variance the model's BatchNorm cannot compute.
    """
    training = config.training
    normalizes = has_batch_norm(worker.built(0).module) and not training.freeze_batchnorm
    if normalizes and training.batch_size == 1 and not _takes_one_sample(worker):
        raise ConfigError(
            "training.batch_size: 1 is not possible with this model, whose BatchNorm computes a variance over the "
            "mini-batch and has one value for it. Set it to 2 or more, take a model without BatchNorm (cnn, or a "
            "ResNet with --norm group), or set training.freeze_batchnorm to true."
        )
    if training.last_batch != "auto" or config.privacy.kind == "dp-sgd":  # whose mini-batches are drawn
        return config
    training = replace(training, last_batch="merge" if normalizes else "keep")
    return with_sections(config, decided=DECIDED, training=training)


def _takes_one_sample(worker: Worker) -> bool:
    """Whether the model trains on a single sample of the first client that has one."""
    federation = worker.federation
    client = next((k for k in range(federation.clients) if federation.samples(k)), 0)
    model = worker.model(client)
    training_mode(model.module, worker.config.training)
    try:
        with seeds.kept_streams(), torch.no_grad():
            batch = next(iter(worker.data(client).train.batches(1)), None)
            if batch is not None:
                model.module(batch.x)
    except ValueError as error:
        return "more than 1 value" not in str(error)
    except Exception:  # of the data or the module, which raise it again where a client can be named
        return True
    finally:
        model.reset()
    return True
