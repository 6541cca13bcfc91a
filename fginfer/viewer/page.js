"use strict";
(() => {
const D = JSON.parse(document.getElementById("data").textContent), $ = (id) => document.getElementById(id);
const byId = new Map(D.variables.map((v) => [v.id, v])), factors = new Map(D.factors.map((f) => [f.id, f]));
const n = D.size.variables, wrong = new Set(D.conflicts.labels);
D.factors.forEach((f) => { if (f.violated) f.scope.forEach((v) => wrong.add(v)); });
let chosen = null, table = null;

// All text goes in as text: a name in a model is never markup.
const make = (tag, attributes = {}, ...inside) => {
  const svg = ["svg", "g", "circle", "line", "rect", "text", "polyline", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, value] of Object.entries(attributes)) {
    if (k.startsWith("on")) node.addEventListener(k.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(k, value === true ? "" : value);
  }
  node.append(...inside.flat().filter((x) => x !== null && x !== undefined).map((x) => (x instanceof Node ? x : String(x))));
  return node;
};
const put = (id, ...inside) => { $(id).replaceChildren(...inside.flat().filter((x) => x)); };
const rows = (head, body, name) => make("table", { class: name || "" }, head && make("thead", {}, make("tr", {}, head.map((h) => make("th", { scope: "col" }, h)))),
  make("tbody", {}, body.map((r) => make("tr", {}, r.map((c) => make("td", {}, c))))));
const nameOf = (v) => (D.names && D.names[v] !== undefined ? D.names[v] : String(v));
const labelOf = (v) => (D.labels && v < D.labels.length ? D.labels[v] : byId.has(v) && byId.get(v).label !== undefined ? byId.get(v).label : null);
const wordOf = (v, l) => { const w = byId.get(v) && byId.get(v).words; return w && w[l] !== undefined ? w[l] : String(l); };
const show = (x) => (x === null || x === undefined ? "-" : typeof x === "number" ? String(Number(x.toPrecision(5))) : x);
const hue = (l) => (l === null ? "#8a8f98" : `hsl(${(215 + l * 137.508) % 360} 62% ${l % 2 ? 62 : 48}%)`);
const said = (v) => `${nameOf(v)}${labelOf(v) === null ? "" : " = " + wordOf(v, labelOf(v))}${wrong.has(v) ? ", in a conflict" : ""}`;

// ---- one variable, one factor ------------------------------------------------------------------------------------
const scores = (v) => {
  const finite = v.scores.filter((s) => typeof s === "number"), low = Math.min(...finite), high = Math.max(...finite);
  const body = v.scores.map((s, l) => make("tr", { class: l === v.label ? "chosen" : "" },
    make("td", {}, v.words ? v.words[l] : String(l)), make("td", { class: s === "-inf" ? "bad" : "" }, s === "-inf" ? "forbidden" : show(s)),
    make("td", { style: "text-align:left;width:40%" }, typeof s === "number" && high > low ? make("span", { class: "bar", style: `width:${(100 * (s - low)) / (high - low)}%` }) : null),
    v.shares ? make("td", {}, show(v.shares[l])) : null));
  return make("div", { class: "scroll", tabindex: 0, "aria-label": "scores of its labels" }, make("table", { style: "width:100%" }, make("thead", {}, make("tr", {},
    ["label", "score", "", ...(v.shares ? ["share"] : [])].map((h) => make("th", { scope: "col" }, h)))), make("tbody", {}, body)));
};
const heat = (f) => {
  const t = D.tables[f.table];
  if (!t) return make("p", { class: "note" }, "Its table is not in this page.");
  const scope = f.turned ? [...f.scope].reverse() : f.scope, known = scope.every((v) => labelOf(v) !== null);
  let column = 0;
  if (known) scope.slice(1).forEach((v, q) => { column = column * t.shape[q + 1] + labelOf(v); });
  const finite = t.rows.flat().filter((x) => typeof x === "number").map((x) => x * f.weight), low = Math.min(...finite), high = Math.max(...finite);
  const wide = t.shape.slice(1).reduce((a, b) => a * b, 1), cut = t.rows.length < t.shape[0] || (t.rows[0] || []).length < wide;
  const cell = (x, r, c) => {
    const at = known && r === labelOf(scope[0]) && c === column, share = high > low ? (x * f.weight - low) / (high - low) : .5;
    const never = typeof x !== "number";
    return make("td", { class: (never ? "never" : "") + (at ? " at" : ""), style: never ? null : `background:hsl(215 70% ${95 - 55 * share}%);color:${share > .6 ? "#fff" : "#111"}`,
      "aria-label": `${never ? "forbidden" : show(x * f.weight)}${at ? ", chosen" : ""}` }, never ? "\u2715" : show(Number((x * f.weight).toPrecision(3))));
  };
  const head = (t.rows[0] || []).map((_, c) => make("th", { scope: "col" }, scope.length === 2 ? wordOf(scope[1], c) : c));
  return make("div", {}, make("p", { class: "note" }, `Rows: ${nameOf(scope[0])}. Columns: ${scope.slice(1).map(nameOf).join(", ")}. Dark is good, \u2715 is forbidden${known ? ", the frame is what was chosen" : ""}.` +
    (cut ? ` The first rows and columns of ${t.shape.join(" x ")}.` : "")), make("div", { class: "scroll", tabindex: 0 }, make("table", { class: "heat" },
    make("thead", {}, make("tr", {}, make("td", {}), head)), make("tbody", {}, t.rows.map((r, k) => make("tr", {}, make("th", { scope: "row" }, wordOf(scope[0], k)), r.map((x, c) => cell(x, k, c))))))));
};
const factorText = (f) => `factor ${f.id}: ${f.scope.map(nameOf).join(", ")}${f.score === undefined ? "" : " (" + show(f.score) + ")"}${f.violated ? ", violated" : f.hard ? ", hard" : ""}`;
const factorButton = (f) => make("button", { type: "button", class: f.violated ? "bad" : f.hard ? "hard" : "", "aria-pressed": String(table === f.id), onclick: () => { table = table === f.id ? null : f.id; detail(); } }, factorText(f));
const detail = () => {
  const v = byId.get(chosen);
  if (chosen === null && table === null) return;
  const parts = [];
  if (chosen !== null) parts.push(make("h3", {}, said(chosen)));
  if (v) {
    if (v.label !== undefined && v.margin !== undefined) parts.push(make("p", {}, v.margin === null ? "How sure its label is, is not known here." : v.margin === 0 ? "Another label would score the same." :
      v.margin < 0 ? `Another label would score ${show(-v.margin)} more, all others as they are.` : `Its label scores ${show(v.margin)} above the next best one, all others as they are.`));
    parts.push(scores(v));
    if (v.card > v.scores.length) parts.push(make("p", { class: "note" }, `The first ${v.scores.length} of ${v.card} labels.`));
    parts.push(make("h3", {}, `${v.degree} factor${v.degree === 1 ? "" : "s"}`), make("div", { class: "buttons" }, v.factors.filter((f) => factors.has(f)).map((f) => factorButton(factors.get(f)))));
  } else if (chosen !== null) parts.push(make("p", { class: "note" }, "The page has details of a sample of this large model; this variable is not in it."));
  if (table !== null && factors.has(table)) {
    const f = factors.get(table);
    parts.push(make("h3", {}, `Table of ${factorText(f)}`), heat(f), make("div", { class: "buttons" }, f.scope.map((u) => make("button", { type: "button", onclick: () => choose(u) }, said(u)))));
  }
  put("what", ...parts);
};
const choose = (v, focus) => {
  chosen = v; table = null;
  history.replaceState(null, "", "#v" + v);
  detail(); list(); drawPixels();
  document.querySelectorAll(".node").forEach((g) => g.classList.toggle("now", Number(g.dataset.variable) === v));
  if (focus) $("detail").focus({ preventScroll: true });
  if (focus && innerWidth < 760) $("detail").scrollIntoView();
};

// ---- the list -----------------------------------------------------------------------------------------------------
const MOST = 200;
const list = () => {
  const text = $("search").value.trim().toLowerCase(), order = $("order").value;
  let found = D.variables.map((v) => v.id);
  if (text) {
    const all = D.names ? D.names.map((_, v) => v) : found;
    found = all.filter((v) => nameOf(v).toLowerCase().includes(text) || String(v) === text);
    const number = /^\d+$/.test(text) ? Number(text) : -1;
    if (number >= 0 && number < n && !found.includes(number)) found.unshift(number);
    found.sort((a, b) => (nameOf(b).toLowerCase() === text) - (nameOf(a).toLowerCase() === text));
  }
  const key = (v) => { const w = byId.get(v); return !w ? Infinity : order === "degree" ? -w.degree : typeof w.margin === "number" ? w.margin : Infinity; };
  if (order !== "id") found = [...found].sort((a, b) => { const x = key(a), y = key(b); return x < y ? -1 : x > y ? 1 : a - b; });
  put("found", `${found.length} variable${found.length === 1 ? "" : "s"}${found.length > MOST ? `, the first ${MOST} are listed` : ""}${!text && D.variables.length < n ? `; a sample of ${n}, search finds the others` : ""}`);
  put("list", found.slice(0, MOST).map((v) => make("li", {}, make("button", { type: "button", "data-variable": v, "aria-current": String(v === chosen), class: wrong.has(v) ? "bad" : "", onclick: () => choose(v, true) },
    make("span", {}, said(v)), make("span", { class: "note", style: "margin:0" }, byId.get(v) ? (order === "margin" && typeof byId.get(v).margin === "number" ? "by " + show(byId.get(v).margin) : `${byId.get(v).degree} factor${byId.get(v).degree === 1 ? "" : "s"}`) : "")))));
};
$("search").addEventListener("input", () => { sessionStorage.setItem("fginfer", $("search").value); list(); });
$("order").addEventListener("change", list);
$("form").addEventListener("submit", (e) => { e.preventDefault(); const first = $("list").querySelector("button"); if (first) choose(Number(first.dataset.variable), true); });
$("list").addEventListener("keydown", (e) => {
  const item = document.activeElement.closest("li"), other = item && (e.key === "ArrowDown" ? item.nextElementSibling : e.key === "ArrowUp" ? item.previousElementSibling : null);
  if (other) { e.preventDefault(); other.firstElementChild.focus(); }
});

// ---- the drawing ---------------------------------------------------------------------------------------------------
const drawGraph = () => {
  const g = D.drawing, W = innerWidth < 760 ? 420 : 1000, H = g.nodes.length < 40 || W < 1000 ? 420 : 620, X = (x) => 30 + x * (W - 60), Y = (y) => 26 + y * (H - 52), at = new Map(g.nodes.map((p) => [p[0], p]));
  const lines = g.links.map(([a, b, f]) => { const k = factors.get(f) || {}; return make("line", { class: "link" + (k.hard ? " hard" : "") + (k.violated ? " wrong" : ""), x1: X(at.get(a)[1]), y1: Y(at.get(a)[2]), x2: X(at.get(b)[1]), y2: Y(at.get(b)[2]) }); });
  const hub = (x, y, scope, kind, k) => [...scope.filter((v) => at.has(v)).map((v) => make("line", { class: "link" + kind, x1: X(x), y1: Y(y), x2: X(at.get(v)[1]), y2: Y(at.get(v)[2]) })),
    make("rect", { x: X(x) - 4, y: Y(y) - 4, width: 8, height: 8, fill: "currentColor" }, make("title", {}, k))];
  const hubs = g.hubs.flatMap(([f, x, y, scope]) => { const k = factors.get(f) || {}; return hub(x, y, scope, (k.hard ? " hard" : "") + (k.violated ? " wrong" : ""), "factor " + f); });
  const rules = g.rules.flatMap(([k, x, y]) => hub(x, y, D.rules[k] ? D.rules[k][1] : [], D.rules[k] && D.rules[k][3] === "-inf" ? " wrong" : " hard", D.rules[k] ? D.rules[k][0] : "constraint"));
  const many = g.nodes.length > 60, size = many ? (W < 1000 ? 4 : 6) : 11;
  const nodes = g.nodes.map(([v, x, y]) => {
    const act = () => choose(v, true);
    return make("g", { class: "node" + (wrong.has(v) ? " wrong" : ""), tabindex: many ? -1 : 0, role: "button", "data-variable": v, "aria-label": said(v), onclick: act, onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); act(); } } },
      make("title", {}, said(v)), make("circle", { cx: X(x), cy: Y(y), r: size, fill: hue(labelOf(v)) }), many ? null : make("text", { x: X(x), y: Y(y) - size - 4, "text-anchor": "middle" }, nameOf(v).slice(0, 16)));
  });
  put("graph", make("svg", { viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": "drawing of the graph; every node is in the list of variables, too" }, lines, hubs, rules, nodes));
  put("graph-note", `${g.all ? "All variables" : `The ${g.nodes.length} variables around the one with most factors`}; colours are labels, squares are factors over three or more variables and constraints, dashed lines forbid something, red ones are violated.`);
  const most = Math.max(1, ...D.degrees.map((d) => d[1]));
  put("shape", make("div", { class: "pair" },
    make("div", {}, make("h3", {}, `${D.components.count} component${D.components.count === 1 ? "" : "s"}`), make("p", { class: "note" }, `Variables of the largest: ${D.components.largest.join(", ")}`)),
    make("div", {}, make("h3", {}, "Factors of a variable"), rows(["from", "variables", ""], D.degrees.map(([d, c]) => [d, c, make("span", { class: "bar", style: `width:${Math.max(c ? 1 : 0, (120 * c) / most)}px` })])))));
};

// ---- the image -----------------------------------------------------------------------------------------------------
let place = 0;
const drawPixels = () => {
  if (!D.grid || !D.labels || D.labels.length < n) return;
  const [h, w] = D.grid, canvas = $("pixels"), scale = Math.max(1, Math.floor(480 / Math.max(h, w)));
  canvas.width = w * scale; canvas.height = h * scale;
  const c = canvas.getContext("2d");
  for (let v = 0; v < n; v++) { c.fillStyle = hue(D.labels[v]); c.fillRect((v % w) * scale, Math.floor(v / w) * scale, scale, scale); }
  const frame = (v, colour) => { c.strokeStyle = colour; c.lineWidth = Math.max(1, scale / 6); c.strokeRect((v % w) * scale + .5, Math.floor(v / w) * scale + .5, scale - 1, scale - 1); };
  wrong.forEach((v) => frame(v, "#f00"));
  if (chosen !== null) { place = chosen; frame(chosen, "#000"); }
};
const image = () => {
  if (!D.grid || !D.labels || D.labels.length < n) return;
  const [h, w] = D.grid, canvas = $("pixels");
  $("image").hidden = false;
  put("image-note", `The graph is a grid of ${h} x ${w}; colours are labels.`);
  const tell = () => put("pixel", `row ${Math.floor(place / w)}, column ${place % w}: ${said(place)}`);
  canvas.addEventListener("click", (e) => {
    const box = canvas.getBoundingClientRect(), fit = Math.min(box.width / w, box.height / h);
    const x = Math.floor((e.clientX - box.left - (box.width - fit * w) / 2) / fit), y = Math.floor((e.clientY - box.top - (box.height - fit * h) / 2) / fit);
    if (x >= 0 && y >= 0 && x < w && y < h) { choose(y * w + x); tell(); }
  });
  canvas.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: w, ArrowUp: -w }[e.key];
    if (step && place + step >= 0 && place + step < n) { e.preventDefault(); place += step; choose(place); tell(); }
    if (e.key === "Enter") choose(place, true);
  });
  drawPixels();
};

