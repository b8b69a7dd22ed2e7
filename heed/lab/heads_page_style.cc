#include "heed/lab/heads_page.h"

namespace heed::lab {

const char* const kHeadsStyle = R"(
:root { --c8: #7a4a1e; --c9: #0f8bb3; --c10: #5c8a1e; --c11: #d14f86; --query: #cfd3d0; --cells: #ebecea; --field: #f8f8f7; }
@media (prefers-color-scheme: dark) {
  :root { --c8: #d09a6a; --c9: #5cc6ec; --c10: #a8d46a; --c11: #ff9cc4; --query: #454c54; --cells: #262a30; --field: #17191d; } }
.h0 { color: var(--c0); } .h1 { color: var(--c1); } .h2 { color: var(--c2); } .h3 { color: var(--c3); } .h4 { color: var(--c4); }
.h5 { color: var(--c5); } .h6 { color: var(--c6); } .h7 { color: var(--c7); } .h8 { color: var(--c8); } .h9 { color: var(--c9); }
.h10 { color: var(--c10); } .h11 { color: var(--c11); }
.tile dd { font-variant-numeric: tabular-nums; }
#film { margin-top: 1.6rem; }
.player { position: sticky; top: .5rem; z-index: 3; box-shadow: 0 .3rem 1.4rem rgb(0 0 0 / .06); padding: .7rem 1.1rem .6rem; }
.player .slider { grid-template-columns: auto minmax(0, 1fr) minmax(9.5rem, auto); margin: 0 0 .45rem; align-items: end; }
.player .slider > button { width: 2.5rem; height: 2.5rem; font-size: 1rem; color: #fff; background: var(--c0); border-color: transparent; }
@media (prefers-color-scheme: dark) { .player .slider > button { color: #10131a; } }
.player output { text-align: right; line-height: 1.3; } .player output b { display: block; font-size: 1.15rem; letter-spacing: -.01em; }
.strip { position: relative; height: 2.6rem; margin: 0 8px; } .strip svg { position: absolute; width: 100%; height: 100%; overflow: visible; }
.strip path { fill: none; vector-effect: non-scaling-stroke; stroke-width: 2px; stroke-linejoin: round; stroke-linecap: round; }
.strip .all { stroke: var(--edge); } .strip .done { stroke: var(--c0); }
.strip i { position: absolute; width: .6rem; height: .6rem; margin: -.3rem 0 0 -.3rem; border-radius: 50%; background: var(--c0); }
.shown { display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; align-items: center; font-size: .8rem; color: var(--faint); }
.choices { margin-left: auto; display: flex; flex-wrap: wrap; gap: .25rem; }
.key .ring, .key .full { width: .6rem; height: .6rem; border-radius: 50%; } .key .ring { background: none; border: 2px solid currentColor; }
.key .asking { width: .7rem; height: .7rem; background: var(--query); }
.panels { display: grid; grid-template-columns: repeat(var(--across), minmax(0, 1fr)); gap: 1rem; margin: 0 auto 1rem; max-width: calc(var(--across) * 27rem); }
.panels .panel { margin: 0; padding: .8rem .9rem .9rem; }
.panel figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0 1rem; margin: 0 0 .5rem; min-height: 1.5rem; }
.panel .note { font-size: .8rem; font-variant-numeric: tabular-nums; }
.panel svg { display: block; width: 100%; aspect-ratio: 1; border-radius: .4rem; background: var(--field); touch-action: pan-y; }
.panel .cells { stroke: var(--cells); fill: none; vector-effect: non-scaling-stroke; } .panel .query { fill: var(--query); }
.head > * { vector-effect: non-scaling-stroke; } .head { transition: opacity .15s; cursor: pointer; }
.half { fill: currentColor; fill-opacity: .14; stroke: currentColor; stroke-width: 1.4px; }
.most { fill: none; stroke: currentColor; stroke-width: 1px; stroke-opacity: .4; }
.trail { fill: none; stroke: currentColor; stroke-width: 2px; stroke-linejoin: round; stroke-linecap: round; stroke-opacity: .85; }
.begin { fill: var(--field); stroke: currentColor; stroke-width: 1.6px; } .now { fill: currentColor; stroke: var(--field); stroke-width: 1px; }
.head.alarm .now { stroke: var(--fails); stroke-width: 2.5px; }
.lit .head { opacity: .13; } .lit .head.chosen { opacity: 1; }
.no-trail .trail, .no-trail .begin, .no-half .half, .no-most .most { display: none; }
.curves { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 1rem; } .curves .plot { height: 11rem; cursor: pointer; }
.moment { position: absolute; top: 0; bottom: 0; width: 0; border-left: 2px solid var(--c0); opacity: .45; pointer-events: none; }
.said { grid-template-columns: 9rem 1fr; } .said i { font-style: normal; font-weight: 600; }
#heads table { white-space: nowrap; } #heads thead th { white-space: normal; }
@media (max-width: 60rem) { .curves { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 40rem) {
  .panels { grid-template-columns: repeat(min(2, var(--across)), minmax(0, 1fr)); gap: .6rem; } .panels .panel { padding: .55rem .6rem .6rem; }
  .panel figcaption { display: block; margin-bottom: .3rem; } .panel .note { display: block; font-size: .74rem; min-height: 1.2rem; }
  .player { padding: .6rem .7rem .5rem; } .player .slider { grid-template-columns: auto minmax(0, 1fr) auto; gap: .6rem; }
  .player output { font-size: .74rem; } .player output b { font-size: .95rem; } .choices { margin-left: 0; } .choices button { margin: 0; }
  .said { grid-template-columns: 1fr; } #heads table { font-size: .76rem; }
}
)";

const char* const kHeadsScript = R"(
(() => {
  const data = JSON.parse(document.getElementById('data').textContent), frames = data.frames, reach = data.reach, end = frames.length - 1;
  const film = document.getElementById('film'), range = film.querySelector('input'), button = film.querySelector('.slider > button');
  const output = film.querySelector('output'), strip = film.querySelector('.strip');
  const half = Math.sqrt(Math.log(2)), most = Math.sqrt(Math.log(10));
  const make = (parent, name, more) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(more)) made.setAttribute(key, value);
    return parent.appendChild(made);
  };
  const set = (element, more) => { for (const [key, value] of Object.entries(more)) element.setAttribute(key, value); };
  const between = (a, b, share) => a + (b - a) * share;

  // A head interpolated between two frames; no ellipse if one of them has none.
  const at = (time, layer, head) => {
    const i = Math.min(Math.floor(time), end), share = time - i;
    const a = frames[i].layers[layer][head], b = frames[Math.min(i + 1, end)].layers[layer][head];
    const out = { x: between(a[0], b[0], share), y: between(a[1], b[1], share) };
    if (a.length < 5 || b.length < 5) return out;
    const turn = b[4] - a[4] - Math.PI * Math.round((b[4] - a[4]) / Math.PI);
    return { ...out, longer: between(a[2], b[2], share), shorter: between(a[3], b[3], share), angle: (a[4] + turn * share) * 180 / Math.PI };
  };
  const ways = (value, more, less) => Math.abs(value).toFixed(2) + ' ' + (value < 0 ? less : more);

  const panels = [...film.querySelectorAll('.panel')].map((figure, layer) => {
    const root = figure.querySelector('svg'), size = reach / 100;
    set(root, { viewBox: [-reach, -reach, 2 * reach, 2 * reach].join(' ') });
    make(root, 'rect', { class: 'query', x: -.5, y: -.5, width: 1, height: 1 });
    let lines = '';
    for (let i = .5; i < reach; ++i) for (const side of [-i, i]) lines += `M${side} ${-reach}V${reach}M${-reach} ${side}H${reach}`;
    make(root, 'path', { class: 'cells', d: lines });
    const heads = frames[0].layers[layer].map((_, head) => {
      const group = make(root, 'g', { class: 'head h' + head % 12 });
      return { group, most: make(group, 'ellipse', { class: 'most' }), half: make(group, 'ellipse', { class: 'half' }),
        trail: make(group, 'path', { class: 'trail' }), begin: make(group, 'circle', { class: 'begin', r: 1.7 * size }),
        now: make(group, 'circle', { class: 'now', r: 2.3 * size }) };
    });
    const panel = { figure, layer, heads, note: figure.querySelector('.note'), chosen: -1 };
    const choose = head => {
      panel.chosen = head;
      root.classList.toggle('lit', head >= 0);
      heads.forEach((each, i) => each.group.classList.toggle('chosen', i === head));
      show(now);
    };
    heads.forEach((each, head) => {
      each.group.addEventListener('pointerenter', () => choose(head));
      each.group.addEventListener('click', () => choose(head));
    });
    root.addEventListener('pointerleave', () => choose(-1));
    return panel;
  });

  const values = frames.map(frame => frame.value), known = values.filter(value => value !== undefined);
  const least = Math.min(...known), span = Math.max(...known) - least || 1;
  const share = i => end ? i / end : 0, height = value => 1 - (value - least) / span;
  const path = to => values.map((value, i) => value === undefined || i > to ? '' : `${1000 * share(i)} ${100 * height(value)}`).filter(Boolean).join('L');
  const curve = make(strip, 'svg', { viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': data.figure });
  const all = make(curve, 'path', { class: 'all', d: 'M' + (path(end) || '0 100') + 'h0' }), done = make(curve, 'path', { class: 'done' });
  const dot = strip.appendChild(document.createElement('i'));
  const moments = [...film.querySelectorAll('.curves .plot')].map(plot => {
    const line = plot.appendChild(document.createElement('div'));
    line.className = 'moment';
    plot.addEventListener('click', event => {
      const box = plot.getBoundingClientRect(), epoch = (event.clientX - box.left) / box.width * frames[end].epoch;
      stop();
      show(frames.reduce((best, frame, i) => Math.abs(frame.epoch - epoch) < Math.abs(frames[best].epoch - epoch) ? i : best, 0));
    });
    return line;
  });

  let now = end, playing = 0;
  const show = time => {
    now = time;
    const i = Math.min(Math.round(time), end), frame = frames[i], before = Math.floor(time);
    range.value = i;
    for (const panel of panels) {
      let distance = 0;
      panel.heads.forEach((each, head) => {
        const place = at(time, panel.layer, head), round = place.longer !== undefined;
        distance += Math.hypot(place.x, place.y) / panel.heads.length;
        for (const [name, factor] of [['half', half], ['most', most]])
          set(each[name], { cx: place.x, cy: place.y, rx: round ? factor * place.longer : 0, ry: round ? factor * place.shorter : 0,
            transform: round ? `rotate(${place.angle} ${place.x} ${place.y})` : '' });
        let way = '';
        for (let k = 0; k <= before; ++k) way += (k ? 'L' : 'M') + frames[k].layers[panel.layer][head].slice(0, 2).join(' ');
        set(each.trail, { d: way + `L${place.x} ${place.y}` });
        set(each.begin, { cx: frames[0].layers[panel.layer][head][0], cy: frames[0].layers[panel.layer][head][1] });
        set(each.now, { cx: place.x, cy: place.y });
        each.group.classList.toggle('alarm', frame.alarms.some(alarm => alarm[0] === panel.layer && alarm[1] === head));
        if (panel.chosen === head) panel.note.textContent = `head ${head}: ${ways(place.y, 'down', 'up')}, ${ways(place.x, 'right', 'left')}`;
      });
      if (panel.chosen < 0) panel.note.textContent = distance.toFixed(2) + ' from the query';
    }
    const value = frame.value ?? known[0], d = path(i);
    set(done, { d: d ? 'M' + d + 'h0' : '' });
    dot.style.left = 100 * share(time) + '%';
    dot.style.top = 100 * (value === undefined ? 1 : height(value)) + '%';
    dot.hidden = frame.value === undefined;
    for (const line of moments) line.style.left = 100 * between(frames[Math.min(before, end)].epoch, frames[Math.min(before + 1, end)].epoch, time - before) / (frames[end].epoch || 1) + '%';
    const text = document.createElement('b');
    text.textContent = frame.epoch ? 'epoch ' + frame.epoch : 'start';
    output.replaceChildren(text, frame.text ? data.figure + ' ' + frame.text : 'before the first step');
  };
  const stop = () => {
    clearInterval(playing);
    playing = 0;
    button.textContent = '▶';
    button.setAttribute('aria-label', 'play');
  };
  const play = () => {
    if (now >= end) show(0);
    button.textContent = '❚❚';
    button.setAttribute('aria-label', 'pause');
    const seconds = Math.min(14, Math.max(4, .5 * end)), step = .025 * end / seconds;
    playing = setInterval(() => {
      show(Math.min(end, now + step));
      if (now >= end) stop();
    }, 25);
  };
  button.addEventListener('click', () => playing ? stop() : play());
  range.addEventListener('input', () => { stop(); show(+range.value); });
  for (const choice of film.querySelectorAll('[data-part]')) choice.addEventListener('click', () => {
    const on = choice.getAttribute('aria-pressed') !== 'true';
    choice.setAttribute('aria-pressed', on);
    film.classList.toggle('no-' + choice.dataset.part, !on);
  });
  show(end);
})();
)";

}  // namespace heed::lab
