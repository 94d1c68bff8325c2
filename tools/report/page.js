"use strict";
// Buttons in the headings of tables sort their rows: numbers as numbers, and cells without a value at the end.
(() => {
  const value = (cell) => {
    const text = cell.textContent.trim();
    const number = /^2\^\d+$/.test(text) ? 2 ** text.slice(2) : Number.parseFloat(cell.dataset.v ?? text);
    return text === "-" ? null : Number.isNaN(number) || cell.classList.contains("t") ? text : number;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const sort = (heading) => {
    const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    const rows = Array.from(body.rows, (row) => ({ row, key: value(row.cells[column]) }));
    rows.sort((a, b) =>
      a.key === null || b.key === null ? (a.key === null) - (b.key === null)
        : down ? compare(b.key, a.key) : compare(a.key, b.key));
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map((each) => each.row));
  };
  for (const heading of document.querySelectorAll("thead th")) {
    const below = heading.closest("table").tBodies[0].rows[0]?.cells[heading.cellIndex];
    if (below?.classList.contains("t")) heading.classList.add("t");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading));
    heading.append(button);
  }

  // One button opens and closes all cases of a section. Links into closed cases open them.
  for (const button of document.querySelectorAll("button.open")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const cases = button.closest("section").querySelectorAll("details.case");
      const open = Array.from(cases).some((one) => !one.open);
      for (const one of cases) one.open = open;
    });
  }

  // Paper has all parts. Those that were closed are closed again afterwards.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });

  // The keyboard stops at tables that scroll, and at no others.
  const watcher = new ResizeObserver((entries) => {
    for (const { target: box } of entries) {
      const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      const marks = { tabindex: "0", role: "group", "aria-label": `Table: ${box.querySelector("caption").textContent}` };
      for (const [name, value] of Object.entries(marks))
        if (scrolls) box.setAttribute(name, value);
        else box.removeAttribute(name);
    }
  });
  for (const box of document.querySelectorAll(".wide")) watcher.observe(box);

  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let at = target || null; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
})();
