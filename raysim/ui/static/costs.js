// What accuracy and loss are drawn against: rounds, or what these have cost so far.

import { byId, element } from "./format.js";

// format and title as d3-format and plotly's hover templates have them; unit: after each number of the axis
const AXES = {
  rounds: { label: "rounds" },
  bytes: { label: "bytes", unit: "B", format: "~s", title: "%{x:.3~s}B" },
  hours: { label: "virtual hours", unit: "\u202fh", title: "%{x:.4~g} virtual hours" },
};

export class CostAxis {
  /** @param changed called when another axis is chosen */
  constructor(changed) {
    this.chosen = "rounds";
    this.costs = {};
    this.buttons = Object.entries(AXES).map(([name, { label }]) => {
      const button = element("button", "", label);
      button.type = "button";
      button.addEventListener("click", () => {
        this.chosen = name;
        this.mark();
        changed();
      });
      return [name, button];
    });
    byId("against").append(...this.buttons.map(([, button]) => button));
    this.mark();
  }

  /** @param costs axis → [[round, cost of all rounds up to it], …]; empty where a run has none */
  show(costs) {
    this.costs = Object.fromEntries(Object.entries(costs).map(([name, pairs]) => [name, new Map(pairs)]));
    this.mark();
  }

  mark() {
    for (const [name, button] of this.buttons) {
      button.setAttribute("aria-pressed", String(name === this.chosen));
      button.hidden = name !== "rounds" && !this.costs[name]?.size;
    }
  }

  places(rounds) {
    return this.chosen === "rounds" ? rounds : rounds.map((round) => this.costs[this.chosen].get(round));
  }

  looks() {
    return AXES[this.chosen];
  }
}
