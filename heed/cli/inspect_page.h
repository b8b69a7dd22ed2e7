// The page of heed inspect: its style and its script. They stand in every page that is written, which needs nothing else.
#pragma once

namespace heed::cli {

inline constexpr const char* kPageStyle = R"(
:root { color-scheme: light dark; --ink: #222; --faint: #666; --paper: #fff; --panel: #f4f4f6; --line: #9f2479; --edge: #ccc; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6ea; --faint: #9a9aa2; --paper: #16171b; --panel: #22242a; --line: #fb7a60; --edge: #444; }
}
body { margin: 0 auto; max-width: 90rem; padding: 1rem; background: var(--paper); color: var(--ink); font: 15px/1.4 system-ui, sans-serif; }
h1 { font-size: 1.2rem; margin: 0; }
p { margin: .3rem 0; }
.faint { color: var(--faint); }
.bar { display: flex; flex-wrap: wrap; gap: .8rem; align-items: center; margin: .8rem 0; }
.bar select, .bar button { font: inherit; padding: .15rem .4rem; }
.panels { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
.panel { background: var(--panel); border-radius: .5rem; padding: .7rem; max-width: 100%; box-sizing: border-box; overflow: auto; max-height: 85vh; }
.panel h2 { font-size: .9rem; margin: 0 0 .4rem; }
canvas { display: block; cursor: crosshair; }
table { border-collapse: collapse; font-size: .85rem; }
td { padding: .1rem .5rem .1rem 0; white-space: pre; }
td.weight { font-variant-numeric: tabular-nums; text-align: right; }
td div { height: .6rem; background: var(--line); min-width: 1px; }
)";

inline constexpr const char* kPageScript = R"(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const at = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const font = '12px ui-monospace, monospace';

// Weights are one byte each: 255 times the root of their share of the largest in their row, which stands beside them.
function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) out[i] = raw.charCodeAt(i);
  return out;
}
for (const set of data.sets) {
  set.packed = bytes(set.weights);
  set.largest = new Float32Array(bytes(set.most).buffer);
}
const shown = text => text.replace(/[\u0000-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)));

// Rows of a map, all of them unless told otherwise.
function oneMap(set, layer, head, begin = 0, end = set.rows.length) {
  const M = set.columns.length, out = new Float32Array((end - begin) * M), first = (layer * set.heads.length + head) * set.rows.length;
  for (let i = begin; i < end; ++i) {
    const scale = set.largest[first + i] / 65025, row = (first + i) * M, to = (i - begin) * M;
    for (let j = 0; j < M; ++j) out[to + j] = scale * set.packed[row + j] * set.packed[row + j];
  }
  return out;
}
function meanMap(set, layer) {
  const sum = oneMap(set, layer, 0);
  for (let head = 1; head < set.heads.length; ++head) oneMap(set, layer, head).forEach((weight, i) => { sum[i] += weight; });
  return sum.map(weight => weight / set.heads.length);
}

// What is looked at: a set of maps, a place in its layers and heads (-1: their mean), and a query (-1: all).
const state = { set: 0, layer: 0, head: -1, query: data.query, pinned: false };
state.layer = data.sets[0].layers.length - 1;
let set, map, N, M;

function heat(share) {
  const stops = data.heat, place = Math.min(Math.max(share, 0), 1) * (stops.length - 1), below = Math.min(Math.floor(place), stops.length - 2);
  return stops[below].map((low, i) => Math.round(low + (stops[below + 1][i] - low) * (place - below)));
}
const heats = Array.from({ length: 256 }, (_, i) => heat(i / 255));
const colour = share => heats[Math.round(Math.min(Math.max(share, 0), 1) * 255)];
const most = values => values.reduce((a, b) => Math.max(a, b), 1e-12);

// A picture of values, one pixel each.
function dots(values, width, height) {
  const canvas = document.createElement('canvas'), top = most(values);
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  for (let i = 0; i < width * height; ++i) {
    const [red, green, blue] = colour(values[i] / top), to = 4 * i;
    image.data[to] = red;
    image.data[to + 1] = green;
    image.data[to + 2] = blue;
    image.data[to + 3] = 255;
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
  return canvas;
}
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, context = canvas.getContext('2d');
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(height * ratio);
  canvas.style.width = width + 'px';
  canvas.style.height = height + 'px';
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = font;
  context.textBaseline = 'middle';
  return context;
}
function paint(context, values, columns, rows, x, y, width, height) {
  context.imageSmoothingEnabled = width < columns;
  context.drawImage(dots(values, columns, rows), x, y, width, height);
}

// What a query sees: a row of the map, or the mean of all rows.
function seen(weights, query) {
  if (query >= 0) return weights.subarray(query * M, (query + 1) * M);
  const out = new Float32Array(M);
  weights.forEach((weight, i) => { out[i % M] += weight / N; });
  return out;
}

