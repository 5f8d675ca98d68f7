"use strict";
// The charts of the page, drawn from the data in it. No library, no network.
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const runs = data.runs;
const hidden = new Set();
let shownGantt = data.headline ? data.headline.winner : 0;
const $ = id => document.getElementById(id);
const NS = "http://www.w3.org/2000/svg";

// ---- words -------------------------------------------------------------------------------
const span = s => {
  if (s < 0.05) return "0 s";
  if (s < 60) return (s < 10 ? +s.toFixed(1) : Math.round(s)) + " s";
  s = Math.round(s);
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  // Days are too coarse to compare two of them.
  if (h >= 72) return Math.floor(h / 24) + " d" + (h % 24 ? " " + h % 24 + " h" : "");
  if (h) return h + " h" + (m ? " " + m + " min" : "");
  return m + " min" + (s % 60 ? " " + (s % 60) + " s" : "");
};
const percent = v => (v * 100).toFixed(1) + " %";
const count = v => (v >= 100 || Number.isInteger(v) ? Math.round(v).toLocaleString("en") : v.toFixed(1));
const short = v => v >= 1e6 ? +(v / 1e6).toFixed(1) + " M" : v >= 1e4 ? +(v / 1e3).toFixed(1) + " k" : count(v);

// ---- elements ----------------------------------------------------------------------------
const el = (name, attributes = {}, text) => {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const html = (name, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
};
const colour = i => `var(--s${i % 8})`;
const dash = i => ["none", "7 4", "2 3"][Math.floor(i / 8) % 3];
const swatch = i => {
  const svg = el("svg", { width: 18, height: 8, "aria-hidden": "true" });
  svg.append(el("line", { x1: 1, x2: 17, y1: 4, y2: 4, stroke: colour(i), "stroke-width": 3, "stroke-linecap": "round", "stroke-dasharray": dash(i) }));
  return svg;
};
const visible = () => runs.map((_, i) => i).filter(i => !hidden.has(i));

// ---- scales ------------------------------------------------------------------------------
const TIME_STEPS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 345600, 432000, 604800, 864000, 1209600, 1728000, 2592000, 5184000, 15552000, 31104000];
const timeTicks = (max, room) => {
  const step = TIME_STEPS.find(s => max / s <= room) || max / room;
  const ticks = [];
  for (let t = 0; t <= max * 1.0001; t += step) ticks.push(t);
  return ticks;
};
const niceTicks = (max, room) => {
  if (max <= 0) return [0, 1];
  const raw = max / room, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= raw * 0.999);
  const ticks = [];
  for (let t = 0; t < max + step * 0.999; t += step) ticks.push(+t.toPrecision(12));
  return ticks;
};
const timeTick = t => t === 0 ? "0" : t % 86400 === 0 ? t / 86400 + " d" : t % 3600 === 0 ? t / 3600 + " h" : t % 60 === 0 ? t / 60 + " min" : span(t);

