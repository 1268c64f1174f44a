// The live page of a run: follows the server's events and shows each part when it changes.

import { Chart } from "./charts.js";
import { Clients } from "./clients.js";
import { CostAxis } from "./costs.js";
import { byId, element, known, number, percent, share } from "./format.js";
import { showRun } from "./run.js";

const parts = {};
let ahead = 0; // of the server's clock, in seconds

const axis = new CostAxis(() => charts.forEach((chart) => chart.draw()));
const COLORS = ["one", "two", "three"];
let charts = [];
const clients = new Clients();

/** The charts and their curves are those of raysim/columns.py. */
function makeCharts({ list }) {
  charts = list.map(({ name, series, bars, log, percent, range, costs }) => {
    const colored = series.map((one, rank) => ({ ...one, color: COLORS[rank % COLORS.length] }));
    const format = percent ? ".2%" : ".4~g";
    return new Chart(byId(name), colored, { bars, log, format, range: range ?? undefined, axis: costs ? axis : undefined });
  });
  if (parts.rounds) showRounds(parts.rounds);
}

function showRounds(rounds) {
  axis.show(rounds.costs);
  const series = { ...rounds.series };
  // A personal method has no other accuracy than its clients'.
  if (JSON.stringify(series.accuracy) === JSON.stringify(series.client_accuracy_mean)) series.accuracy = [];
  for (const chart of charts) chart.show(series);
}

function showTiles() {
  const rounds = parts.rounds;
  const faults = parts.run?.counts?.faults ?? 0;
  if (!rounds) return;
  const { last } = rounds;
  const figures = [
    ["accuracy", known(last.accuracy), percent(last.accuracy)],
    ["best accuracy", known(rounds.best_accuracy), percent(rounds.best_accuracy)],
    ["worst 10\u202f%", known(last.client_accuracy_worst_decile), percent(last.client_accuracy_worst_decile)],
    ["loss", known(last.loss), number(last.loss)],
    ["clients/s", known(last.clients_per_second), number(last.clients_per_second)],
    ["busy slots", known(last.slot_utilization), share(last.slot_utilization)],
    ["traffic", rounds.count > 0, rounds.traffic],
    ["faults", parts.run?.counts !== undefined, number(faults)],
  ];
  const tiles = figures
    .filter(([, shown]) => shown)
    .map(([name, , text]) => element("div", `tile${name === "faults" && faults ? " bad" : ""}`, element("span", "", name), element("b", "", text)));
  byId("tiles").replaceChildren(...tiles);
}

function showLog(log) {
  const box = byId("log");
  const below = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  box.textContent = log.text || "(empty)";
  if (below) box.scrollTop = box.scrollHeight;
}

function tick() {
  if (parts.run) showRun(parts.run, parts.rounds, Date.now() / 1000 + ahead);
}

const shows = {
  charts: makeCharts,
  run(run) {
    ahead = run.now - Date.now() / 1000;
    tick();
    showTiles();
  },
  rounds(rounds) {
    showRounds(rounds);
    showTiles();
    tick();
  },
  clients: (part) => clients.show(part),
  log: showLog,
};

function follow() {
  const source = new EventSource("/events");
  for (const [name, show] of Object.entries(shows)) {
    source.addEventListener(name, (event) => {
      parts[name] = JSON.parse(event.data);
      show(parts[name]);
    });
  }
  source.addEventListener("open", () => {
    document.body.classList.remove("offline");
    tick();
  });
  source.addEventListener("error", () => {
    const banner = byId("banner");
    banner.hidden = false;
    banner.textContent =
      "The page's server has ended; this is the last it said. Open the run again with: python -m raysim.ui FOLDER";
    document.body.classList.add("offline");
    byId("state").className = "chip unknown";
    byId("state").textContent = "not connected";
    // A server that answers with an error ends the stream for good.
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
}

setInterval(() => {
  if (!document.body.classList.contains("offline") && ["running", "preparing"].includes(parts.run?.state)) tick();
}, 1000);
document.getElementById("log-box").addEventListener("toggle", () => parts.log && showLog(parts.log));
follow();
