// The first half of the script of heed inspect's page: maps, colours and canvases.
#include "heed/cli/inspect_page.h"

namespace heed::cli {

const char* const kInspectDraw = R"(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const at = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const font = '12px ui-monospace, "Cascadia Mono", Menlo, monospace';

// Weights are one byte each: 255 sqrt(weight / row maximum). The row maxima are stored separately as f32.
function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) out[i] = raw.charCodeAt(i);
  return out;
}
for (const set of data.sets) {
  set.packed = bytes(set.weights);
  set.largest = new Float32Array(bytes(set.most).buffer);
}

// Rows begin to end of a map.
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

// What is shown: a set of maps, indices of its layer and head (-1: mean over heads), and a query (-1: all).
const state = { set: 0, layer: data.sets[0].layers.length - 1, head: -1, query: data.query, pinned: false };
let set, map, N, M;

function heat(share) {
  const stops = data.heat, place = Math.min(Math.max(share, 0), 1) * (stops.length - 1), below = Math.min(Math.floor(place), stops.length - 2);
  return stops[below].map((low, i) => Math.round(low + (stops[below + 1][i] - low) * (place - below)));
}
const heats = Array.from({ length: 256 }, (_, i) => heat(i / 255));
const most = values => values.reduce((a, b) => Math.max(a, b), 1e-12);
const number = value => value >= .1 ? value.toFixed(2) : value >= .001 ? value.toFixed(3) : value.toExponential(1);

// Scales each row by its own maximum: the first rows of a causal map have few keys and large weights, and would outshine the others.
function byRows(values, columns) {
  const out = new Float32Array(values.length);
  for (let row = 0; row < values.length; row += columns) {
    const top = most(values.subarray(row, row + columns));
    for (let j = row; j < row + columns; ++j) out[j] = values[j] / top;
  }
  return out;
}
const scaled = (values, columns) => at('by-row').checked ? byRows(values, columns) : values;

