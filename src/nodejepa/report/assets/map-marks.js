// What a node of the map looks like: colour, shape and size by class, degree or error.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const CLASS_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b8a800", "#8a6fd0"];
const SHAPES = ["circle", "square", "triangle", "diamond", "cross"]; // the next one with every eight classes
const UNKNOWN = -1;
const RAMPS = { light: ["#bccde0", "#4f8ac4", "#1b3d7a", "#0b1436"], dark: ["#3c4f69", "#4f8ac4", "#a6cdf2", "#ffffff"] };

const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function tracePoint(context, shape, x, y, r) {
  if (shape === "circle") { context.moveTo(x + r, y); context.arc(x, y, r, 0, 2 * Math.PI); }
  else if (shape === "square") context.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  else if (shape === "triangle") polygon(context, [[x, y - r * 1.2], [x + r * 1.1, y + r * 0.8], [x - r * 1.1, y + r * 0.8]]);
  else if (shape === "diamond") polygon(context, [[x, y - r * 1.3], [x + r * 1.3, y], [x, y + r * 1.3], [x - r * 1.3, y]]);
  else {
    const t = r * 0.45, a = r * 1.2;
    polygon(context, [[x - t, y - a], [x + t, y - a], [x + t, y - t], [x + a, y - t], [x + a, y + t], [x + t, y + t],
      [x + t, y + a], [x - t, y + a], [x - t, y + t], [x - a, y + t], [x - a, y - t], [x - t, y - t]]);
  }
}

function polygon(context, [first, ...rest]) {
  context.moveTo(...first);
  for (const corner of rest) context.lineTo(...corner);
  context.closePath();
}

function blend(stops, share) {
  const at = Math.max(0, Math.min(share, 1)) * (stops.length - 1), i = Math.min(Math.floor(at), stops.length - 2);
  const channel = (text, from) => parseInt(text.slice(from, from + 2), 16);
  const mixed = [1, 3, 5].map((from) => Math.round(channel(stops[i], from) + (at - i) * (channel(stops[i + 1], from) - channel(stops[i], from))));
  return `rgb(${mixed.join(",")})`;
}

// A way of colouring: the group of each node, and how each group is drawn (later groups on top).
function classMode(data, key = "class", labels = data.labels, names = data.names) {
  const groups = labels.map((label) => (label < 0 ? UNKNOWN : label));
  const marks = new Map();
  for (const group of [...new Set(groups)].sort((a, b) => a - b)) {
    const mark = group === UNKNOWN
      ? { name: "no label", colour: themeColour("--faint"), shape: "circle" }
      : { name: names[group] ?? String(group), colour: CLASS_COLOURS[group % 8], shape: SHAPES[Math.floor(group / 8) % SHAPES.length] };
    marks.set(group, { ...mark, alpha: 0.75, size: 1 });
  }
  return { key, name: key, groups, marks, toggles: true };
}

function errorMode(data) {
  const groups = data.labels.map((label, i) => (label < 0 || data.predicted[i] < 0 ? 0 : data.predicted[i] === label ? 1 : 2));
  const marks = new Map([
    [0, { name: "not tested", colour: themeColour("--faint"), shape: "circle", alpha: 0.35, size: 0.8 }],
    [1, { name: "right", colour: themeColour("--mark"), shape: "circle", alpha: 0.5, size: 1 }],
    [2, { name: "wrong", colour: themeColour("--miss"), shape: "diamond", alpha: 0.95, size: 1.25 }],
  ]);
  for (const key of [...marks.keys()]) {
    const size = groups.filter((group) => group === key).length;
    if (!size) marks.delete(key);
    else marks.get(key).name += ` (${size})`;
  }
  return { key: "error", name: "error of the probe", groups, marks, toggles: true };
}

function degreeMode(data) {
  const steps = 12, most = Math.log1p(Math.max(...data.degrees, 1));
  const groups = data.degrees.map((degree) => Math.min(steps - 1, Math.floor((Math.log1p(degree) / most) * steps)));
  const ramp = RAMPS[dark.matches ? "dark" : "light"];
  const marks = new Map();
  for (let step = 0; step < steps; step++) marks.set(step, { name: "", colour: blend(ramp, step / (steps - 1)), shape: "circle", alpha: 0.85, size: 1 });
  return { key: "degree", name: "degree", groups, marks, toggles: false, ramp, range: [0, Math.max(...data.degrees, 1)] };
}

function colourModes(data) {
  const modes = [];
  if (data.labels) modes.push(classMode(data));
  if (data.degrees) modes.push(degreeMode(data));
  if (data.labels && data.predicted) modes.push(errorMode(data));
  if (!modes.length) modes.push(classMode(data, "node", data.ids.map(() => 0), ["all nodes"]));
  return modes;
}

function markPicture(mark) {
  const canvas = el("canvas", { width: 28, height: 28, "aria-hidden": "true" });
  canvas.style.width = canvas.style.height = "14px";
  const context = canvas.getContext("2d");
  context.fillStyle = mark.colour;
  context.beginPath();
  tracePoint(context, mark.shape, 14, 14, 9);
  context.fill();
  return canvas;
}
