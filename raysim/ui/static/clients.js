// The clients: sorted accuracies, and a table of who is late, lost, or served worse than the others.

import { Chart } from "./charts.js";
import { byId, element, known, number, percent, seconds, setText } from "./format.js";

const FILTERS = {
  all: ["all", "worst accuracy first"],
  late: ["late", "the last client task took more than twice the median of its round"],
  lost: ["lost", "client tasks that failed, or were sent again because their actor died"],
  unfair: ["unfair", "in the worst tenth, and more than 5 points below the median"],
};

export class Clients {
  constructor() {
    this.chosen = "all";
    this.part = null;
    const [places, title] = ["clients, from the worst to the best", "client %{x} from the worst"];
    const options = { bars: true, range: [0, 1.05], format: ".2%", places, title };
    this.spread = new Chart(byId("spread"), [{ name: "spread", label: "accuracy", color: "one" }], options);
    this.buttons = Object.entries(FILTERS).map(([name, [label, meaning]]) => {
      const button = element("button", "", label);
      button.type = "button";
      button.title = meaning;
      button.addEventListener("click", () => {
        this.chosen = name;
        this.draw();
      });
      return [name, label, button];
    });
    byId("filters").replaceChildren(...this.buttons.map(([, , button]) => button));
  }

  show(part) {
    this.part = part;
    this.draw();
  }

  draw() {
    if (!this.part) return;
    const { rows, counts, spread, lowest, median, highest } = this.part;
    const judged = known(median) ? `${percent(lowest)} to ${percent(highest)}, median ${percent(median)}` : "not judged yet";
    setText(byId("spread-text"), `${number(counts.all)} clients took part; accuracy on their own test sets: ${judged}`);
    byId("spread").hidden = spread.length < 2;
    this.spread.show({ spread: spread.map((value, at) => [at + 1, value]) });
    for (const [name, label, button] of this.buttons) {
      setText(button, `${label} ${number(counts[name])}`);
      button.setAttribute("aria-pressed", String(name === this.chosen));
    }
    const shown = rows.filter((row) => this.chosen === "all" || row[this.chosen]);
    const named = shown.some((row) => row.name && row.name !== `client ${row.client}`);
    const columns = ["client", ...(named ? ["name"] : []), "accuracy", "marks", "loss", "samples", "rounds", "last round", "task"];
    const left = ["name", "marks"];
    const head = element("tr", "", ...columns.map((name) => element("th", left.includes(name) ? "text" : "", name)));
    const body = shown.map((row) => this.row(row, named));
    if (!body.length) {
      const cell = element("td", "text note", this.chosen === "all" ? "no client yet" : `no client is ${this.chosen}`);
      cell.colSpan = columns.length;
      body.push(element("tr", "", cell));
    } else if (this.chosen === "all" && counts.all > rows.length) {
      const cell = element("td", "text note", `${number(counts.all - rows.length)} in the middle are not shown`);
      cell.colSpan = columns.length;
      body.push(element("tr", "", cell));
    }
    byId("clients").replaceChildren(element("thead", "", head), element("tbody", "", ...body));
  }

  row(row, named) {
    const fill = element("i");
    fill.style.width = `${100 * Math.min(1, Math.max(0, row.accuracy ?? 0))}%`;
    const marks = element("td", "text");
    if (row.late) marks.append(element("span", "tag late", `late ${row.ratio.toFixed(1)}×`));
    if (row.lost) marks.append(element("span", "tag lost", `lost ${number(row.lost)}×`));
    if (row.unfair) marks.append(element("span", "tag unfair", "unfair"));
    return element(
      "tr",
      "",
      element("td", "", number(row.client)),
      named ? element("td", "text", row.name) : null,
      element("td", "", percent(row.accuracy), element("span", "meter", fill)),
      marks,
      element("td", "", number(row.loss)),
      element("td", "", number(row.samples)),
      element("td", "", number(row.rounds)),
      element("td", "", number(row.round)),
      element("td", "", seconds(row.seconds)),
    );
  }
}
