// Elements and numbers as text. Whatever comes from a run goes into the page through textContent only.

export const byId = (id) => document.getElementById(id);

/** An element with classes and children; texts become text nodes. */
export function element(tag, classes = "", ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Sets a text only where it differs, so that a selection in it survives. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export const known = (value) => typeof value === "number" && Number.isFinite(value);

export const percent = (value) => (known(value) ? `${(100 * value).toFixed(2)}\u202f%` : "–");

export const share = (value) => (known(value) ? `${Math.round(100 * value)}\u202f%` : "–");

export function number(value) {
  if (!known(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en").replaceAll(",", "\u202f");
  const size = Math.abs(value);
  return size >= 1000 || size < 0.001 ? value.toExponential(2) : value.toPrecision(size >= 1 ? 4 : 3);
}

export function seconds(value) {
  if (!known(value)) return "–";
  if (value < 10) return `${value.toPrecision(2)}\u202fs`;
  if (value < 60) return `${value.toFixed(0)}\u202fs`;
  const whole = Math.round(value);
  const minutes = String(Math.floor(whole / 60) % 60).padStart(whole >= 3600 ? 2 : 1, "0");
  return `${whole >= 3600 ? `${Math.floor(whole / 3600)}:` : ""}${minutes}:${String(whole % 60).padStart(2, "0")}`;
}

export const clock = (value) => new Date(1000 * value).toLocaleTimeString([], { hour12: false });

export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
