// Charts of a run: what they show and how they look. Drawing, hover, zoom and logarithmic axes are plotly's.

import { element } from "./format.js";

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
   * @param series [{name, label, color}] with color "one" to "three" of page.css
   * @param options bars: stacked bars in the place of lines; range: fixed bounds of the values; format: of a value, as
   *   d3-format has it; places: what the positions are, said below the axis; title: of a position, as plotly's hover
   *   templates have it; log: a button that offers a logarithmic axis, and its section; axis: see costs.js
   */
  constructor(box, series, options) {
    Object.assign(this, { box, series, options, points: {}, logarithmic: false });
    this.empty = element("div", "empty", "no values yet");
    box.replaceChildren(this.empty);
    dark.addEventListener("change", () => this.draw());
    if (options.log) this.offerLogarithm();
  }

  /** @param points series' name → [[position, value], …], positions ascending */
  show(points) {
    this.points = points;
    return this.draw();
  }

  async draw() {
    const plotly = await library;
    const filled = this.series.filter(({ name }) => this.points[name]?.length);
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
    const x = this.options.axis?.places(rounds) ?? rounds;
    const shared = { name: label, x, y, hovertemplate: `%{y:${this.options.format}}` };
    if (!this.options.bars) {
      const mode = x.length <= MARKED ? "lines+markers" : "lines";
      return { ...shared, type: "scatter", mode, line: { color: this.color(color), width: 2 } };
    }
    // Values may be thinned: each bar reaches to the next, so that there is no gap.
    const width = x.map((place, at) => 0.9 * ((x[at + 1] ?? place + 1) - place));
    return { ...shared, type: "bar", width, offset: -0.5, marker: { color: this.color(color), line: { width: 0 } } };
  }

  layout(legend) {
    const { bars, format, range, places } = this.options;
    const against = this.options.axis?.looks() ?? { title: this.options.title };
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
      modebar: { bgcolor: "transparent", color: this.color("muted"), activecolor: this.color("one") },
      margin: { l: 46, r: 10, t: 10, b: 28 },
      paper_bgcolor: "transparent",
      plot_bgcolor: "transparent",
      font: { family: "system-ui, sans-serif", size: 12, color: this.color("muted") },
      xaxis: {
        ...axis,
        showgrid: false,
        showticklabels: !places,
        tickformat: against.format,
        ticksuffix: against.unit,
        title: { text: places ?? "" },
        unifiedhovertitle: { text: against.title ?? "round %{x}" },
      },
      yaxis: { ...axis, type, range, tickformat: format.endsWith("%") ? ".1~%" : undefined, nticks: 6, dtick: this.logarithmic ? "D2" : undefined },
    };
  }

  offerLogarithm() {
    const button = element("button", "", "log scale");
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