const photo = new Image();
function drawPicture() {
  const grid = data.grid, context = sized(at('picture'), grid.width, grid.height);
  const cell = [grid.width / grid.columns, grid.height / grid.rows];
  context.globalAlpha = 1;
  context.drawImage(photo, 0, 0, grid.width, grid.height);
  context.globalAlpha = data.over;
  paint(context, seen(map, state.query).subarray(grid.first), grid.columns, grid.rows, 0, 0, grid.width, grid.height);
  context.globalAlpha = 1;
  const patch = state.query - grid.first;
  if (patch < 0) return;
  context.lineWidth = 2;
  context.strokeStyle = '#fff';
  context.strokeRect(patch % grid.columns * cell[0], Math.floor(patch / grid.columns) * cell[1], cell[0], cell[1]);
}

const step = 20, wide = 160;  // of the lines: between rows, between the two columns
const textWidth = (context, labels) => Math.min(220, labels.reduce((a, b) => Math.max(a, context.measureText(shown(b)).width), 0) + 12);
const left = () => textWidth(at('lines').getContext('2d'), set.rows);
function drawLines() {
  const canvas = at('lines');
  canvas.getContext('2d').font = font;
  const from = left(), context = sized(canvas, from + wide + textWidth(canvas.getContext('2d'), set.columns), step * Math.max(N, M));
  context.strokeStyle = css('--line');
  for (let i = 0; i < N; ++i) {
    if (state.query >= 0 && state.query !== i) continue;
    for (let j = 0; j < M; ++j) {
      const weight = map[i * M + j], y = (i + .5) * step, to = (j + .5) * step;
      if (weight < .004) continue;
      context.globalAlpha = Math.min(1, weight);
      context.lineWidth = 1 + 2 * weight;
      context.beginPath();
      context.moveTo(from, y);
      context.bezierCurveTo(from + wide / 3, y, from + 2 * wide / 3, to, from + wide, to);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  const words = (labels, x, align, strong) => labels.forEach((label, i) => {
    context.textAlign = align;
    context.fillStyle = strong(i) ? css('--ink') : css('--faint');
    context.fillText(shown(label), x, (i + .5) * step);
  });
  const row = state.query >= 0 ? seen(map, state.query) : null, top = row ? most(row) : 1;
  words(set.rows, from - 6, 'right', i => state.query < 0 || i === state.query);
  words(set.columns, from + wide + 6, 'left', j => !row || row[j] > .3 * top);
}

const cellOf = () => Math.max(1, Math.min(24, Math.floor(640 / Math.max(N, M))));
let margin = [0, 0];
function drawMatrix() {
  const canvas = at('matrix'), cell = cellOf();
  canvas.getContext('2d').font = font;
  margin = cell < 11 ? [0, 0] : [textWidth(canvas.getContext('2d'), set.rows), textWidth(canvas.getContext('2d'), set.columns)];
  const context = sized(canvas, margin[0] + M * cell, margin[1] + N * cell);
  let values = map;
  if (at('by-row').checked) {
    values = new Float32Array(map.length);
    for (let i = 0; i < N; ++i) {
      const row = seen(map, i), top = most(row);
      row.forEach((weight, j) => { values[i * M + j] = weight / top; });
    }
  }
  paint(context, values, M, N, margin[0], margin[1], M * cell, N * cell);
  context.fillStyle = css('--ink');
  if (margin[0]) {
    context.textAlign = 'right';
    set.rows.forEach((label, i) => context.fillText(shown(label), margin[0] - 5, margin[1] + (i + .5) * cell));
    context.textAlign = 'left';
    set.columns.forEach((label, j) => {
      context.save();
      context.translate(margin[0] + (j + .5) * cell, margin[1] - 5);
      context.rotate(-Math.PI / 2);
      context.fillText(shown(label), 0, 0);
      context.restore();
    });
  }
  if (state.query < 0) return;
  context.lineWidth = 1;
  context.strokeStyle = '#fff';
  context.strokeRect(margin[0] + .5, margin[1] + state.query * cell + .5, M * cell - 1, cell - 1);
}

const thumb = 52, edge = 30;
function drawOverview() {
  const context = sized(at('overview'), edge + (thumb + 3) * set.heads.length, edge + (thumb + 3) * set.layers.length);
  context.fillStyle = css('--faint');
  context.textAlign = 'center';
  set.heads.forEach((head, h) => context.fillText(head, edge + (thumb + 3) * (h + .5), edge / 2));
  set.layers.forEach((layer, l) => context.fillText(layer, edge / 2, edge + (thumb + 3) * (l + .5)));
  set.layers.forEach((_, l) => set.heads.forEach((__, h) => {
    const x = edge + (thumb + 3) * h, y = edge + (thumb + 3) * l, grid = data.grid, query = state.query;
    const row = !grid ? null : query < 0 ? seen(oneMap(set, l, h), -1) : oneMap(set, l, h, query, query + 1);
    if (grid) paint(context, row.subarray(grid.first), grid.columns, grid.rows, x, y, thumb, thumb);
    else paint(context, oneMap(set, l, h), M, N, x, y, thumb, thumb);
    if (l !== state.layer || (h !== state.head && state.head >= 0)) return;
    context.lineWidth = 2;
    context.strokeStyle = css('--line');
    context.strokeRect(x, y, thumb, thumb);
  }));
}

function drawTop() {
  const row = seen(map, state.query), order = Array.from(row.keys()).sort((a, b) => row[b] - row[a]).slice(0, 10);
  at('query').textContent = state.query < 0 ? 'all queries, on average' : shown(set.rows[state.query]);
  at('top').replaceChildren(...order.map(j => {
    const line = document.createElement('tr'), bar = document.createElement('div');
    for (const text of [shown(set.columns[j]), row[j].toFixed(3), '']) line.append(Object.assign(document.createElement('td'), { textContent: text }));
    line.children[1].className = 'weight';
    bar.style.width = 120 * row[j] / most(row) + 'px';
    line.children[2].append(bar);
    return line;
  }));
}

function draw(queryAlone) {
  if (data.grid) drawPicture();
  else drawLines();
  drawMatrix();
  drawTop();
  if (!queryAlone || data.grid) drawOverview();
}

// Another map: the controls follow, then everything is drawn.
function choose() {
  const rollout = data.sets[state.set].kind === 'rollout';
  set = data.sets[state.set];
  [N, M] = [set.rows.length, set.columns.length];
  state.layer = Math.min(state.layer, set.layers.length - 1);
  state.head = Math.min(state.head, set.heads.length - 1);
  if (state.query >= N) state.query = data.query;
  map = state.head < 0 ? meanMap(set, state.layer) : oneMap(set, state.layer, state.head);
  const fill = (id, labels, chosen) => at(id).replaceChildren(...labels.map((label, i) => Object.assign(document.createElement('option'), { value: i, textContent: label, selected: i === chosen })));
  fill('set', data.sets.map(each => each.kind), state.set);
  fill('layer', rollout ? ['all'] : set.layers, state.layer);
  fill('head', rollout ? ['all'] : ['mean', ...set.heads], rollout ? 0 : state.head + 1);
  at('overview-panel').hidden = rollout;
  draw(false);
}

function point(query, pin) {
  if (query < -1 || query >= N || (state.pinned && !pin)) return;
  state.pinned = pin && !(state.pinned && query === state.query);
  state.query = query;
  draw(true);
}
function listen(id, queryAt) {
  const canvas = at(id), place = event => {
    const box = canvas.getBoundingClientRect();
    return queryAt(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener('mousemove', event => { const query = place(event); if (query !== null && query !== state.query) point(query, false); });
  canvas.addEventListener('click', event => { const query = place(event); if (query !== null) point(query, true); });
  canvas.addEventListener('mouseleave', () => { if (!state.pinned) point(data.query, false); });
}
const inside = (value, limit) => value >= 0 && value < limit ? value : null;
listen('matrix', (x, y) => inside(Math.floor((y - margin[1]) / cellOf()), N));
if (data.grid) {
  const grid = data.grid;
  listen('picture', (x, y) => {
    const column = inside(Math.floor(x / grid.width * grid.columns), grid.columns), row = inside(Math.floor(y / grid.height * grid.rows), grid.rows);
    return row === null || column === null ? null : grid.first + row * grid.columns + column;
  });
} else listen('lines', (x, y) => x < left() + wide / 2 ? inside(Math.floor(y / step), N) : null);
at('overview').addEventListener('click', event => {
  const box = at('overview').getBoundingClientRect(), h = inside(Math.floor((event.clientX - box.left - edge) / (thumb + 3)), set.heads.length);
  const l = inside(Math.floor((event.clientY - box.top - edge) / (thumb + 3)), set.layers.length);
  if (l !== null && h !== null) { Object.assign(state, { layer: l, head: h }); choose(); }
});
at('set').addEventListener('change', () => { Object.assign(state, { set: +at('set').value, head: -1 }); choose(); });
at('layer').addEventListener('change', () => { state.layer = +at('layer').value; choose(); });
at('head').addEventListener('change', () => { state.head = +at('head').value - 1; choose(); });
at('by-row').addEventListener('change', () => draw(true));
at('all').addEventListener('click', () => { state.pinned = false; point(data.query, false); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(false));
if (data.grid) {
  photo.onload = () => draw(true);
  photo.src = data.picture;
}
choose();
)";

}  // namespace heed::cli
