// Tables: sorted by a click (or Enter) on a header, filtered by text and by chosen values.

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function compareCells([text, order], [otherText, otherOrder]) {
  if (order !== null && otherOrder !== null) return order - otherOrder;
  return collator.compare(text, otherText);
}

function tableSection(section) {
  const { columns, rows } = section;
  let wanted = "", sortedBy = -1, direction = 1;
  const body = el("tbody");
  const count = el("span", { class: "count quiet", role: "status" });
  const lines = rows.map((row) => ({ row, node: tableRow(columns, row), text: row.map(([text]) => text).join(" ").toLowerCase() }));

  function refresh() {
    const shown = lines.filter(({ text }) => wanted.split(/\s+/).every((word) => text.includes(word)));
    if (sortedBy >= 0) {
      const empty = ({ row }) => row[sortedBy][0] === "";
      shown.sort((a, b) => empty(a) - empty(b) || direction * compareCells(a.row[sortedBy], b.row[sortedBy]));
    }
    body.replaceChildren(...shown.map(({ node }) => node));
    if (!shown.length) body.append(el("tr", {}, el("td", { class: "nothing", colspan: columns.length }, "No row fits the filter.")));
    count.textContent = shown.length === rows.length ? `${rows.length} rows` : `${shown.length} of ${rows.length} rows`;
  }

  const heads = columns.map((column, i) => {
    const button = el("button", { type: "button" }, column.title);
    const head = el("th", { scope: "col", class: column.numeric ? "number" : null, "aria-sort": "none" }, button);
    button.addEventListener("click", () => {
      // numbers are mostly looked through from the top, names from the start
      direction = sortedBy === i ? -direction : column.numeric ? -1 : 1;
      sortedBy = i;
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      refresh();
    });
    return head;
  });

  const tools = el("div", { class: "tools" });
  const field = el("input", { type: "search", placeholder: "text to look for", oninput: () => {
    wanted = field.value.trim().toLowerCase();
    refresh();
  } });
  tools.append(el("label", {}, "Filter", field));
  tools.append(count);
  refresh();
  const box = el("div", { class: rows.length > 20 ? "scroll tall" : "scroll", tabindex: "0", role: "region", "aria-label": section.title },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body));
  stackWhereNarrow(box);
  return [
    tools,
    box,
    ...section.notes.map((note) => el("p", { class: "quiet" }, note)),
  ];
}

// On a phone or a tablet a table that does not fit shows each row as a card, so that no column is out of sight.
function stackWhereNarrow(box) {
  drawToWidth(box, (width) => {
    box.classList.remove("stacked");
    box.classList.toggle("stacked", width < 760 && box.scrollWidth > box.clientWidth + 1);
  });
}

function tableRow(columns, row) {
  return el("tr", {}, ...row.map(([text, , bold], i) =>
    el("td", { class: columns[i].numeric ? "number" : text.length > 20 ? "wide" : null, "data-title": columns[i].title }, bold ? el("strong", {}, text) : text)));
}
