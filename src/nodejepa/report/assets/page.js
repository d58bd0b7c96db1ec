// Elements, numbers and tooltips that all sections share. Text from data only ever becomes a text node.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A given colour moves a little towards the ink: black must show on a dark page, pale grey on a white one.
const seriesColour = (given, index) => (given ? `color-mix(in srgb, ${given} var(--keep), var(--ink))` : `var(--c${index % 8})`);
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "12 4", "1 4", "10 2 2 2 2 2"];

function format(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-4)) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(4)));
}

// Round positions that cover [low, high].
function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(wanted, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

function powersOfTen(low, high) {
  const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first + 1) / 5));
  const found = [];
  for (let power = first; power <= last; power += stride) found.push(power);
  return found.length > 1 ? found : ticks(low, high, 3);
}

// Draws again whenever the width changes, so that text keeps its size on every screen.
function drawToWidth(box, draw) {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== last) draw((last = width));
  }).observe(box);
}

class Tip {
  constructor(box) {
    this.box = box;
    this.node = el("div", { class: "tip", hidden: true });
    box.append(this.node);
  }

  show(x, y, text) {
    this.node.textContent = text;
    this.node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.node;
    const left = x + 14 + width > this.box.clientWidth ? x - 14 - width : x + 14;
    this.node.style.left = `${Math.max(0, Math.min(left, this.box.clientWidth - width))}px`;
    this.node.style.top = `${Math.max(0, y - height - 8)}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}

function choice(label, options, chosen, change) {
  const select = el("select", { onchange: () => change(select.value) });
  for (const [value, text] of options) select.append(el("option", { value, selected: value === chosen }, text));
  return el("label", {}, label, select);
}

// A row of buttons that switch kinds of marks on and off.
function legend(entries, hidden, changed) {
  const list = el("ul", { class: "legend" });
  for (const { key, name, mark } of entries) {
    const button = el("button", { type: "button", "aria-pressed": String(!hidden.has(key)) }, mark, el("span", {}, name));
    button.addEventListener("click", () => {
      if (!hidden.delete(key)) hidden.add(key);
      button.setAttribute("aria-pressed", String(!hidden.has(key)));
      changed();
    });
    list.append(el("li", {}, button));
  }
  return list;
}
