// The map of the embeddings: zoom, pan, hover, and the same with the keyboard.

const REACH = 14; // pixels from the pointer within which a node counts as under it
const HELP = "Drag to move, scroll to zoom once the map is selected (or with Ctrl), pinch on a phone. Keyboard: arrow keys go from " +
  "node to node, Shift and arrows move the map, + and − zoom, 0 shows all, Escape lets go.";

function mapSection(section) {
  const planes = section.projections.map(([name, points]) => ({ name, x: points.map(([x]) => x), y: points.map(([, y]) => y) }));
  const data = { ...section, planes };
  return data.side_by_side ? sideBySide(data) : new EmbeddingMap(data).parts;
}

// One map a projection, with one choice of colours and one legend; a node that is pointed at is marked in all.
function sideBySide(data) {
  const maps = data.planes.map((plane) => new EmbeddingMap({ ...data, title: plane.name, planes: [plane] }));
  const [first] = maps;
  for (const map of maps) {
    map.named = false;
    map.hidden = first.hidden;
    map.changed = () => maps.forEach((each) => each.draw());
    map.canvas.setAttribute("aria-describedby", first.helpId);
    map.say = (i, nothing) => {
      for (const each of maps) {
        EmbeddingMap.prototype.say.call(each, i, nothing);
        if (each !== map) each.tip.hide();
      }
    };
  }
  const tools = el("div", { class: "tools" }, first.modes.length < 2 ? null
    : choice("Colour", first.modes.map((mode) => [mode.key, mode.name]), first.mode.key, (key) => maps.forEach((map) => { map.setMode(key); map.draw(); })));
  const panels = maps.map((map) => el("div", { class: "panel" }, el("h4", {}, map.data.title), map.box));
  return [tools, el("div", { class: "panels maps" }, ...panels), first.readout, first.legendBox,
    el("p", { class: "quiet", id: first.helpId }, HELP), ...data.notes.map((note) => el("p", { class: "quiet" }, note))];
}

