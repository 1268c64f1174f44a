// What the theme leaves out for keyboards and screen readers: names of its toggles, and frames that scroll by arrow keys.
// Tables with sentences and wide pictures are marked, so that site.css can show them on a phone; long paths and
// addresses in cells may break, and comments move to their commands where these are wider than the page.
const ROLES = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell" };
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("summary:has(.toctree-toggle)")) {
    toggle.setAttribute("aria-label", "Show or hide the pages below");
  }
  for (const head of document.querySelectorAll("th")) {
    if (!head.textContent.trim()) head.replaceWith(document.createElement("td"));  // a corner is no header
  }
  for (const table of document.querySelectorAll(".bd-article table.table")) {
    table.setAttribute("tabindex", "0");
    const cells = [...table.querySelectorAll("tbody td")];
    for (const cell of cells) {
      if (/±|\[[−+\d]/.test(cell.textContent) && cell.textContent.length <= 40) cell.classList.add("measured");
    }
    const measures = cells.some((cell) => cell.classList.contains("measured"));
    if (measures) table.classList.add("measurements");
    const long = cells.filter((cell) => cell.textContent.length > 80);
    if (!long.length && (measures || !cells.some((cell) => cell.textContent.length > 40))) continue;
    long.forEach((cell) => cell.classList.add("sentence"));
    table.classList.add("sentences");
    table.setAttribute("role", "table");  // the rows of a phone are blocks, which have no roles by themselves
    for (const part of table.querySelectorAll("thead, tbody, tr, th, td")) part.setAttribute("role", ROLES[part.tagName]);
    const headings = [...table.querySelectorAll("thead tr:first-child > *")].map((head) => head.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.children].forEach((cell, place) => {
        if (place && cell.textContent.trim()) cell.dataset.heading = headings[place] ?? "";
      });
    }
  }
  for (const words of document.querySelectorAll(".bd-article td code .pre, .bd-article td a.external:not(:has(*))")) {
    if (!/\S{21}/.test(words.textContent)) continue;
    const parts = words.textContent.split(/(?<=[/_.,(])/);
    words.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }
  for (const block of document.querySelectorAll(".highlight-sh pre")) {
    if (block.scrollWidth <= block.clientWidth) continue;
    for (const comment of block.querySelectorAll(".c1")) {
      const room = comment.previousElementSibling;
      if (room?.matches(".w") && room.textContent.length > 2) room.textContent = "  ";
    }
  }
  for (const picture of document.querySelectorAll(".bd-article p > img")) {
    picture.parentElement.classList.add("wide-picture");
    picture.parentElement.setAttribute("tabindex", "0");
  }
});