// A canvas with one pixel per value, scaled to the largest.
function dots(values, width, height) {
  const canvas = document.createElement('canvas'), top = most(values), image = new ImageData(width, height);
  canvas.width = width;
  canvas.height = height;
  for (let i = 0; i < width * height; ++i) {
    image.data.set(heats[Math.round(Math.min(Math.max(values[i] / top, 0), 1) * 255)], 4 * i);
    image.data[4 * i + 3] = 255;
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
const availableWidth = id => at(id).parentElement.clientWidth;

// Truncates a label that is too long, with an ellipsis.
function cut(context, label, width) {
  if (context.measureText(label).width <= width) return label;
  const letters = [...label];
  while (letters.length > 1 && context.measureText(letters.join('') + '\u2026').width > width) letters.pop();
  return letters.join('') + '\u2026';
}
const labelWidth = (context, labels, limit) => Math.min(limit, labels.reduce((a, b) => Math.max(a, context.measureText(b).width), 0) + 12);

// Attention weights of a query: a row of the map, or the mean of all rows.
function seen(weights, query) {
  if (query >= 0) return weights.subarray(query * M, (query + 1) * M);
  const out = new Float32Array(M);
  weights.forEach((weight, i) => { out[i % M] += weight / N; });
  return out;
}

const photo = new Image();
let shown = { width: 1, height: 1 };
function drawInput() {
  const grid = data.grid, width = Math.min(availableWidth('image'), 640), height = Math.min(width * grid.height / grid.width, 720);
  shown = { width: height * grid.width / grid.height, height };
  const context = sized(at('image'), shown.width, shown.height), weights = seen(map, state.query).subarray(grid.first);
  const cell = [shown.width / grid.columns, shown.height / grid.rows], patch = state.query - grid.first;
  context.imageSmoothingEnabled = grid.width >= shown.width;
  context.drawImage(photo, 0, 0, shown.width, shown.height);
  context.globalAlpha = at('over').value / 100;
  paint(context, weights, grid.columns, grid.rows, 0, 0, shown.width, shown.height);
  context.globalAlpha = 1;
  at('image-most').textContent = number(most(weights));
  if (patch < 0) return;
  context.lineWidth = 2;
  context.strokeStyle = '#fff';
  context.strokeRect(patch % grid.columns * cell[0], Math.floor(patch / grid.columns) * cell[1], cell[0], cell[1]);
}

const step = 20;  // pixels between rows of the lines
let left = 0, between = 0;
function drawLines() {
  const canvas = at('lines'), full = Math.min(availableWidth('lines'), 720), measure = canvas.getContext('2d');
  measure.font = font;
  left = labelWidth(measure, set.rows, .33 * full);
  const right = labelWidth(measure, set.columns, .33 * full);
  between = Math.max(full - left - right, 60);
  const context = sized(canvas, left + between + right, step * Math.max(N, M));
  context.strokeStyle = css('--c3');
  for (let i = 0; i < N; ++i) {
    if (state.query >= 0 && state.query !== i) continue;
    for (let j = 0; j < M; ++j) {
      const weight = map[i * M + j], y = (i + .5) * step, to = (j + .5) * step;
      if (weight < .004) continue;
      context.globalAlpha = Math.min(1, weight);
      context.lineWidth = 1 + 2 * weight;
      context.beginPath();
      context.moveTo(left, y);
      context.bezierCurveTo(left + between / 3, y, left + 2 * between / 3, to, left + between, to);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  const words = (labels, x, align, width, strong) => labels.forEach((label, i) => {
    context.textAlign = align;
    context.fillStyle = strong(i) ? css('--ink') : css('--faint');
    context.fillText(cut(context, label, width - 10), x, (i + .5) * step);
  });
  const row = state.query >= 0 ? seen(map, state.query) : null, top = row ? most(row) : 1;
  words(set.rows, left - 6, 'right', left, i => state.query < 0 || i === state.query);
  words(set.columns, left + between + 6, 'left', right, j => !row || row[j] > .3 * top);
}

let cell = 1, margin = [0, 0];
function drawMatrix() {
  const canvas = at('matrix'), measure = canvas.getContext('2d'), full = Math.min(availableWidth('matrix'), 900);
  measure.font = font;
  margin = [labelWidth(measure, set.rows, .28 * full), labelWidth(measure, set.columns, 150)];
  cell = Math.min(26, (full - margin[0]) / M);
  if (cell < 11) [margin, cell] = [[0, 0], Math.min(11, full / M)];
  const context = sized(canvas, margin[0] + M * cell, margin[1] + N * cell);
  paint(context, scaled(map, M), M, N, margin[0], margin[1], M * cell, N * cell);
  at('matrix-most').textContent = at('by-row').checked ? 'largest of its row' : number(most(map));
  context.fillStyle = css('--ink');
  if (margin[0]) {
    context.textAlign = 'right';
    set.rows.forEach((label, i) => context.fillText(cut(context, label, margin[0] - 8), margin[0] - 5, margin[1] + (i + .5) * cell));
    context.textAlign = 'left';
    set.columns.forEach((label, j) => {
      context.save();
      context.translate(margin[0] + (j + .5) * cell, margin[1] - 5);
      context.rotate(-Math.PI / 2);
      context.fillText(cut(context, label, margin[1] - 8), 0, 0);
      context.restore();
    });
  }
  if (state.query < 0) return;
  context.lineWidth = 1.5;
  context.strokeStyle = '#fff';
  context.strokeRect(margin[0] + .5, margin[1] + state.query * cell + .5, M * cell - 1, Math.max(cell - 1, 2));
}

const edge = 26, gap = 3;
let thumb = 52;
function drawOverview() {
  thumb = Math.max(14, Math.min(96, (availableWidth('overview') - edge) / set.heads.length - gap));
  const context = sized(at('overview'), edge + (thumb + gap) * set.heads.length, edge + (thumb + gap) * set.layers.length);
  context.fillStyle = css('--faint');
  context.textAlign = 'center';
  set.heads.forEach((head, h) => context.fillText(head, edge + (thumb + gap) * (h + .5), edge / 2));
  set.layers.forEach((layer, l) => context.fillText(layer, edge / 2, edge + (thumb + gap) * (l + .5)));
  set.layers.forEach((_, l) => set.heads.forEach((__, h) => {
    const x = edge + (thumb + gap) * h, y = edge + (thumb + gap) * l, grid = data.grid, query = state.query;
    const row = !grid ? null : query < 0 ? seen(oneMap(set, l, h), -1) : oneMap(set, l, h, query, query + 1);
    if (grid) paint(context, row.subarray(grid.first), grid.columns, grid.rows, x, y, thumb, thumb);
    else paint(context, scaled(oneMap(set, l, h), M), M, N, x, y, thumb, thumb);
    if (l !== state.layer || (h !== state.head && state.head >= 0)) return;
    context.lineWidth = 2;
    context.strokeStyle = css('--c0');
    context.strokeRect(x, y, thumb, thumb);
  }));
}
)";

}  // namespace heed::cli
