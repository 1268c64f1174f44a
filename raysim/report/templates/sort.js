"use strict";
// Sorts a table by the column whose heading is clicked: numbers downward at first, words upward; again: the other way.
// What a cell shows is sorted by its data-value, where it has one, else by the number that it begins with, else as text.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const key = (row, column) => {
    const { textContent, dataset } = row.cells[column];
    return dataset.value ?? textContent.trim();
  };
  const number = (shown) => {
    const text = shown.replace(/^[<>\u2248] ?/, "").replace("\u2212", "-").replaceAll("\u202f", "");
    return /^[+-]?[\d.]/.test(text) ? parseFloat(text) : NaN;
  };
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const rows = [...body.rows];
      const words = !rows.some((row) => !Number.isNaN(number(key(row, column))));
      const before = heading.getAttribute("aria-sort");
      const up = before ? before === "descending" : words;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = (a, b) => {
        const [one, two] = [key(a, column), key(b, column)];
        if (words) return (up ? 1 : -1) * one.localeCompare(two, "en", { numeric: true });
        const [x, y] = [number(one), number(two)];
        // What has no value stands last, whichever way.
        return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : (up ? 1 : -1) * (x - y);
      };
      body.append(...rows.sort(compare));
    });
  });
}
