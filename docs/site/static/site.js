// What the theme leaves out for keyboards and screen readers: names of its toggles, and tables that scroll by arrow keys.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("summary:has(.toctree-toggle)")) {
    toggle.setAttribute("aria-label", "Show or hide the pages below");
  }
  for (const table of document.querySelectorAll(".bd-article table.table")) {
    table.setAttribute("tabindex", "0");
  }
  for (const head of document.querySelectorAll("th")) {
    if (!head.textContent.trim()) head.replaceWith(document.createElement("td"));  // a corner is no header
  }
});
