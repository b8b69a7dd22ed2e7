// The second half of the script of heed inspect's page: controls, mouse and keyboard.
#include "heed/cli/inspect_page.h"

namespace heed::cli {

const char* const kInspectControls = R"(
function drawTop() {
  const row = seen(map, state.query), order = Array.from(row.keys()).sort((a, b) => row[b] - row[a]).slice(0, 10);
  const name = state.query < 0 ? 'all queries, on average' : set.rows[state.query];
  at('query').textContent = name;
  at('top').replaceChildren(...order.map(j => {
    const line = document.createElement('tr'), bar = document.createElement('span'), length = document.createElement('i');
    const make = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
    line.append(make('th', set.columns[j]), Object.assign(make('td', row[j].toFixed(3)), { className: 'number' }), make('td', ''));
    line.firstChild.scope = 'row';
    bar.className = 'bar';
    length.style.width = 100 * row[j] / most(row) + '%';
    bar.append(length);
    line.lastChild.append(bar);
    return line;
  }));
  const summary = name + ' attends to ' + order.slice(0, 3).map(j => set.columns[j] + ' ' + row[j].toFixed(2)).join(', ');
  for (const id of [data.grid ? 'image' : 'lines', 'matrix']) at(id).setAttribute('aria-label', summary + '. Arrow keys choose another query.');
}

function draw(queryAlone) {
  if (data.grid) drawInput();
  else drawLines();
  drawMatrix();
  drawTop();
  if (!queryAlone || data.grid) drawOverview();
}

// Switches to the map in `state`: updates the controls and redraws everything.
function choose() {
  const rollout = data.sets[state.set].kind === 'rollout';
  if (set !== data.sets[state.set]) at('by-row').checked = data.sets[state.set].causal;
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
// steps: arrow key -> change of the query
function listen(id, queryAt, steps) {
  const canvas = at(id), place = event => {
    const box = canvas.getBoundingClientRect();
    return queryAt(event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener('mousemove', event => { const query = place(event); if (query !== null && query !== state.query) point(query, false); });
  canvas.addEventListener('click', event => { const query = place(event); if (query !== null) point(query, true); });
  canvas.addEventListener('mouseleave', () => { if (!state.pinned) point(data.query, false); });
  canvas.addEventListener('keydown', event => {
    if (event.key === 'Escape') { state.pinned = false; point(data.query, false); }
    if (!(event.key in steps)) return;
    event.preventDefault();
    const query = Math.min(Math.max(state.query + steps[event.key], 0), N - 1);
    state.pinned = false;
    point(query, true);
  });
}
const inside = (value, limit) => value >= 0 && value < limit ? value : null;
const alongRows = { ArrowUp: -1, ArrowDown: 1 };
listen('matrix', (x, y) => inside(Math.floor((y - margin[1]) / cell), N), alongRows);
if (data.grid) {
  const grid = data.grid;
  listen('image', (x, y) => {
    const column = inside(Math.floor(x / shown.width * grid.columns), grid.columns), row = inside(Math.floor(y / shown.height * grid.rows), grid.rows);
    return row === null || column === null ? null : grid.first + row * grid.columns + column;
  }, { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns });
} else listen('lines', (x, y) => x < left + between / 2 ? inside(Math.floor(y / step), N) : null, alongRows);
at('overview').addEventListener('click', event => {
  const box = at('overview').getBoundingClientRect(), h = inside(Math.floor((event.clientX - box.left - edge) / (thumb + gap)), set.heads.length);
  const l = inside(Math.floor((event.clientY - box.top - edge) / (thumb + gap)), set.layers.length);
  if (l !== null && h !== null) { Object.assign(state, { layer: l, head: h }); choose(); }
});
at('set').addEventListener('change', () => { Object.assign(state, { set: +at('set').value, head: -1 }); choose(); });
at('layer').addEventListener('change', () => { state.layer = +at('layer').value; choose(); });
at('head').addEventListener('change', () => { state.head = +at('head').value - 1; choose(); });
at('by-row').addEventListener('change', () => draw(false));
at('all').addEventListener('click', () => { state.pinned = false; point(data.query, false); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw(false));
if (data.grid) {
  at('over').addEventListener('input', drawInput);
  photo.onload = () => draw(true);
  photo.src = data.image;
}
choose();
let width = document.body.clientWidth;
new ResizeObserver(() => {
  if (document.body.clientWidth === width) return;
  width = document.body.clientWidth;
  draw(false);
}).observe(document.body);
)";

}  // namespace heed::cli
