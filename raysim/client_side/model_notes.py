"""Checks of a model and notes about it before the first round, found by showing it two samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raysim import seeds
from raysim.config import registry
from raysim.errors import ConfigError, reason_of
from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.model_options import ModelOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.workloads.federated_data import Batch


def check_outputs(worker: Worker) -> None:
    """Check that a model of the user's own takes the first client's inputs and gives outputs as its labels ask for.

    A method of the user's own may ready it in ``train`` and ``deploy``, and a model may need the GPU that the clients
    have: then a mistake is found in the first client task.

    Raises:
        WorkloadError: it does not.
    """
    config = worker.config
    own_method = ":" in registry.public_name("method", config.method)
    if isinstance(config.model, ModelOptions) or own_method or config.engine.gpus_per_client:
        return
    import torch

    batch = _two_samples(worker)
    if batch is None:
        return
    model, name = worker.model(0), _name(config)
    with torch.inference_mode(), seeds.kept_streams():
        try:
            outputs = model.module.eval()(batch.x)
        except Exception as error:
            shape = f" of shape {tuple(batch.x.shape)}" if isinstance(batch.x, torch.Tensor) else ""
            raise WorkloadError(
                f"model {name} cannot take the inputs{shape} of client 0: {' '.join(reason_of(error).split())}. Make "
                "its first layer take them, or choose a workload that it fits."
            ) from error
        try:
            worker.objective.check(outputs, batch.y, worker.federation.input_spec(0).classes)
        except WorkloadError as error:
            raise WorkloadError(f"model {name}: {error}") from error
    model.reset()


def check_gradients_of_samples(worker: Worker) -> None:
    """Check that torch can compute the gradient of each sample, where ``privacy.kind dp-sgd`` needs it.

    Raises:
        ConfigError: it cannot, as the model or the loss does what ``torch.func.vmap`` does not follow.
    """
    config = worker.config
    if config.privacy.kind != "dp-sgd" or config.engine.gpus_per_client:
        return
    import torch

    from raysim.training.private_gradient import of_each_sample
    from raysim.workloads.models.classifier import has_batch_norm

    batch, model = _two_samples(worker), worker.model(0)
    if batch is None or not isinstance(batch.x, torch.Tensor) or has_batch_norm(model.module):
        return  # others than tensors are refused elsewhere, and BatchNorm too, or the training freezes it
    module = model.module.train()
    trained = {name: each.detach() for name, each in module.named_parameters() if each.requires_grad}

    def loss(called: Callable[[torch.Tensor], torch.Tensor], of: Batch) -> torch.Tensor:
        return worker.objective.mean_loss(called(of.x), of.y)

    with seeds.kept_streams():
        try:
            of_each_sample(module, loss)(trained, batch.x, batch.y)
        except Exception as error:
            if _fails(lambda: loss(module, batch)):  # without vmap too: raised again where the client can be named
                return
            reason = " ".join(reason_of(error).split()).split(". ")[0]
            raise ConfigError(
                "privacy.kind: dp-sgd computes the gradient of every sample with torch.func.vmap, which does not "
                f"follow model {_name(config)} or its loss: {reason}. Leave out what looks at single values (.item(), "
                "an if on a tensor) and what writes into buffers, or set privacy.kind to central or local."
            ) from error
        finally:
            model.reset()


def _two_samples(worker: Worker) -> Batch | None:
    """Two training samples of the first client; None where its data raise, as they do again where it can be named."""
    try:
        return next(iter(worker.data(0).train.batches(2)))
    except Exception:
        return None


def _name(config: RunConfig) -> str:
    """The model's name as a user knows it."""
    return getattr(config.model, "class_name", "") or registry.public_name("model", config.model)


def _fails(call: Callable[[], object]) -> bool:
    try:
        call()
    except Exception:
        return True
    return False


def decays_untrained(worker: Worker) -> str:
    """A note on weight decay that moves parameters which the loss does not reach; empty if there are none.

    A layer that a user's ``forward`` calls under ``torch.no_grad()``, say, which torch's own optimizers would leave.
    Parts that the method adds, or calls by other names, are left out: it may train them in a later phase.
    """
    if not worker.config.training.weight_decay or isinstance(worker.config.model, ModelOptions):
        return ""
    model, names = worker.model(0), list[str]()
    with model.loose_gradients(lambda name: True), seeds.kept_streams():
        try:
            batch = next(iter(worker.data(0).train.batches(2)))
            worker.objective.mean_loss(model.module.eval()(batch.x), batch.y).backward()
            names = [name for name, each in model.module.named_parameters() if each.requires_grad and each.grad is None]
            if names:  # the model alone is built for this only where there is something to say
                alone = worker.config.model.build(worker.federation.input_spec(0))
                names = [name for name, _ in alone.named_parameters() if name in names]
        except Exception:  # of the client's data or the module, which raise it again where a client can be named
            pass
    model.reset()
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"no gradient of the loss reaches {names[0]}{more}, so that training.weight_decay alone moves what they hold. "
        "To keep parameters as they are, freeze them: requires_grad_(False)"
    )


def outputs_probabilities(worker: Worker) -> str:
    """A hint where a model of the user's own ends in a Softmax; empty if it does not.

    The cross-entropy takes logits and has a softmax of its own: a second one before it makes the gradients small, and
    training slow, without any error. Tried on two samples of the first client: all outputs lie between 0 and 1, and
    those of each sample (or position) add up to 1.
    """
    objective = worker.objective
    if objective.loss is not None or not objective.accurate or isinstance(worker.config.model, ModelOptions):
        return ""
    import torch

    model = worker.model(0)
    try:
        with torch.inference_mode(), seeds.kept_streams():
            outputs = model.module.eval()(next(iter(worker.data(0).train.batches(2))).x)
            sums = outputs.sum(dim=-1)
            found = (
                outputs.shape[-1] > 1 and outputs.min() >= 0 and torch.allclose(sums, torch.ones_like(sums), atol=1e-3)
            )
    except Exception:  # of the client's data or the module, which raise it again where a client can be named
        found = False
    model.reset()
    if not found:
        return ""
    return (
        "the model's outputs lie between 0 and 1 and add up to 1 for each of two samples, as after a Softmax: the "
        "loss, cross-entropy, takes logits and has a softmax of its own, so that training is slow. Leave the Softmax "
        "at the model's end out"
    )
