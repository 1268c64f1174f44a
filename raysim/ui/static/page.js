// The live page of a run: asks the server for the parts that have changed, and shows them.
// The parts are those of raysim/report/templates/run.html; the server has escaped whatever comes from a run.

import { Chart } from "./charts.js";
import { CostAxis } from "./costs.js";

const byId = (id) => document.getElementById(id);
const place = (name) => document.querySelector(`[data-part="${name}"]`);
const parser = new DOMParser(); // it runs no script
const boxes = (root) => [...root.querySelectorAll(".scroll, pre, ol")];

function show(name, { html }) {
  const part = place(name);
  const scrolled = boxes(part).map((box) => [box.scrollLeft, box.scrollTop, box.scrollHeight - box.scrollTop - box.clientHeight]);
  part.replaceChildren(...parser.parseFromString(html, "text/html").body.childNodes);
  boxes(part).forEach((box, at) => {
    const [left, top, below] = scrolled[at] ?? [0, 0, 0];
    box.scrollLeft = left;
    box.scrollTop = box.id === "log" && below < 40 ? box.scrollHeight : top; // a reader of the end stays there
  });
  if (name === "clients") markFilter();
  if (name === "head") document.title = `${place("head").querySelector(".running, .preparing") ? "● " : ""}${part.querySelector("h1").textContent}`;
}

// Which clients are shown: a part of them, by a rule of style.css.
function markFilter() {
  const part = place("clients");
  for (const button of part.querySelectorAll("[data-only]")) button.setAttribute("aria-pressed", String(button.dataset.only === part.dataset.only));
}
place("clients").addEventListener("click", ({ target }) => {
  if (!target.dataset.only) return;
  place("clients").dataset.only = target.dataset.only;
  markFilter();
});

const axis = new CostAxis(byId("against"), () => charts.forEach((chart) => chart.draw()));
let charts = [];

/** The charts and their curves are those of raysim/columns/. */
function showCharts({ list, series, costs }) {
  charts = charts.length ? charts : list.map((one) => new Chart(byId(one.name), one, one.costs ? axis : null));
  axis.show(costs);
  const points = { ...series };
  // A personal method has no other accuracy than its clients'.
  if (JSON.stringify(points.accuracy) === JSON.stringify(points.client_accuracy_mean)) points.accuracy = [];
  for (const chart of charts) chart.show(points);
  byId("spread").parentElement.hidden = !points.spread.length;
}

/** What cannot be drawn stops neither the other parts nor the next answer. */
function draw(name, part) {
  try {
    name === "charts" ? showCharts(part) : show(name, part);
  } catch (error) {
    console.error(`${name} could not be drawn:`, error);
  }
}

async function ask(after) {
  try {
    const answer = await fetch(`/parts?after=${after}`);
    return answer.ok ? await answer.json() : null;
  } catch {
    return null; // the server has ended, or the way to it
  }
}

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** The next answer is asked for when the last one is drawn, so that a slow browser is never behind by more than one. */
async function follow() {
  for (let drawn = 0; ; ) {
    const answer = await ask(drawn);
    document.body.classList.toggle("offline", !answer);
    if (answer) {
      for (const [name, part] of Object.entries(answer.parts)) draw(name, part);
      drawn = answer.look;
    } else await pause(3);
  }
}

follow();