class EmbeddingMap {
  constructor(data) {
    this.data = data;
    this.hidden = { class: new Set(), error: new Set() };
    this.plane = data.planes[0];
    this.current = null;
    this.named = data.labels !== null && data.names.length <= 20;
    this.pointers = new Map();
    this.changed = () => this.draw();
    this.box = el("div", { class: "drawing map" });
    this.helpId = `help-${Math.random().toString(36).slice(2)}`;
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-roledescription": "map",
      "aria-label": `${data.title}, ${data.ids.length} nodes`, "aria-describedby": this.helpId });
    this.box.append(this.canvas);
    this.tip = new Tip(this.box);
    this.readout = el("p", { class: "readout", "aria-live": "polite" });
    this.legendBox = el("div");
    this.setModes();
    this.listen();
    drawToWidth(this.box, (width) => this.resize(width));
    dark.addEventListener("change", () => { this.setModes(this.mode.key); this.draw(); });
    this.parts = [this.tools(), this.box, this.readout, this.legendBox,
      el("p", { class: "quiet", id: this.helpId }, HELP), ...data.notes.map((note) => el("p", { class: "quiet" }, note))];
  }

  setModes(key) {
    this.modes = colourModes(this.data);
    this.setMode(key ?? this.modes[0].key);
  }

  setMode(key) {
    this.mode = this.modes.find((mode) => mode.key === key);
    if (!this.mode.toggles) {
      const ramp = el("span", { class: "ramp" });
      ramp.style.background = `linear-gradient(to right, ${this.mode.ramp.join(",")})`;
      const [low, high] = this.mode.range;
      this.legendBox.replaceChildren(el("p", { class: "quiet" }, `degree ${low} `, ramp, ` ${high} (logarithmic)`));
      return;
    }
    const entries = [...this.mode.marks].map(([group, mark]) => ({ key: group, name: mark.name, mark: markPicture(mark) }));
    this.legendBox.replaceChildren(legend(entries, this.hidden[key], () => this.changed()));
  }

  tools() {
    const tools = el("div", { class: "tools" });
    if (this.modes.length > 1) {
      tools.append(choice("Colour", this.modes.map((mode) => [mode.key, mode.name]), this.mode.key, (key) => { this.setMode(key); this.draw(); }));
    }
    const planes = this.data.planes;
    if (planes.length > 1) {
      tools.append(choice("Projection", planes.map((plane, i) => [String(i), plane.name]), "0", (i) => {
        this.plane = planes[Number(i)];
        this.fit();
        this.say(null);
      }));
    }
    const field = el("input", { type: "search", size: "10", placeholder: "id" });
    field.addEventListener("change", () => this.find(field.value.trim()));
    tools.append(el("label", {}, "Find node", field));
    const button = (label, name, action) => el("button", { type: "button", "aria-label": name, onclick: action }, label);
    tools.append(el("span", {}, button("+", "zoom in", () => this.zoom(1.5)), " ", button("−", "zoom out", () => this.zoom(1 / 1.5)), " ",
      button("show all", "show all", () => this.fit())));
    if (this.data.labels) {
      const names = el("input", { type: "checkbox", checked: this.named, onchange: () => { this.named = names.checked; this.draw(); } });
      tools.append(el("label", {}, names, "class names"));
    }
    return tools;
  }

  // ------------------------------------------------------------ view

  resize(width) {
    const first = !this.width;
    this.width = width;
    this.height = Math.min(Math.round(width * 0.9), 560);
    const density = window.devicePixelRatio || 1;
    this.canvas.width = width * density;
    this.canvas.height = this.height * density;
    this.canvas.style.height = `${this.height}px`;
    this.context = this.canvas.getContext("2d");
    this.context.scale(density, density);
    if (first) this.fit();
    else this.draw();
  }

  fit() {
    const { x, y } = this.plane;
    let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
    x.forEach((value, i) => {
      if (value === null) return;
      left = Math.min(left, value); right = Math.max(right, value);
      low = Math.min(low, y[i]); high = Math.max(high, y[i]);
    });
    const margin = 24;
    const room = [(this.width - 2 * margin) / (right - left || 1), (this.height - 2 * margin) / (high - low || 1)];
    this.scale = right > left || high > low ? Math.min(...room) : 1;
    this.fitted = this.scale;
    this.middle = [(left + right) / 2, (low + high) / 2]; // of the data, drawn in the middle of the canvas
    this.draw();
  }

  place(i) {
    const { x, y } = this.plane;
    return [this.width / 2 + (x[i] - this.middle[0]) * this.scale, this.height / 2 - (y[i] - this.middle[1]) * this.scale];
  }

  zoom(factor, at = [this.width / 2, this.height / 2]) {
    const scale = Math.max(this.fitted / 4, Math.min(this.scale * factor, this.fitted * 500));
    const [dx, dy] = [at[0] - this.width / 2, at[1] - this.height / 2];
    this.middle[0] += dx / this.scale - dx / scale;
    this.middle[1] -= dy / this.scale - dy / scale;
    this.scale = scale;
    this.draw();
  }

  pan(dx, dy) {
    this.middle[0] -= dx / this.scale;
    this.middle[1] += dy / this.scale;
    this.draw();
  }

  visible(i) {
    return this.plane.x[i] !== null && !(this.mode.toggles && this.hidden[this.mode.key].has(this.mode.groups[i]));
  }

  // ------------------------------------------------------------ drawing

  draw() {
    const { context, mode } = this;
    if (!context) return;
    context.clearRect(0, 0, this.width, this.height);
    const count = this.data.ids.length;
    const size = Math.min(7, (count > 2500 ? 2.2 : 3) * (this.scale / this.fitted) ** 0.35);
    const members = new Map([...mode.marks.keys()].map((key) => [key, []]));
    for (let i = 0; i < count; i++) if (this.visible(i)) members.get(mode.groups[i]).push(i);
    for (const [key, mark] of mode.marks) {
      context.globalAlpha = mark.alpha;
      context.fillStyle = mark.colour;
      context.beginPath();
      for (const i of members.get(key)) {
        const [x, y] = this.place(i);
        if (x > -9 && y > -9 && x < this.width + 9 && y < this.height + 9) tracePoint(context, mark.shape, x, y, size * mark.size);
      }
      context.fill();
    }
    context.globalAlpha = 1;
    if (this.named) this.drawNames();
    this.drawCurrent(size);
  }

  drawNames() {
    const { context, data } = this;
    const members = new Map();
    data.labels.forEach((label, i) => {
      if (label < 0 || !this.visible(i)) return;
      if (!members.has(label)) members.set(label, []);
      members.get(label).push(i);
    });
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = themeColour("--card");
    context.fillStyle = themeColour("--ink");
    const taken = [];
    for (const [label, nodes] of [...members].sort((a, b) => b[1].length - a[1].length)) {
      const [x, y] = [0, 1].map((axis) => median(nodes.map((i) => this.place(i)[axis])));
      const name = shortened(data.names[label] ?? String(label), 22);
      const half = context.measureText(name).width / 2 + 3;
      // a name that would cover another one is left out; zooming in makes room for it
      if (taken.some(([tx, ty, reach]) => Math.abs(tx - x) < reach + half && Math.abs(ty - y) < 16)) continue;
      taken.push([x, y, half]);
      context.strokeText(name, x, y);
      context.fillText(name, x, y);
    }
  }

  drawCurrent(size) {
    if (this.current === null || !this.visible(this.current)) { this.tip.hide(); return; }
    const [x, y] = this.place(this.current);
    if (x < 0 || y < 0 || x > this.width || y > this.height) { this.tip.hide(); return; }
    this.context.strokeStyle = themeColour("--ink");
    this.context.lineWidth = 2;
    this.context.beginPath();
    this.context.arc(x, y, size + 4, 0, 2 * Math.PI);
    this.context.stroke();
    this.tip.show(x, y, this.describe(this.current).join("\n"));
  }

  describe(i) {
    const { data } = this;
    const name = (label) => data.names[label] ?? String(label);
    const words = [`node ${shortened(data.ids[i], 80)}`];
    if (data.labels) words.push(data.labels[i] < 0 ? "no label" : `class ${name(data.labels[i])}`);
    if (data.degrees) words.push(`degree ${data.degrees[i]}`);
    if (data.predicted && data.predicted[i] >= 0) {
      words.push(data.predicted[i] === data.labels?.[i] ? "predicted right" : `predicted ${name(data.predicted[i])} (wrong)`);
    }
    return words;
  }

  say(i, nothing = "") {
    this.current = i;
    this.readout.textContent = i === null ? nothing : this.describe(i).join(", ");
    this.draw();
  }

  // ------------------------------------------------------------ finding nodes

  under(x, y) {
    let best = null, nearest = REACH ** 2;
    for (let i = 0; i < this.data.ids.length; i++) {
      if (!this.visible(i)) continue;
      const [px, py] = this.place(i);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < nearest) [best, nearest] = [i, distance];
    }
    return best;
  }

  find(id) {
    const i = this.data.ids.indexOf(id);
    if (id === "" || i < 0 || !this.visible(i)) this.say(null, id === "" ? "" : `No node ${shortened(id, 80)} is drawn.`);
    else this.goTo(i);
  }

  goTo(i) {
    const [x, y] = this.place(i);
    if (x < 12 || y < 12 || x > this.width - 12 || y > this.height - 12) this.middle = [this.plane.x[i], this.plane.y[i]];
    this.say(i);
  }

  // The nearest node in a direction; nodes aside of it count as further away.
  neighbour([dx, dy]) {
    const from = this.current === null || !this.visible(this.current) ? [this.width / 2, this.height / 2] : this.place(this.current);
    const start = this.current === null;
    let best = null, least = Infinity;
    for (let i = 0; i < this.data.ids.length; i++) {
      if (i === this.current || !this.visible(i)) continue;
      const [x, y] = this.place(i);
      const along = (x - from[0]) * dx + (y - from[1]) * dy;
      const aside = Math.abs((x - from[0]) * dy) + Math.abs((y - from[1]) * dx);
      if (!start && along <= 0.01) continue;
      const cost = Math.abs(along) + 2 * aside;
      if (cost < least) [best, least] = [i, cost];
    }
    return best;
  }

  // ------------------------------------------------------------ pointer and keyboard

  listen() {
    const { canvas } = this;
    const at = (event) => {
      const edge = canvas.getBoundingClientRect();
      return [event.clientX - edge.left, event.clientY - edge.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at(event));
      this.travelled = 0;
    });
    canvas.addEventListener("pointermove", (event) => this.move(event, at(event)));
    const release = (event) => {
      this.pointers.delete(event.pointerId);
      canvas.classList.remove("dragging");
    };
    canvas.addEventListener("pointerup", (event) => {
      if (this.travelled < 5) this.say(this.under(...at(event)));
      release(event);
    });
    canvas.addEventListener("pointercancel", release);
    // a finger leaves as soon as it is lifted: what it touched stays shown
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && document.activeElement !== canvas) this.say(null);
    });
    canvas.addEventListener("blur", () => this.say(null));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls on
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  move(event, position) {
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const i = this.under(...position);
      if (i !== this.current) this.say(i);
      return;
    }
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, where]) => where);
    if (others.length) {
      const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
      this.zoom(distance(position, others[0]) / distance(before, others[0]), position.map((value, axis) => (value + others[0][axis]) / 2));
    }
    const share = others.length ? 0.5 : 1;
    const [dx, dy] = [position[0] - before[0], position[1] - before[1]];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    this.canvas.classList.add("dragging");
    this.pan(dx * share, dy * share);
    this.pointers.set(event.pointerId, position);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (direction && event.shiftKey) this.pan(-60 * direction[0], -60 * direction[1]);
    else if (direction) {
      const i = this.neighbour(direction);
      if (i !== null) this.goTo(i);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0" || event.key === "Home") this.fit();
    else if (event.key === "Escape") this.say(null);
    else return;
    event.preventDefault();
  }
}

function median(values) {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

function shortened(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
