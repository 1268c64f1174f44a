"""The round loop: sample, message, train, aggregate, evaluate, checkpoint. It knows no Ray."""

from __future__ import annotations

import math
import time
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from raysim import columns, schedule
from raysim.aggregators.means import sample_weights
from raysim.client_side.drift import Moment
from raysim.client_side.last_batch import with_last_batch
from raysim.client_side.model_parts import without_batch_norm
from raysim.engine.checkpointing import Saves, State, kept_noise
from raysim.engine.cohort_chunks import Chunker, merges_single_steps
from raysim.engine.cohort_run import Collected, Collector
from raysim.engine.early_stopping import EarlyStopping
from raysim.engine.evaluation import evaluate_round, training_losses
from raysim.engine.loss_decomposition import decompose_round
from raysim.engine.privacy_budget import with_privacy
from raysim.engine.proof import Proof
from raysim.engine.round_columns import measurable
from raysim.engine.round_plan import Planner, RoundPlan, Selection, first_selection
from raysim.engine.server_half import check_server, first_message, first_server, stage
from raysim.errors import DiskFullError
from raysim.exchange.returned_values import check_messages, check_report
from raysim.method import Context, Message
from raysim.storage import pytree
from raysim.virtual_time.clock import VirtualClock
from raysim.virtual_time.fleet import ANSWER_BYTES
from raysim.workloads.federated_data import exchanged_before_training
from raysim.workloads.models.classifier import has_batch_norm

if TYPE_CHECKING:
    from raysim.client_side.worker import Worker
    from raysim.config.run_config import RunConfig
    from raysim.engine.observer import RunNotes
    from raysim.exchange.pool_protocol import Pool
    from raysim.samplers._sampler import Losses, Sampler