// ---- conflicts, constraints, the run -------------------------------------------------------------------------------
const conflicts = () => {
  const c = D.conflicts;
  if (!c.count && !c.labels.length) return;
  $("conflicts").hidden = false;
  put("conflict-list", make("p", { class: "bad" }, `${c.count} factor${c.count === 1 ? "" : "s"} and ${c.labels.length} label${c.labels.length === 1 ? "" : "s"} that this labeling uses are forbidden.`),
    make("div", { class: "buttons" }, c.factors.filter((f) => factors.has(f)).map((f) => make("button", { type: "button", class: "bad", onclick: () => { choose(factors.get(f).scope[0], true); table = f; detail(); } }, factorText(factors.get(f)))),
      c.labels.map((v) => make("button", { type: "button", class: "bad", onclick: () => choose(v, true) }, said(v)))));
};
const constraints = () => {
  if (!D.rules.length) return;
  $("rules").hidden = false;
  put("rule-list", rows(["constraint", "variables", "score"], D.rules.map(([kind, scope, size, score]) => [kind.replace(/_/g, " "),
    make("span", {}, scope.slice(0, 12).map(nameOf).join(", ") + (size > 12 ? `, ... (${size})` : "")), make("span", { class: score === "-inf" ? "bad" : "" }, score === "-inf" ? "violated" : show(score))])));
};
const chart = (points) => {
  const W = 640, H = 240, left = 70, bottom = 28, values = points.flatMap((p) => [p[1], p[2]]).filter((x) => x !== null), sorted = [...values].sort((a, b) => a - b);
  if (!values.length) return null;
  const last = points[points.length - 1][0] || 1e-9, low = sorted[Math.floor(sorted.length * .03)], high = sorted[Math.ceil(sorted.length * .97) - 1], span = high - low || Math.abs(high) || 1;
  const X = (t) => left + ((W - left - 10) * t) / last, Y = (y) => 10 + (H - bottom - 20) * (1 - (Math.min(Math.max(y, low), high) - low) / span);
  const line = (k, name) => { const out = []; let before = null; points.forEach((p) => { if (p[k] === null) return; if (before !== null) out.push(`${X(p[0])},${Y(before)}`); out.push(`${X(p[0])},${Y(p[k])}`); before = p[k]; }); if (before !== null) out.push(`${X(last)},${Y(before)}`); return make("polyline", { class: name, points: out.join(" ") }); };
  const tick = (y) => make("g", {}, make("line", { class: "axis", x1: left, x2: W - 10, y1: Y(y), y2: Y(y) }), make("text", { x: left - 6, y: Y(y) + 4, "text-anchor": "end" }, show(y)));
  return make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `score and bound over ${show(last)} seconds` }, high > low ? [tick(low), tick((low + high) / 2), tick(high)] : tick(low),
    line(1, "score"), line(2, "bound"), make("text", { x: left, y: H - 8 }, "0 s"), make("text", { x: W - 10, y: H - 8, "text-anchor": "end" }, `${show(last)} s`), make("text", { x: (left + W) / 2, y: H - 8, "text-anchor": "middle" }, "score: full line, bound: dashed"));
};
const run = () => {
  const r = D.run;
  if (!r) return;
  $("run").hidden = false;
  const members = r.members.length ? [make("h3", {}, "Who did what"), make("div", { class: "scroll", tabindex: 0 }, rows(["member", "work", "seconds", "iterations", "nodes", "sweeps", "labelings", "bounds"], r.members))] : [];
  const presolve = r.presolve.length ? [make("h3", {}, "What presolve did"), make("div", { class: "scroll", tabindex: 0 }, rows(null, r.presolve))] : [];
  const other = r.other.length ? [make("h3", {}, "Also counted"), make("div", { class: "scroll", tabindex: 0 }, rows(null, r.other))] : [];
  put("run-facts", make("div", { class: "pair" }, make("div", {}, rows(null, r.facts)), make("div", {}, chart(r.trace))), ...members, make("div", { class: "pair" }, make("div", {}, presolve), make("div", {}, other)));
};
put("summary", [...Object.entries(D.size), ...(D.run ? [["status", D.run.status.replace(/_/g, " ")]] : [])].map(([k, v]) => `${k}: ${v}`).join("; "));
$("search").value = sessionStorage.getItem("fginfer") || "";
drawGraph(); image(); conflicts(); constraints(); run(); list();
const from = /^#v(\d+)$/.exec(location.hash);
if (from && Number(from[1]) < n) choose(Number(from[1]));
if (document.body.dataset.reload === "1") setTimeout(() => location.reload(), 1000);
})();
