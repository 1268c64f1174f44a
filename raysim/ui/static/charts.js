// Charts of a run: what they show and how they look. Drawing, hover, zoom and logarithmic axes are plotly's.

// Loaded beside the page, which shows everything else meanwhile.
const library = import("/static/plotly.min.js").then(() => window.Plotly);
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches;
const CONFIG = {
  responsive: true,
  displaylogo: false,
  displayModeBar: touch ? false : "hover",
  modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d"],
};
const MARKED = 30; // points of a curve that are marked one by one

export class Chart {
  /**
   * @param box the element to draw into
   * @param chart {series: [{name, label}], bars: stacked, in the place of lines, range: fixed bounds of the values,
   *   percent: whether values are shares, log: whether a button offers a logarithmic axis, title: of a position, as
   *   plotly's hover templates have it}
   * @param axis see costs.js; null: rounds
   */
  constructor(box, chart, axis) {
    Object.assign(this, chart, { box, axis, points: {}, logarithmic: false });
    this.format = this.percent ? ".2%" : ".4~g";
    this.empty = document.createElement("div");
    this.empty.className = "empty";
    this.empty.textContent = "no values yet";
    box.replaceChildren(this.empty);
    dark.addEventListener("change", () => this.draw());
    if (this.log) this.offerLogarithm();
  }

  /** @param points series' name → [[position, value], …], positions ascending */
  show(points) {
    this.points = points;
    return this.draw();
  }

  async draw() {
    const plotly = await library;
    const ranked = this.series.map((one, rank) => ({ ...one, color: `c${rank}` }));
    const filled = ranked.filter(({ name }) => this.points[name]?.length);
    if (filled.length) {
      this.empty.remove();
      plotly.react(this.box, filled.map((one) => this.trace(one)), this.layout(filled.length > 1), CONFIG);
    } else if (!this.empty.isConnected) {
      plotly.purge(this.box);
      this.box.replaceChildren(this.empty);
    }
  }

  trace({ name, label, color }) {
    const [rounds, y] = [0, 1].map((at) => this.points[name].map((point) => point[at]));
    const x = this.axis?.places(rounds) ?? rounds;
    const shared = { name: label, x, y, hovertemplate: `%{y:${this.format}}` };
    if (!this.bars) {
      const mode = x.length <= MARKED ? "lines+markers" : "lines";
      return { ...shared, type: "scatter", mode, line: { color: this.color(color), width: 2 } };
    }
    // Values may be thinned: each bar reaches to the next, so that there is no gap.
    const width = x.map((place, at) => 0.9 * ((x[at + 1] ?? place + 1) - place));
    return { ...shared, type: "bar", width, offset: -0.5, marker: { color: this.color(color), line: { width: 0 } } };
  }

  layout(legend) {
    const { bars, range } = this;
    const against = this.axis?.looks() ?? { title: this.title };
    const axis = { gridcolor: this.color("line"), zeroline: false, automargin: true, fixedrange: touch };
    const type = this.logarithmic ? "log" : "linear";
    return {
      uirevision: `${type} ${against.label}`, // what the reader has zoomed stays while values come in
      barmode: bars ? "stack" : undefined,
      dragmode: touch ? false : "zoom",
      hovermode: "x unified",
      hoverdistance: -1, // the nearest point, however far
      hoverlabel: { bgcolor: this.color("card"), bordercolor: this.color("line") },
      showlegend: legend,
      legend: { orientation: "h", y: -0.14, yanchor: "top", traceorder: "normal" },
      modebar: { bgcolor: "transparent", color: this.color("muted"), activecolor: this.color("c0") },
      margin: { l: 46, r: 10, t: 10, b: 28 },
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      font: { family: "system-ui, sans-serif", size: 12, color: this.color("muted") },
      xaxis: {
        ...axis,
        showgrid: false,
        unifiedhovertitle: { text: against.title ?? "round %{x}" },
      },
      yaxis: { ...axis, type, range: range ?? undefined, tickformat: this.percent ? ".1~%" : undefined, nticks: 6, dtick: this.logarithmic ? "D2" : undefined },
    };
  }

  offerLogarithm() {
    const button = document.createElement("button");
    button.textContent = "log scale";
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      this.logarithmic = !this.logarithmic;
      button.setAttribute("aria-pressed", String(this.logarithmic));
      this.draw();
    });
    this.box.previousElementSibling.append(button);
  }

  color(name) {
    return getComputedStyle(this.box).getPropertyValue(`--${name}`).trim();
  }
}