// ---- tooltip -----------------------------------------------------------------------------
const tip = $("tip");
const showTip = (event, title, rows) => {
  tip.replaceChildren(html("b", { textContent: title }));
  for (const [mark, name, value] of rows) {
    const label = html("span");
    if (mark !== null) label.append(mark);
    label.append(name);
    tip.append(html("div", {}, label, html("span", { textContent: value })));
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = event.clientX + 18 + box.width < innerWidth;
  tip.style.left = (right ? event.clientX + 18 : Math.max(4, event.clientX - 18 - box.width)) + "px";
  tip.style.top = Math.min(Math.max(4, event.clientY - box.height / 2), innerHeight - box.height - 4) + "px";
};
const hideTip = () => { tip.hidden = true; };

// ---- line charts -------------------------------------------------------------------------
function lines(id, { points, x, xTicks, xLabel, xTitle, yMax, yLabel, yWords, height = 290 }) {
  const host = $(id), width = Math.max(host.clientWidth, 260);
  const left = 52, right = 14, top = 10, bottom = 42;
  const svg = el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": host.parentElement.querySelector("h2").textContent });
  const ticks = niceTicks(yMax, 5), most = ticks[ticks.length - 1];
  const X = v => left + x(v) * (width - left - right);
  const Y = v => height - bottom - v / most * (height - top - bottom);
  for (const t of ticks) {
    svg.append(el("line", { class: "gridline", x1: left, x2: width - right, y1: Y(t), y2: Y(t) }));
    svg.append(el("text", { x: left - 9, y: Y(t) + 4, "text-anchor": "end" }, yLabel(t)));
  }
  for (const t of xTicks(Math.max(3, Math.floor((width - left) / 70)))) {
    svg.append(el("line", { class: "axisline", x1: X(t), x2: X(t), y1: height - bottom, y2: height - bottom + 5 }));
    svg.append(el("text", { x: X(t), y: height - bottom + 20, "text-anchor": "middle" }, xLabel(t)));
  }
  svg.append(el("line", { class: "axisline", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  svg.append(el("text", { x: width - right, y: height - 4, "text-anchor": "end" }, xTitle));
  for (const i of visible()) {
    const d = points(runs[i]).map(([a, b], n) => (n ? "L" : "M") + X(a).toFixed(1) + " " + Y(b).toFixed(1)).join("");
    svg.append(el("path", { d, fill: "none", stroke: colour(i), "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": dash(i) }));
  }
  const cross = el("line", { class: "cross", y1: top, y2: height - bottom, visibility: "hidden" });
  svg.append(cross);
  const dots = visible().map(i => { const c = el("circle", { r: 3.5, fill: colour(i), stroke: "var(--card)", "stroke-width": 1.5, visibility: "hidden" }); svg.append(c); return c; });
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const at = event.clientX - box.left;
    if (at < left || at > width - right) return leave();
    cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
    let label = null;
    const rows = visible().map((i, n) => {
      const list = points(runs[i]);
      let low = 0, high = list.length - 1;
      while (low < high) { const mid = (low + high) >> 1; if (X(list[mid][0]) < at) low = mid + 1; else high = mid; }
      if (low > 0 && at - X(list[low - 1][0]) < X(list[low][0]) - at) low--;
      const [a, b] = list[low];
      const beyond = at > X(list[list.length - 1][0]) + 6;
      dots[n].setAttribute("cx", X(a)); dots[n].setAttribute("cy", Y(b)); dots[n].setAttribute("visibility", beyond ? "hidden" : "visible");
      if (label === null && !beyond) label = a;
      return [swatch(i), runs[i].name, beyond ? "over" : yWords(b)];
    });
    if (rows.length) showTip(event, label === null ? "" : xTitle + ": " + span(label), rows);
  });
  const leave = () => { cross.setAttribute("visibility", "hidden"); dots.forEach(d => d.setAttribute("visibility", "hidden")); hideTip(); };
  svg.addEventListener("pointerleave", leave);
  host.replaceChildren(svg);
}
const longest = () => Math.max(1, ...runs.map(r => r.measures.makespan_s));
const overTime = (id, key, words, title) => {
  const max = longest();
  lines(id, {
    points: r => r[key].map((v, n) => [(n + 0.5) * r.step_s, v]),
    x: t => t / max, xTicks: room => timeTicks(max, room), xLabel: timeTick, xTitle: "time since the first submission",
    yMax: Math.max(1e-9, ...visible().flatMap(i => runs[i][key])), yLabel: short, yWords: words,
  });
};
function waits() {
  const max = Math.max(10, ...runs.flatMap(r => r.waits.length ? [r.waits[r.waits.length - 1][0]] : []));
  const all = [1, 10, 60, 600, 3600, 21600, 86400, 345600, 1728000, 8640000, 34560000];
  lines("waits", {
    points: r => r.waits.length ? [...r.waits, ...(r.waits[r.waits.length - 1][0] < max ? [[max, 1]] : [])] : [[1, 0]],
    x: t => Math.log(Math.max(t, 1)) / Math.log(max), xTicks: () => all.filter(t => t <= max * 1.01),
    xLabel: timeTick, xTitle: "started within", yMax: 1, yLabel: v => Math.round(v * 100) + " %", yWords: percent,
  });
}

// ---- utilisation: a strip for each run -----------------------------------------------------
function utilisation() {
  const host = $("utilisation"), width = Math.max(host.clientWidth, 260), shown = visible();
  const names = Math.min(190, Math.max(90, ...shown.map(i => runs[i].name.length * 7.2 + 26)));
  const left = names + 46, right = 62, strip = shown.length > 8 ? 44 : 66, gap = 14, bottom = 40;
  const height = Math.max(1, shown.length) * (strip + gap) + bottom, max = longest();
  const svg = el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Utilisation over time" });
  const X = t => left + t / max * (width - left - right);
  const base = height - bottom;
  const ticks = timeTicks(max, Math.max(3, Math.floor((width - left) / 90)));
  for (const t of ticks) {
    svg.append(el("line", { class: "gridline", x1: X(t), x2: X(t), y1: 0, y2: base }));
    svg.append(el("text", { x: X(t), y: base + 18, "text-anchor": "middle" }, timeTick(t)));
  }
  svg.append(el("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "time since the first submission"));
  shown.forEach((i, n) => {
    const r = runs[i], foot = n * (strip + gap) + strip + 6, Y = v => foot - v * strip;
    const mark = swatch(i); mark.setAttribute("x", 0); mark.setAttribute("y", foot - strip / 2 - 4); svg.append(mark);
    const name = r.name.length * 7.2 > names - 26 ? r.name.slice(0, Math.floor((names - 34) / 7.2)) + "…" : r.name;
    svg.append(el("text", { class: "name", x: 26, y: foot - strip / 2 + 4 }, name));
    svg.append(el("text", { x: left - 8, y: Y(1) + 9, "text-anchor": "end" }, "100 %"), el("text", { x: left - 8, y: foot, "text-anchor": "end" }, "0"));
    svg.append(el("rect", { x: left, y: Y(1), width: Math.max(0, X(max) - left), height: strip, fill: "var(--grid)", opacity: .45 }));
    let d = `M${left} ${foot}`;
    r.utilisation.forEach((v, k) => { d += `L${X(k * r.step_s).toFixed(1)} ${Y(v).toFixed(1)}L${X((k + 1) * r.step_s).toFixed(1)} ${Y(v).toFixed(1)}`; });
    d += `L${X(r.utilisation.length * r.step_s).toFixed(1)} ${foot}Z`;
    svg.append(el("path", { d, fill: colour(i), "fill-opacity": .32, stroke: colour(i), "stroke-width": 1 }));
    const mean = Y(r.measures.utilisation);
    svg.append(el("line", { x1: left, x2: X(r.measures.makespan_s), y1: mean, y2: mean, stroke: "var(--ink)", "stroke-width": 1, "stroke-dasharray": "2 3" }));
    svg.append(el("text", { class: "strong", x: X(max) + 9, y: mean + 4 }, percent(r.measures.utilisation)));
  });
  const cross = el("line", { class: "cross", y1: 0, y2: base, visibility: "hidden" });
  svg.append(cross);
  svg.addEventListener("pointermove", event => {
    const at = event.clientX - svg.getBoundingClientRect().left, t = (at - left) / (width - left - right) * max;
    if (t < 0 || t > max) { cross.setAttribute("visibility", "hidden"); return hideTip(); }
    cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
    showTip(event, span(t) + " since the first submission", shown.map(i => {
      const v = runs[i].utilisation[Math.floor(t / runs[i].step_s)];
      return [swatch(i), runs[i].name, v === undefined ? "over" : percent(v)];
    }));
  });
  svg.addEventListener("pointerleave", () => { cross.setAttribute("visibility", "hidden"); hideTip(); });
  host.replaceChildren(svg);
}

// ---- fairness ----------------------------------------------------------------------------
function fairness() {
  const people = runs.length && runs[0].parties_are === "users" ? "user" : "group";
  $("fairness-title").textContent = "Fairness by " + people;
  $("fairness-note").textContent = `The part of a job's time from submission to end in which it ran, in the mean over each ${people}'s jobs: 100 % never waits. The closer the dots of a colour stand to one line, the fairer.`;
  const host = $("fairness"), width = Math.max(host.clientWidth, 260), shown = visible();
  const names = new Map();
  for (const r of runs) for (const p of r.parties) if (!names.has(p.name)) names.set(p.name, p.jobs);
  const order = [...names.keys()].slice(0, 12);
  const label = Math.min(230, Math.max(90, ...order.map(n => n.length * 7.2 + 12)));
  const left = label, right = 112, step = 30, bottom = 40, height = order.length * step + bottom;
  const svg = el("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Fairness by " + people });
  const X = v => left + v * (width - left - right);
  for (const t of [0, .25, .5, .75, 1]) {
    svg.append(el("line", { class: "gridline", x1: X(t), x2: X(t), y1: 0, y2: height - bottom }));
    svg.append(el("text", { x: X(t), y: height - bottom + 18, "text-anchor": "middle" }, t * 100 + " %"));
  }
  svg.append(el("text", { x: X(1), y: height - 4, "text-anchor": "end" }, "of its time a job ran"));
  order.forEach((name, n) => {
    const y = n * step + step / 2;
    const text = name.length * 7.2 > label - 12 ? name.slice(0, Math.floor((label - 20) / 7.2)) + "…" : name;
    const row = el("g");
    row.append(el("rect", { x: 0, y: n * step, width, height: step, fill: "transparent" }));
    row.append(el("text", { class: "name", x: 0, y: y + 4 }, text));
    row.append(el("line", { class: "axisline", x1: X(0), x2: X(1), y1: y, y2: y }));
    row.append(el("text", { x: width, y: y + 4, "text-anchor": "end" }, count(names.get(name)) + " jobs"));
    const rows = [];
    for (const i of shown) {
      const p = runs[i].parties.find(p => p.name === name);
      if (!p) continue;
      row.append(el("circle", { cx: X(p.service), cy: y, r: 6, fill: colour(i), "fill-opacity": .88, stroke: "var(--card)", "stroke-width": 1.5 }));
      rows.push([swatch(i), runs[i].name, percent(p.service)]);
    }
    row.addEventListener("pointermove", event => showTip(event, name, rows));
    row.addEventListener("pointerleave", hideTip);
    svg.append(row);
  });
  host.replaceChildren(svg);
}

// ---- the cluster ---------------------------------------------------------------------------
const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";
const ramp = () => isDark() ? [[24, 30, 38], [20, 66, 107], [44, 132, 190], [150, 214, 255]] : [[240, 243, 247], [174, 208, 234], [58, 138, 196], [6, 54, 104]];
const rampAt = v => {
  const stops = ramp(), place = v * (stops.length - 1), n = Math.min(stops.length - 2, Math.floor(place)), f = place - n;
  return "rgb(" + stops[n].map((c, k) => Math.round(c + (stops[n + 1][k] - c) * f)).join(",") + ")";
};
function gantt() {
  const host = $("gantt"), run = runs[shownGantt];
  if (!run) return;
  const g = run.gantt, bars = g.kind === "bars", width = Math.max(host.clientWidth, 260), max = run.measures.makespan_s || 1;
  const rows = bars ? g.nodes.map(n => n[0]) : g.rows;
  const units = bars ? g.nodes.reduce((sum, n) => sum + n[1], 0) : rows.length;
  const each = bars ? Math.max(2, Math.min(9, Math.floor(620 / Math.max(units, 1)))) : Math.max(5, Math.min(24, Math.floor(560 / Math.max(units, 1))));
  const gapAfter = bars ? 3 : each > 8 ? 1 : 0;
  const label = Math.min(210, Math.max(40, ...rows.map(r => r.length * 6.8 + 14)));
  const tops = [];
  // The first label stands above the middle of a thin row.
  let y = 6;
  if (bars) for (const n of g.nodes) { tops.push(y); y += Math.max(n[1], 1) * each + gapAfter; }
  else for (let n = 0; n < rows.length; n++) { tops.push(y); y += each + gapAfter; }
  const plot = y, height = plot + 42, right = 14;
  const canvas = html("canvas"), scale = devicePixelRatio || 1;
  canvas.width = width * scale; canvas.height = height * scale; canvas.style.height = height + "px";
  canvas.setAttribute("role", "img"); canvas.setAttribute("aria-label", "The cluster over time under " + run.name);
  const c = canvas.getContext("2d");
  c.scale(scale, scale);
  const X = t => label + t / max * (width - label - right);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  const faint = css("--faint"), grid = css("--grid");
  const rowHeight = n => (bars ? Math.max(g.nodes[n][1], 1) : 1) * each;
  let lastLabel = -99;
  rows.forEach((name, n) => {
    const middle = tops[n] + rowHeight(n) / 2;
    if (middle - lastLabel >= 15) {
      c.fillStyle = faint; c.textAlign = "right";
      const most = Math.floor((label - 14) / 6.8);
      c.fillText(name.length > most ? name.slice(0, most - 1) + "…" : name, label - 9, middle);
      lastLabel = middle;
    }
    if (bars) { c.fillStyle = grid; c.fillRect(label, tops[n], width - label - right, rowHeight(n)); }
  });
  const firsts = [];
  if (bars) {
    let first = 0;
    for (const n of g.nodes) { firsts.push(first); first += n[1]; }
    const colours = [0, 1, 2, 3, 4, 5, 6].map(i => css("--p" + i));
    const other = css("--other"), card = css("--card");
    c.fillStyle = css("--away");
    for (const [node, from, to] of g.away) c.fillRect(X(from), tops[node], Math.max(1, X(to) - X(from)), rowHeight(node));
    const nodeOf = gpu => { let n = 0; while (n + 1 < firsts.length && firsts[n + 1] <= gpu) n++; return n; };
    g.boxes = g.bars.map(([first, gpus, from, to, party, job]) => {
      const node = nodeOf(first), top = tops[node] + (first - firsts[node]) * each;
      const box = { x: X(from), y: top, w: Math.max(.6, X(to) - X(from)), h: gpus * each, node, gpus, from, to, party, job };
      c.globalAlpha = .92; c.fillStyle = colours[party] || other; c.fillRect(box.x, box.y, box.w, box.h);
      if (box.w > 3 && box.h > 3) { c.globalAlpha = .8; c.strokeStyle = card; c.lineWidth = .6; c.strokeRect(box.x, box.y, box.w, box.h); }
      c.globalAlpha = 1;
      return box;
    });
  } else {
    const away = css("--away"), columns = g.cells.length ? g.cells[0].length : 0, w = (width - label - right) / Math.max(columns, 1);
    const shades = [...LEVELS].map((_, n) => rampAt(n / 63));
    g.cells.forEach((cells, n) => {
      for (let k = 0; k < columns; k++) {
        c.fillStyle = cells[k] === "-" ? away : shades[LEVELS.indexOf(cells[k])];
        c.fillRect(label + k * w, tops[n], w + .5, each);
      }
    });
  }
  c.fillStyle = faint; c.strokeStyle = css("--line"); c.textAlign = "center";
  for (const t of timeTicks(max, Math.max(3, Math.floor((width - label) / 90)))) {
    c.beginPath(); c.moveTo(X(t), plot); c.lineTo(X(t), plot + 5); c.stroke();
    c.fillText(timeTick(t), X(t), plot + 15);
  }
  c.textAlign = "right"; c.fillText("time since the first submission", width - right, plot + 34);
  canvas.addEventListener("pointermove", event => {
    const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    const t = (px - label) / (width - label - right) * max;
    if (t < 0 || t > max || py > plot) return hideTip();
    let n = tops.length - 1;
    while (n > 0 && tops[n] > py) n--;
    if (bars) {
      const hit = g.boxes.findLast(b => px >= b.x - 1 && px <= b.x + b.w + 1 && py >= b.y && py <= b.y + b.h);
      const away = g.away.find(([node, from, to]) => node === n && t >= from && t < to);
      if (!hit) return away ? showTip(event, rows[n] + " is away", [[null, "for", span(away[2] - away[1])]]) : hideTip();
      return showTip(event, "job " + g.jobs[hit.job], [
        [null, "on", rows[hit.node] + ", " + hit.gpus + (hit.gpus === 1 ? " GPU" : " GPUs")],
        [null, run.parties_are === "users" ? "user" : "group", g.parties[hit.party] || "another"],
        [null, "from", span(hit.from)], [null, "for", span(hit.to - hit.from)],
      ]);
    }
    const letter = g.cells[n][Math.min(g.cells[n].length - 1, Math.floor(t / g.step_s))];
    const part = LEVELS.indexOf(letter) / 63;
    showTip(event, rows[n], [[null, "at", span(t)], [null, "GPUs in use", letter === "-" ? "away" : count(+(part * g.full_gpus[n]).toFixed(1)) + (g.of === "party" ? "" : " of " + count(g.full_gpus[n]))]]);
  });
  canvas.addEventListener("pointerleave", hideTip);
  host.replaceChildren(canvas);
  ganttWords(run, g, bars);
}
function ganttWords(run, g, bars) {
  const people = run.parties_are === "users" ? "users" : "groups";
  const away = bars ? g.away.length > 0 : g.cells.some(row => row.includes("-"));
  $("gantt-note").textContent = bars ? `Every run of every job under ${run.name}, GPU by GPU; the colours are the ${people} that used most.`
    : g.of === "party" ? `A pool has no nodes: each row is one of the ${people} that held GPUs under ${run.name}, the darker the more.`
    : g.of === "node" ? `How full each node was under ${run.name}.` : `How full the nodes were under ${run.name}, neighbours together.`;
  const key = $("gantt-key");
  key.replaceChildren();
  const entry = (paint, name) => { const i = html("i"); i.style.background = paint; key.append(html("span", {}, i, name)); };
  if (bars) {
    g.parties.forEach((name, n) => entry(`var(--p${n})`, name));
    if (g.bars.some(b => b[4] >= g.parties.length)) entry("var(--other)", "others");
  } else {
    const strip = html("span", { className: "ramp" });
    strip.style.background = "linear-gradient(90deg," + [0, .25, .5, .75, 1].map(rampAt).join(",") + ")";
    key.append(html("span", {}, g.of === "party" ? "no GPU" : "empty", strip, g.of === "party" ? count(g.full_gpus[0] || 0) + " GPUs" : "all GPUs in use"));
  }
  if (away) entry("var(--away)", "away");
}

// ---- the table -----------------------------------------------------------------------------
const COLUMNS = [
  ["Jobs ended", m => m.jobs, count, 0],
  ["Mean wait", m => m.mean_wait_s, span, -1],
  ["Median wait", m => m.p50_wait_s, span, -1],
  ["99 % wait", m => m.p99_wait_s, span, -1],
  ["Mean completion", m => m.mean_jct_s, span, -1],
  ["99 % completion", m => m.p99_jct_s, span, -1],
  ["Makespan", m => m.makespan_s, span, -1],
  ["Utilisation", m => m.utilisation, percent, 1],
  ["Fairness", m => m.fairness, v => v.toFixed(3), 1],
  ["Value", m => m.value || 0, v => count(v), 1],
  ["Preemptions", m => m.preemptions, count, 0],
  ["Losses", m => m.losses, count, 0],
  ["Over limit", m => m.over_limit, count, 0],
  ["Unfinished", m => m.unfinished, count, 0],
  ["Never fit", m => m.never_fit, count, 0],
];
const OPTIONAL = new Set(["Value", "Preemptions", "Losses", "Over limit", "Unfinished", "Never fit"]);
function figures() {
  const columns = COLUMNS.filter(([name, of]) => !OPTIONAL.has(name) || runs.some(r => of(r.measures) > 0));
  const head = html("tr", {}, html("th", { textContent: "Run", scope: "col" }), ...columns.map(([name]) => html("th", { textContent: name, scope: "col" })));
  const body = runs.map((r, i) => {
    const row = html("tr", { className: hidden.has(i) ? "off" : "" }, html("td", {}, swatch(i), r.name));
    for (const [, of, words, better] of columns) {
      const shown = words(of(r.measures));
      const best = better && runs.length > 1 ? words(better * Math.max(...runs.map(o => better * of(o.measures)))) : null;
      const all = runs.every(o => words(of(o.measures)) === shown);
      row.append(html("td", { className: shown === best && !all ? "best" : "" }, html("span", { textContent: shown })));
    }
    return row;
  });
  $("figures").replaceChildren(html("thead", {}, head), html("tbody", {}, ...body));
}

// ---- all together ----------------------------------------------------------------------------
function legend() {
  $("legend").replaceChildren(...runs.map((r, i) => {
    const chip = html("button", { type: "button", className: "chip", title: "Click to show or hide; double-click to show it alone" }, swatch(i), r.name);
    chip.setAttribute("aria-pressed", String(!hidden.has(i)));
    chip.addEventListener("click", () => { if (hidden.has(i)) hidden.delete(i); else hidden.add(i); draw(); });
    chip.addEventListener("dblclick", () => { runs.forEach((_, n) => hidden.add(n)); hidden.delete(i); draw(); });
    return chip;
  }));
  $("tabs").replaceChildren(...runs.map((r, i) => {
    const tab = html("button", { type: "button", textContent: r.name });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", String(i === shownGantt));
    tab.addEventListener("click", () => { shownGantt = i; draw(); });
    return tab;
  }));
}
function draw() {
  legend();
  figures();
  utilisation();
  waits();
  overTime("waiting", "waiting", v => count(v) + " jobs");
  if (runs.some(r => r.value)) {
    overTime("value", "value", v => count(v) + " credits");
    overTime("revenue", "revenue", v => count(v) + " credits");
  }
  fairness();
  gantt();
}
function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
}
// A number stays with its unit, and a run's name in one piece.
const unbroken = text => text.replace(/(\d) (?=[%a-z])/g, "$1\u00a0").replace(/ · /g, "\u00a0·\u00a0");
if (data.headline) { $("headline").textContent = unbroken(data.headline.title); $("lead").textContent = unbroken(data.headline.subtitle); }
$("facts").replaceChildren(...data.facts.map(([name, fact]) => html("div", {}, html("dt", { textContent: name[0].toUpperCase() + name.slice(1) }), html("dd", { textContent: fact }))));
if (!runs.some(r => r.value)) document.querySelectorAll("[data-needs=value]").forEach(node => node.remove());
const system = matchMedia("(prefers-color-scheme: dark)");
let chosen = /[?#&]theme=(dark|light)/.exec(location.href)?.[1];
theme(chosen || (system.matches ? "dark" : "light"));
system.addEventListener("change", () => { if (!chosen) { theme(system.matches ? "dark" : "light"); draw(); } });
$("theme").addEventListener("click", () => { chosen = isDark() ? "light" : "dark"; theme(chosen); draw(); });
let waitingForResize = 0;
addEventListener("resize", () => { cancelAnimationFrame(waitingForResize); waitingForResize = requestAnimationFrame(draw); });
draw();
})();
