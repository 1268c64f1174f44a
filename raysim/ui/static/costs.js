// What accuracy and loss are drawn against: rounds, or what these have cost so far.

export class CostAxis {
  /**
   * @param box where its buttons go
   * @param changed called when another axis is chosen
   */
  constructor(box, changed) {
    Object.assign(this, { box, changed, chosen: "rounds", costs: {}, buttons: new Map() });
    this.offer("rounds", "rounds");
  }

  offer(name, label) {
    const button = this.buttons.get(name) ?? document.createElement("button");
    button.type = "button";
    button.textContent = label;
    if (this.buttons.has(name)) return;
    this.buttons.set(name, button);
    this.box.append(button);
    button.addEventListener("click", () => {
      this.chosen = name;
      this.mark();
      this.changed();
    });
    this.mark();
  }

  /** @param costs axis → {label, points}, points [[round, cost of all rounds up to it], …]; empty where a run has none */
  show(costs) {
    for (const [name, { label, points }] of Object.entries(costs)) {
      this.costs[name] = { label, at: new Map(points) };
      this.offer(name, label);
    }
  }

  mark() {
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(name === this.chosen));
  }

  places(rounds) {
    return this.chosen === "rounds" ? rounds : rounds.map((round) => this.costs[this.chosen].at.get(round));
  }

  looks() {
    const label = this.costs[this.chosen]?.label;
    return label ? { label, title: `%{x:.4~g} ${label}` } : { label: "rounds" };
  }
}
