// Confusion matrix: counts, shaded by their share of the row (its root, so that rare mistakes show).

function confusionSection(section) {
  const { names, counts } = section;
  const short = names.every((name) => name.length <= 4);
  const columnHead = (name, i) => short
    ? el("th", { scope: "col" }, name)
    : el("th", { scope: "col", title: name }, el("span", { "aria-hidden": "true" }, String(i + 1)), el("span", { class: "hidden-text" }, name));
  const head = el("tr", {}, el("th", {}, "true ↓ predicted →"), ...names.map(columnHead));
  const body = counts.map((row, i) => {
    const total = row.reduce((sum, count) => sum + count, 0);
    const cells = row.map((count, j) => {
      const cell = el("td", { title: `${names[i]} taken for ${names[j]}: ${count} of ${total}` }, count ? String(count) : "·");
      cell.style.setProperty("--shade", i === j ? "var(--mark)" : "var(--miss)");
      cell.style.setProperty("--share", `${total ? Math.round(60 * Math.sqrt(count / total)) : 0}%`);
      return cell;
    });
    return el("tr", {}, el("th", { scope: "row" }, short ? names[i] : `${i + 1} ${names[i]}`), ...cells);
  });
  return [
    el("div", { class: "scroll confusion", tabindex: "0", role: "region", "aria-label": section.title },
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...body))),
    section.caption ? el("p", { class: "quiet" }, section.caption) : null,
  ];
}
