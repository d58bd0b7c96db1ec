// Dot plots: a mean with its spread and the single values behind it. The axis need not start at zero, as a bar's must.

function dotsSection(section) {
  const panels = section.panels.map(([title, rows]) => dotPanel({ title, rows }, section.unit));
  return [el("div", { class: "panels" }, ...panels), section.caption ? el("p", { class: "quiet" }, section.caption) : null];
}

function dotPanel(panel, unit) {
  const box = el("div", { class: "drawing" });
  let picture = null;
  drawToWidth(box, (width) => {
    const drawn = dotPicture(panel, unit, width);
    if (picture) picture.replaceWith(drawn);
    else box.append(drawn);
    picture = drawn;
  });
  return el("div", { class: "panel" }, el("div", { class: "panel-head" }, el("h4", {}, panel.title)), box);
}

function dotPicture({ title, rows }, unit, width) {
  const row = 26, top = 6, bottom = top + rows.length * row;
  const right = rows.some(({ spread }) => spread !== null) ? 92 : 52;
  const longest = Math.max(...rows.map(({ label }) => label.length), 0);
  const left = Math.min(longest * 7 + 14, Math.floor(width * 0.36));
  const ends = rows.flatMap(({ value, spread, points }) => [value - (spread || 0), value + (spread || 0), ...points]);
  let low = Math.min(...ends), high = Math.max(...ends);
  const margin = (high - low || 1) * 0.06;
  [low, high] = [low - margin, high + margin];
  const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
  const words = rows.map(({ label, value, spread }) => `${label} ${valueWithSpread(value, spread)}`).join("; ");
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${bottom + 40}`, height: bottom + 40, role: "img", "aria-label": `${title}, ${unit}: ${words}` });
  for (const mark of ticks(low, high, Math.max(3, (width - left - right) / 70))) {
    drawn.append(svg("line", { class: "grid", x1: x(mark), x2: x(mark), y1: top, y2: bottom }));
    drawn.append(svg("text", { x: x(mark), y: bottom + 16, "text-anchor": "middle" }, format(mark)));
  }
  drawn.append(svg("text", { x: (left + width - right) / 2, y: bottom + 34, "text-anchor": "middle" }, unit));
  rows.forEach(({ label, value, spread, points, colour, emphasised }, i) => {
    const y = top + (i + 0.5) * row, paint = seriesColour(colour, i);
    const fits = Math.max(3, Math.floor((left - 10) / 7));
    const name = svg("text", { class: "strong", x: left - 10, y: y + 4, "text-anchor": "end" }, label.length > fits ? `${label.slice(0, fits - 1)}…` : label);
    name.append(svg("title", {}, label));
    drawn.append(name);
    for (const point of points) {
      const mark = svg("circle", { cx: x(point), cy: y, r: 2.5, opacity: 0.45 });
      mark.style.fill = paint;
      drawn.append(mark);
    }
    if (spread) {
      const bar = svg("line", { x1: x(value - spread), x2: x(value + spread), y1: y, y2: y, "stroke-width": 2 });
      bar.style.stroke = paint;
      drawn.append(bar);
    }
    const mark = svg("circle", { cx: x(value), cy: y, r: 5, "stroke-width": 2 });
    mark.style.fill = emphasised ? paint : "var(--card)";
    mark.style.stroke = paint;
    drawn.append(mark);
    drawn.append(svg("text", { class: "strong", x: width, y: y + 4, "text-anchor": "end" }, valueWithSpread(value, spread)));
  });
  return drawn;
}

// Three digits or so: percents with one decimal, seconds of an epoch with as many as tell methods apart.
function valueWithSpread(value, spread) {
  const decimals = Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  const words = value.toFixed(decimals);
  return spread === null ? words : `${words} ± ${spread.toFixed(decimals)}`;
}
