// What goes on now: state, progress, this round, placement, faults.

import { byId, clock, element, known, number, plural, seconds, setText, share } from "./format.js";

const STATES = {
  preparing: "preparing",
  running: "running",
  finished: "finished",
  stopped: "stopped",
  failed: "failed",
  died: "its process died",
  gone: "failed before its first round",
  unknown: "not finished",
};
const LIVE = ["preparing", "running"];
const SLOTS = 96;

function bar(id, done, total) {
  const box = byId(id);
  box.setAttribute("aria-valuemax", total);
  box.setAttribute("aria-valuenow", done);
  box.firstElementChild.style.width = total > 0 ? `${(100 * Math.min(done, total)) / total}%` : "0";
}

/** @param now seconds since 1970 by the server's clock */
export function showRun(run, rounds, now) {
  const live = LIVE.includes(run.state);
  const state = byId("state");
  state.className = `chip ${run.state in STATES ? run.state : "unknown"}`;
  setText(state, STATES[run.state] ?? run.state);
  setText(byId("title"), run.title);
  document.title = `${live ? "● " : ""}${run.title}`;
  setText(byId("line"), run.line);
  setText(byId("about"), run.folder);
  const [done, total] = [rounds?.count ?? 0, run.rounds ?? 0];
  bar("progress", done, total || done);
  const spent = rounds?.totals.seconds_round;
  const pace = [`${number(done)}${total ? ` of ${number(total)}` : ""} rounds`];
  if (live && run.started) pace.push(`${seconds(Math.max(0, now - run.started))} since the start`);
  else if (spent) pace.push(`${seconds(spent)} in rounds`);
  if (live && done && total > done) pace.push(`about ${seconds(((total - done) * spent) / done)} left`);
  setText(byId("pace"), pace.join(" · "));
  const banner = byId("banner");
  banner.hidden = !(run.message || run.state === "died");
  const again = `python -m raysim.launch --resume ${run.folder}`;
  setText(banner, run.message || `The process of this run is gone; go on with: ${again}`);
  showCurrent(run, rounds, now);
  setText(byId("plan"), run.plan || "");
  showSlots(run);
  showFaults(run);
}

function showCurrent(run, rounds, now) {
  const { current, preparing } = run;
  byId("current").hidden = !(LIVE.includes(run.state) && (current || preparing));
  if (byId("current").hidden) return;
  if (!current) {
    const count = preparing.total > 1 ? `: ${number(preparing.done)} of ${number(preparing.total)}` : " …";
    setText(byId("current-text"), `${preparing.label}${count}`);
    bar("current-bar", preparing.done, preparing.total);
    return byId("out").replaceChildren();
  }
  const usual = rounds?.count ? rounds.totals.seconds_round / rounds.count : NaN;
  const elapsed = Math.max(0, now - current.started);
  const words = [
    `round ${number(run.round)}`,
    plural(current.local_epochs, "local epoch"),
    `${number(current.done)} of ${plural(current.participants, "client")} back`,
    `for ${seconds(elapsed)}${known(usual) ? `, usually ${seconds(usual)}` : ""}`,
  ];
  setText(byId("current-text"), words.join(" · "));
  bar("current-bar", current.done, current.participants);
  const late = known(usual) && elapsed > 2 * usual;
  const tags = run.out.map((client) => element("span", `tag${late ? " late" : ""}`, `client ${client}`));
  if (tags.length) tags.unshift(element("span", "note", late ? "late:" : "still out:"));
  if (run.out_count > run.out.length) tags.push(element("span", "note", `and ${number(run.out_count - run.out.length)} more`));
  byId("out").replaceChildren(...tags);
}

function showSlots(run) {
  const slots = run.slots ?? [];
  const nodes = new Map();
  for (const slot of slots.slice(0, SLOTS)) nodes.set(slot.node, [...(nodes.get(slot.node) ?? []), slot]);
  const parts = [];
  for (const [node, members] of nodes) {
    parts.push(element("h3", "", `node ${node} · ${plural(members.length, run.backend === "inline" ? "worker" : "client actor")}`));
    parts.push(element("div", "slots", ...members.map((slot) => slotBox(slot, run))));
  }
  if (slots.length > SLOTS) parts.push(element("p", "note", `and ${number(slots.length - SLOTS)} more`));
  if (!parts.length) parts.push(element("p", "note", "No client task has come back yet."));
  byId("placement").replaceChildren(...parts);
}

function slotBox(slot, run) {
  const busy = slot.busy / Math.max(1e-9, run.updated - run.started);
  const fill = element("i");
  fill.style.width = `${100 * Math.min(1, busy)}%`;
  const name = run.backend === "inline" ? "this process" : `client-actor-${String(slot.slot).padStart(2, "0")}`;
  const device = slot.gpu_bytes ? `${slot.device}, ${slot.memory}` : slot.device;
  const times = slot.lives - 1;
  const last = slot.last.length > 1 ? `clients ${slot.last.join(", ")}` : `client ${slot.last[0]}`;
  return element(
    "div",
    `slot${times ? " replaced" : ""}`,
    element("b", "", name, times ? element("span", "tag late", `replaced ${times}×`) : null),
    element("p", "", `${device} · process ${slot.process}`),
    element("p", "", `${plural(slot.tasks, "task")}, last ${last}`),
    element("p", "", `busy ${share(Math.min(1, busy))} of the time`),
    element("span", "meter", fill),
  );
}

function showFaults(run) {
  const faults = run.faults ?? [];
  const counts = run.counts ?? { done: 0, failed: 0, requeued: 0, faults: 0 };
  const sums = `${plural(counts.done, "client task")} done, ${number(counts.failed)} failed, ${number(counts.requeued)} sent again`;
  setText(byId("faults-text"), faults.length ? sums : `Nothing was lost: ${sums}.`);
  const rows = [...faults].reverse().map(({ time, round, text }) =>
    element("li", "", element("time", "", `${clock(time)} · round ${number(round)}`), element("span", "", text)),
  );
  byId("faults").replaceChildren(...rows);
}