class Rounds:
    """One run.

    Args:
        worker: a worker of this process, for the model's structure and the server's first state.
        pool: where tasks run, and the clients' data, already pooled if the method asks for it.
        stopping: asked between tasks; true ends the run with :class:`raysim.engine.cohort_run.Stopped`.
    """

    def __init__(
        self,
        config: RunConfig,
        worker: Worker,
        pool: Pool,
        notes: RunNotes,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        config = with_last_batch(config, worker)
        self.config, self.worker, self.pool, self._notes = config, worker, pool, notes
        self.folder, self.observer, self.recorder = notes.folder, notes.observer, pool.recorder
        self.intervals = schedule.planned_intervals(config)
        measured = measurable(worker) if config.evaluation.ends_early else ()
        self._stopping = EarlyStopping(config.evaluation, worker.objective, measured)
        model = worker.built(0)
        if config.training.freeze_batchnorm and not has_batch_norm(model.module):
            # A model of a user's own need not declare what it has.
            raise without_batch_norm(config, "training.freeze_batchnorm: true")
        self._tensors, self.shared_parameter_count = model.shared_tensors, model.shared_parameter_count
        merges = merges_single_steps(config, worker, min(self.intervals), notes)
        self._first_server = first_server(worker, notes.note)
        self.state = State(self._first_server, selection=first_selection(config))
        on = config.devices.on
        self.clock = VirtualClock(config, worker, first_message(worker, self._first_server)) if on else None
        self.planner = Planner(config, pool.federation, self.clock)
        self.method, noise = with_privacy(worker, self.planner, kept_noise(self.folder), notes.note)
        self._bytes_up = self.method.traits.bytes_up(self._tensors)
        self.collector = Collector(config, self.method, Chunker(config, worker, merges), pool, notes, stopping)
        self._trained = 0.0
        """When the last round's updates were there."""
        self._torn = False
        """Whether a round's rows may be half written."""
        self._saves = Saves(self.folder, config, pool, self._first_server, notes.fault, noise)
        self.proof = Proof(self.folder, config)

    # -- the loop ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """All rounds that are left; on the way out of any failure the last whole round is saved."""
        try:
            self.begin_again()
            while self.state.round < len(self.intervals) and not self._stopping.reason:
                if self.pool.adapt():
                    self.folder.log(self.pool.plan)
                    self.observer.placed(self.pool.plan)
                with self.recorder.round(self.state.round + 1, self.pool.slots):
                    self._round(self.state.round + 1)
                    last = self.state.round == len(self.intervals) or bool(self._stopping.reason)
                    if last or self.state.round % self.config.engine.checkpoint_every == 0 or self._saves.overdue:
                        with self.recorder.phase("checkpoint"):
                            (self._saves.save if last else self._saves.try_to_save)(self.state)
            self._saves.save(self.state)
            self.proof.states = self._saves.digest(self.state)
            if self._stopping.reason:
                self._notes.note(f"ends after round {self.state.round}: {self._stopping.reason}")
        except DiskFullError:
            raise  # it would be full a second time
        except BaseException:
            self._save_on_the_way_out()
            raise

    def begin_again(self) -> None:
        """After a return to a checkpoint: the client tasks that were under way, from the server's earlier states."""
        if self._stopping.reason:
            return
        self.collector.clear()
        for version, server in sorted(self.state.earlier.items()):
            plan = self.planner.plan(version + 1, after=self.state.round)
            messages = {client: self.method.message(server, client) for client in plan.clients}
            self.collector.begin(plan, messages, self.state.clients)

    def next_plan(self) -> RoundPlan:
        """The plan of the round behind the state; a sampler that looks at losses has them measured."""
        return self.planner.plan(self.state.round + 1, selection=self.state.selection, measure=self._losses)

    def _losses(self, number: int, clients: Sequence[int], seconds: float = 0.0) -> Losses:
        """Losses of these clients with the models of the state, on the data that they have in a round."""
        moment = Moment(number, seconds)
        with self.recorder.phase("losses"):
            return training_losses(self.config, self.pool, self.state, clients, moment, self._notes.fault)

    def _learned(self, plan: RoundPlan, clients: Sequence[int]) -> Selection | None:
        """The selection after a round whose step takes the updates of these clients."""
        sampler: Sampler = self.config.schedule.sampler
        if plan.selection is None or plan.known is None or not sampler.reports:
            return plan.selection
        losses = self._losses(plan.number, clients, min(plan.begins.values(), default=0.0))
        return replace(plan.selection, memory=sampler.learn(plan.known, clients, losses))

    def _earlier(self, number: int) -> dict[int, Any]:
        """The server's states that tasks under way after this round started from, by round."""
        if self.clock is None:
            return {}
        known = {**self.state.earlier, number - 1: self.state.server}
        return {version: server for version, server in known.items() if self.clock.needed(version, number)}

    def _round(self, number: int) -> None:
        started = time.perf_counter()
        plan = self.next_plan()
        stale, server = self.config.timing.stale, self.state.server
        pytree.make_read_only(server)  # tasks under way, and the states that a run may go back to, have the same arrays
        awaited = plan.cohort.size if stale else len(plan.clients)
        self.observer.round_started(number, plan.local_epochs, awaited)
        with self.recorder.phase("train"):
            with self.recorder.phase("message"), stage(number, "message"):
                messages = {client: self.method.message(server, client) for client in plan.clients}
            check_messages(messages, number)
            bytes_asked = sum(self.method.message(server, client).nbytes for client in plan.asked)
            self.collector.begin(plan, messages, self.state.clients)
            message = partial(self.method.message, server)
            collected = self.collector.take(number, message, self.shared_parameter_count)
            selection = self._learned(plan, collected.updates.clients)
        trained = time.perf_counter()
        # Tasks under way run on between two rounds' training.
        working, self._trained = (self._trained or started) if stale else started, trained
        context = Context(
            self.config.seed,
            number,
            len(self.intervals),
            plan.learning_rate,
            self.shared_parameter_count,
            self.config.training,
            plan.cohort,
            self._tensors,
        )
        streams = self.worker.streams("aggregate", number)
        with self.recorder.phase("aggregate"), stage(number, "aggregate"), streams:
            if collected.updates.clients or self.method.traits.empty_rounds:
                server = self.method.aggregate(server, collected.updates, context)
        check_report(context.report, len(collected.updates.clients), number, self.worker.objective.columns)
        check_server(server, self._first_server, number, type(self.config.method).__name__, self.config)
        aggregated = time.perf_counter()
        before = self.state
        try:
            # Not a copy: that would cost all clients that were ever sampled.
            states = ChainMap(collected.states, before.clients)
            self.state = State(server, number, states, self._earlier(number), selection)
            row = self._row(plan, messages, collected, context, bytes_asked, (started, working, trained, aggregated))
            self._torn = True
        except BaseException:
            # A round without its rows never happened: a checkpoint of it would leave a hole in the tables.
            self.state = before
            raise
        self._write(row, collected, before)
        # The round has happened: an error of an observer's takes nothing of it back.
        self._stopping.see(row)
        self.observer.clients_finished(collected.rows)
        self.observer.round_finished(row)

    def _row(
        self,
        plan: RoundPlan,
        messages: Mapping[int, Message],
        collected: Collected,
        context: Context,
        bytes_asked: int,
        times: tuple[float, float, float, float],
    ) -> dict[str, Any]:
        """Evaluate; the round's row, with the clients' rows filled. Not stoppable: only numbers of it are missing.

        Args:
            bytes_asked: of messages that asked clients for their losses alone.
        """
        started, working, trained, aggregated = times
        config, pool, rows = self.config, self.pool, collected.rows
        down = {client: message.nbytes for client, message in messages.items()}
        up = [self._bytes_up + pytree.nbytes(update.extra) for update in collected.updates.each]
        row = self._first_columns(plan, rows) | {"bytes_down": sum(down.values()), "bytes_up": sum(up)}
        sent, received = exchanged_before_training(pool.federation) if plan.number == 1 else (0, 0)
        # Losses that clients were asked for, and those that they report with their updates.
        answers = len(plan.asked) + len(rows) * config.schedule.sampler.reports
        row["bytes_down"] += received + bytes_asked
        row["bytes_up"] += sent + ANSWER_BYTES * answers
        if self.method.traits.weighted_mean and rows:
            context.report.clients("weight", sample_weights(collected.updates.samples))
        collected.put(context.report.client_columns)
        if plan.evaluates:
            with self.recorder.phase("evaluate"):
                row |= evaluate_round(config, pool, self.state, rows, self._notes.fault, plan.ends)
        if plan.decomposes and rows:
            began = min(plan.begins.values(), default=0.0)  # all at once: no step takes updates of several
            with self.recorder.phase("decompose"):
                row |= decompose_round(config, pool, collected, self.state, self._notes.fault, began)
        finished = time.perf_counter()
        row |= context.report.round_columns
        if self.clock is not None:
            row["bytes_down"] += self.clock.unused_bytes(plan.number)
            wrong = self.clock.wrong_bytes(plan.number, down, up)
            if wrong:
                self._notes.note(wrong)
            row |= self.clock.columns(plan.number)
            self.clock.mark(plan.number, rows)
        row |= columns.made(row, rows)
        row |= {
            "seconds_train": trained - started,
            "seconds_aggregate": aggregated - trained,
            "seconds_evaluate": finished - aggregated,
            "seconds_round": finished - started,
            "clients_per_second": len(rows) / max(trained - started, 1e-9),
            "slot_utilization": collected.busy / max((trained - working) * collected.slots, 1e-9),
        }
        return row

    def _write(self, row: Mapping[str, Any], collected: Collected, before: State) -> None:
        """Write the round's rows and adopt the clients' new states, which together make it a round that happened."""
        with self.recorder.phase("write"):
            self.folder.append_round(row)
            self.folder.append_clients(collected.rows)
            self.proof.round(row, collected.rows, self.state)
        before.clients.update(collected.states)
        self.state.clients = before.clients
        self._saves.changed(collected.states)
        self._torn = False

    def _first_columns(self, plan: RoundPlan, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The columns of a round that follow from its plan, and places for those that are filled later."""
        return {
            "round": plan.number,
            "local_epochs": plan.local_epochs,
            "epochs_total": sum(self.intervals[: plan.number]),
            "participants": len(rows),
            **({"accuracy": math.nan} if self.worker.objective.accurate else {}),
            "loss": math.nan,
            "train_loss": math.nan,
        }

    # -- checkpoints ------------------------------------------------------------------------------------------------

    def _save_on_the_way_out(self) -> None:
        """On the way out of a failure: keep the last whole round, and never hide the first error behind a second."""
        if self._torn:
            return  # the tables hold a part of a round: a resumed run cuts them to the checkpoint on the disk
        try:
            self._saves.save(self.state)
        except Exception as error:
            self.observer.note(f"the last whole round could not be saved: {error}")

    def go_back(self) -> None:
        """To the last checkpoint, or to the start if there is none; the tables lose what came after it."""
        self.state = self._saves.latest(self.worker) or self._saves.none()
        self._torn = False
        if self.config.evaluation.ends_early:
            self._stopping.restart(self.folder.rounds().to_dict("records") if self.state.round else ())
