// Line charts: values under the pointer or the arrow keys, lines that can be switched off, a logarithmic axis.

const FRAME = { left: 56, right: 14, top: 8, bottom: 40, height: 230 };

function curvesSection(section) {
  const panels = section.panels.map(([title, series]) => lineChart({ title, series }, section.x_label));
  return [el("div", { class: "panels" }, ...panels), section.caption ? el("p", { class: "quiet" }, section.caption) : null];
}

function lineChart(panel, xLabel) {
  const hidden = new Set();
  const box = el("div", { class: "drawing" });
  const readout = el("div", { class: "hidden-text", role: "status" });
  const tip = new Tip(box);
  const sizes = panel.series.flatMap((series) => series.y.filter((y) => y > 0));
  // terms of very different size are seen together only on a logarithmic axis
  let logarithmic = panel.series.length > 1 && Math.max(...sizes) > 100 * Math.min(...sizes), width = 0, cursor = null, picture = null, scale = null;

  const lines = () => panel.series.map((series, index) => ({ ...series, index })).filter((line) => !hidden.has(line.index));
  const usable = (y) => y !== null && (!logarithmic || y > 0);
  const height = (y) => (logarithmic ? Math.log10(y) : y);

  function makeScale(shown) {
    const xs = shown.flatMap((line) => line.x);
    const ys = shown.flatMap((line) => line.y.filter(usable).map(height));
    let [low, high] = ys.length ? [Math.min(...ys), Math.max(...ys)] : [0, 1];
    if (low === high) [low, high] = [low - (Math.abs(low) * 0.1 || 1), high + (Math.abs(high) * 0.1 || 1)];
    const margin = (high - low) * 0.05;
    [low, high] = [low - margin, high + margin];
    const first = Math.min(...xs, Infinity), last = Math.max(...xs, -Infinity);
    const span = last - first || 1;
    return {
      low, high, first, last,
      x: (x) => FRAME.left + ((x - first) / span) * (width - FRAME.left - FRAME.right),
      y: (y) => FRAME.top + ((high - height(y)) / (high - low)) * (FRAME.height - FRAME.top - FRAME.bottom),
    };
  }

  function draw() {
    const shown = lines();
    scale = makeScale(shown);
    const bottom = FRAME.height - FRAME.bottom;
    const drawn = svg("svg", {
      viewBox: `0 0 ${width} ${FRAME.height}`, height: FRAME.height, tabindex: "0", role: "img",
      "aria-label": `${panel.title} over ${xLabel}; arrow keys read the values`,
    });
    const marks = logarithmic ? powersOfTen(scale.low, scale.high).map((power) => 10 ** power) : ticks(scale.low, scale.high, 4);
    for (const mark of marks) {
      const y = scale.y(mark);
      if (y < FRAME.top - 1 || y > bottom + 1) continue;
      drawn.append(svg("line", { class: "grid", x1: FRAME.left, x2: width - FRAME.right, y1: y, y2: y }));
      drawn.append(svg("text", { x: FRAME.left - 8, y: y + 4, "text-anchor": "end" }, format(mark)));
    }
    if (Number.isFinite(scale.first)) {
      for (const mark of ticks(scale.first, scale.last, width / 75)) {
        drawn.append(svg("text", { x: scale.x(mark), y: bottom + 17, "text-anchor": "middle" }, format(mark)));
      }
    }
    drawn.append(svg("text", { x: (FRAME.left + width - FRAME.right) / 2, y: bottom + 35, "text-anchor": "middle" }, xLabel));
    for (const line of shown) drawn.append(pathOf(line));
    drawn.append(svg("g", { class: "at-cursor" }));
    for (const kind of ["pointerdown", "pointermove"]) {
      drawn.addEventListener(kind, (event) => moveTo(nearest(event.clientX - drawn.getBoundingClientRect().left)));
    }
    drawn.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
    drawn.addEventListener("blur", leave);
    drawn.addEventListener("keydown", onKey);
    if (picture) picture.replaceWith(drawn);
    else box.prepend(drawn);
    picture = drawn;
  }

  function pathOf(line) {
    let pen = "M", path = "";
    line.x.forEach((x, i) => {
      if (!usable(line.y[i])) { pen = "M"; return; }
      path += `${pen}${scale.x(x).toFixed(1)} ${scale.y(line.y[i]).toFixed(1)}`;
      pen = "L";
    });
    const drawn = svg("path", { d: path, fill: "none", "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": DASHES[line.index % DASHES.length] });
    drawn.style.stroke = seriesColour(line.colour, line.index);
    if (line.x.length > 1) return drawn;
    return dot(scale.x(line.x[0]), line.y[0] === null ? 0 : scale.y(line.y[0]), line);
  }

  function dot(x, y, line) {
    const mark = svg("circle", { cx: x, cy: y, r: 4 });
    mark.style.fill = seriesColour(line.colour, line.index);
    return mark;
  }

  const positions = () => [...new Set(lines().flatMap((line) => line.x))].sort((a, b) => a - b);

  function nearest(pixel) {
    return positions().reduce((best, x) =>
      best === null || Math.abs(scale.x(x) - pixel) < Math.abs(scale.x(best) - pixel) ? x : best, null);
  }

  function moveTo(x) {
    if (x === null) return;
    cursor = x;
    const group = picture.querySelector(".at-cursor");
    const at = scale.x(x);
    group.replaceChildren(svg("line", { class: "cursor", x1: at, x2: at, y1: FRAME.top, y2: FRAME.height - FRAME.bottom }));
    const words = [`${xLabel} ${format(x)}`];
    for (const line of lines()) {
      const i = line.x.indexOf(x);
      if (i < 0 || line.y[i] === null) continue;
      words.push(`${line.name} ${format(line.y[i])}`);
      if (usable(line.y[i])) group.append(dot(at, scale.y(line.y[i]), line));
    }
    tip.show(at, FRAME.top + 60, words.join("\n"));
    readout.textContent = words.join(", ");
  }

  function leave() {
    tip.hide();
    picture.querySelector(".at-cursor").replaceChildren();
  }

  function onKey(event) {
    const all = positions();
    const stride = event.shiftKey ? 10 : 1;
    const at = cursor === null ? -1 : all.indexOf(cursor);
    const next = { ArrowRight: at + stride, ArrowLeft: at - stride, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape") leave();
    if (next === undefined || !all.length) return;
    event.preventDefault();
    moveTo(all[Math.max(0, Math.min(next, all.length - 1))]);
  }

  const toggle = el("button", { type: "button", "aria-pressed": String(logarithmic), onclick: () => {
    logarithmic = !logarithmic;
    toggle.setAttribute("aria-pressed", String(logarithmic));
    draw();
  } }, "log scale");
  drawToWidth(box, (measured) => { width = measured; draw(); });
  const entries = panel.series.map((series, key) => ({ key, name: series.name, mark: lineMark(series, key) }));
  return el("div", { class: "panel" },
    el("div", { class: "panel-head" }, el("h4", {}, panel.title), sizes.length ? toggle : null),
    box, readout, entries.length > 1 ? legend(entries, hidden, draw) : null);
}

function lineMark(series, index) {
  const line = svg("line", { x1: 0, x2: 22, y1: 6, y2: 6, "stroke-width": 3, "stroke-dasharray": DASHES[index % DASHES.length] });
  line.style.stroke = seriesColour(series.colour, index);
  return svg("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, line);
}
