// Line and bar charts as SVG, drawn anew at the size they have on the screen.

import { element, known, number } from "./format.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const EDGE = { left: 46, right: 10, top: 8, bottom: 24 };

function shape(tag, attributes, text = "") {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text) made.textContent = text;
  return made;
}

/** Round values between two bounds, about so many. */
function ticks(low, high, wanted, whole = false) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  let step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => span / size <= wanted);
  if (whole) step = Math.max(1, Math.ceil(step));
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Math.abs(at) < step / 2 ? 0 : at);
  return found;
}

export class Chart {
  /**
   * @param box the element to draw into
   * @param series [{name, label, colour}] with colour 1 to 3
   * @param options kind: "lines" or "bars" (stacked); low and high: fixed bounds; format: of a value; tick: of a value
   *   on the scale, if another; ends: labels of the left and right end in the place of round numbers; title: says what a
   *   position is
   */
  constructor(box, series, options) {
    Object.assign(this, { box, series, options, points: {}, places: [], width: 0 });
    this.svg = shape("svg", { role: "img" });
    this.legend = element("div", "legend");
    for (const { label, colour } of options.ends ? [] : series) {
      this.legend.append(element("span", `c${colour}`, element("i"), label));
    }
    this.tip = element("div", "tip");
    this.tip.hidden = true;
    this.empty = element("div", "empty", "no values yet");
    box.replaceChildren(this.empty);
    box.addEventListener("pointermove", (event) => this.point(event));
    box.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(box);
  }

  /** @param points series' name → [[position, value], …], positions ascending */
  show(points) {
    this.points = points;
    this.draw();
  }

  draw() {
    const { kind, low, high, format, ends } = this.options;
    const label = this.options.tick ?? format;
    const filled = this.series.filter(({ name }) => this.points[name]?.length);
    if (!filled.length) return this.box.replaceChildren(this.empty);
    if (!this.svg.isConnected) this.box.replaceChildren(this.svg, this.legend, this.tip);
    [...this.legend.children].forEach((entry, at) => {
      entry.hidden = !filled.includes(this.series[at]);
    });
    const width = (this.width = this.svg.clientWidth || this.box.clientWidth);
    const height = this.svg.clientHeight;
    if (width < 2 * EDGE.left) return; // not yet laid out
    const all = filled.flatMap(({ name }) => this.points[name]);
    this.places = [...new Set(all.map(([place]) => place))].sort((a, b) => a - b);
    const [first, last] = [this.places[0], this.places.at(-1)];
    const sums = kind === "bars" ? this.places.map((place) => this.sum(filled, place)) : all.map(([, value]) => value);
    let bottom = low ?? (kind === "bars" ? 0 : Math.min(...sums));
    let top = high ?? Math.max(...sums);
    if (top - bottom < 1e-12) [bottom, top] = [low ?? bottom - (Math.abs(bottom) || 1) / 10, top + (Math.abs(top) || 1) / 10];
    if (high === undefined) top += (top - bottom) * 0.05;
    if (low === undefined && kind !== "bars") bottom -= (top - bottom) * 0.05;
    const span = last - first || 1;
    const slot = (width - EDGE.left - EDGE.right) / (kind === "bars" ? span + 1 : span);
    this.x = (place) => EDGE.left + (place - first + (kind === "bars" ? 0.5 : 0)) * slot;
    const y = (value) => height - EDGE.bottom - ((value - bottom) / (top - bottom)) * (height - EDGE.top - EDGE.bottom);
    this.svg.replaceChildren();
    for (const tick of ticks(bottom, top, height < 140 ? 2 : 5)) {
      const at = y(tick).toFixed(1);
      this.svg.append(shape("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }));
      this.svg.append(shape("text", { x: EDGE.left - 6, y: +at + 4, "text-anchor": "end" }, label(tick)));
    }
    if (ends) {
      this.svg.append(shape("text", { x: EDGE.left, y: height - 6 }, ends[0]));
      this.svg.append(shape("text", { x: width - EDGE.right, y: height - 6, "text-anchor": "end" }, ends[1]));
    } else {
      for (const tick of ticks(first, last, Math.max(2, width / 90), true)) {
        this.svg.append(shape("text", { x: this.x(tick).toFixed(1), y: height - 6, "text-anchor": "middle" }, number(tick)));
      }
    }
    if (kind === "bars") this.bars(filled, y, slot);
    else for (const line of filled) this.line(line, y);
    this.cursor = shape("line", { class: "cursor", y1: EDGE.top, y2: height - EDGE.bottom, visibility: "hidden" });
    this.svg.append(this.cursor);
    const words = filled.map(({ name, label }) => `${label} ${format(this.points[name].at(-1)[1])}`);
    this.svg.setAttribute("aria-label", `last: ${words.join(", ")}`);
  }

  line({ name, colour }, y) {
    const points = this.points[name];
    const path = points.map(([place, value], at) => `${at ? "L" : "M"}${this.x(place).toFixed(1)} ${y(value).toFixed(1)}`);
    this.svg.append(shape("path", { class: `curve c${colour}`, d: path.join("") }));
    for (const [place, value] of points.length <= 30 ? points : points.slice(-1)) {
      this.svg.append(shape("circle", { class: `dot c${colour}`, cx: this.x(place).toFixed(1), cy: y(value).toFixed(1), r: 2.8 }));
    }
  }

  /** Of thinned values each bar reaches to the next, so that there is no gap. */
  bars(filled, y, slot) {
    const lookups = filled.map(({ name, colour }) => [new Map(this.points[name]), colour]);
    this.places.forEach((place, at) => {
      const reach = ((this.places[at + 1] ?? place + 1) - place) * slot;
      const wide = reach > 6 ? reach - Math.min(3, reach / 5) : reach + 0.3;
      let base = 0;
      for (const [values, colour] of lookups) {
        const value = values.get(place);
        if (!known(value) || value <= 0) continue;
        const [up, down] = [y(base + value), y(base)];
        base += value;
        const left = (this.x(place) - slot / 2).toFixed(2);
        const box = { x: left, y: up.toFixed(2), width: wide.toFixed(2), height: Math.max(0, down - up).toFixed(2) };
        this.svg.append(shape("rect", { class: `bar c${colour}`, ...box }));
      }
    });
  }

  sum(filled, place) {
    return filled.reduce((total, { name }) => total + (this.points[name].find(([at]) => at === place)?.[1] ?? 0), 0);
  }

  /** The values at the pointer. */
  point(event) {
    if (!this.svg.isConnected || !this.cursor) return;
    this.tip.hidden = !event;
    this.cursor.setAttribute("visibility", event ? "visible" : "hidden");
    if (!event) return;
    const at = event.clientX - this.svg.getBoundingClientRect().left;
    const place = this.places.reduce((best, next) => (Math.abs(this.x(next) - at) < Math.abs(this.x(best) - at) ? next : best));
    const x = this.x(place);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const rows = [element("div", "", this.options.title ? this.options.title(place) : `round ${number(place)}`)];
    for (const { name, label } of this.series) {
      const found = this.points[name]?.find(([position]) => position === place);
      if (found) rows.push(element("div", "", element("span", "", label), element("b", "", this.options.format(found[1]))));
    }
    this.tip.replaceChildren(...rows);
    this.tip.style.left = x > this.width / 2 ? "auto" : `${x + 10}px`;
    this.tip.style.right = x > this.width / 2 ? `${this.width - x + 10}px` : "auto";
  }
}
