// CSS and JavaScript of the report. Colours for light and dark mode.
#include "heed/train/report_draw.h"

namespace heed {

const char* const kReportStyle = R"(
:root { color-scheme: light dark; --ink: #1c2024; --faint: #6a7178; --paper: #fafaf9; --card: #fff; --edge: #e4e5e3; --grid: #ecedeb;
  --ground: #f1f2f0; --hit: #3566c4; --miss: #d4572a; --heat: 201 50 104;
  --c0: #3566c4; --c1: #d4672a; --c2: #178a6c; --c3: #b03a8e; --c4: #8f6f00; --c5: #6d53c8; --c6: #c2384a; --c7: #4b7683; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e8ea; --faint: #969da5; --paper: #131518; --card: #1b1e22; --edge: #2b3036; --grid: #262a30; --ground: #22262b;
    --hit: #7da6ff; --miss: #ff8f61; --heat: 244 98 139;
    --c0: #7da6ff; --c1: #ff9d66; --c2: #4fcba6; --c3: #ec82c9; --c4: #d8b341; --c5: #ab97ff; --c6: #ff828f; --c7: #90bfcc; }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 72rem; padding: 2.2rem 1.4rem 3rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; line-height: 1.15; margin: 0; letter-spacing: -.015em; font-weight: 650; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 1rem; letter-spacing: -.01em; font-weight: 620; }
h3 { font-size: .92rem; margin: 0; font-weight: 600; }
section > h3, details > h3 { margin: 1.4rem 0 .7rem; }
p { margin: .3rem 0; }
.faint, .note { color: var(--faint); font-weight: 400; }
.kicker { color: var(--faint); margin: 0 0 .1rem; }
.about { color: var(--faint); margin: .5rem 0 0; }
.about > span { display: inline-block; margin-right: 1.1rem; }
.about b { color: var(--ink); font-weight: 550; }
nav { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: 1.6rem -1.4rem 0; padding: .6rem 1.4rem;
  background: var(--paper); border-bottom: 1px solid var(--edge); font-size: .88rem; }
nav a { color: var(--faint); text-decoration: none; }
nav a:hover, nav a:focus-visible { color: var(--ink); text-decoration: underline; }
section { scroll-margin-top: 3rem; }
.card { background: var(--card); border: 1px solid var(--edge); border-radius: .7rem; padding: 1rem 1.1rem; margin: 0 0 1rem; min-width: 0; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 0 1rem; align-items: start; }
.pair > div { min-width: 0; }
.scroll { overflow-x: auto; }
.tall { max-height: 38rem; overflow: auto; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.4rem, 1fr)); gap: .7rem; margin: 1.6rem 0 0; }
.tile { background: var(--card); border: 1px solid var(--edge); border-radius: .7rem; padding: .8rem 1rem .7rem; }
.tile dt { min-height: 2.7em; line-height: 1.3; color: var(--faint); font-size: .82rem; }
.tile dd { margin: .05rem 0; font-size: 1.45rem; line-height: 1.25; font-weight: 600; letter-spacing: -.01em; font-variant-numeric: tabular-nums; }
.tile:first-child dd:not(.note) { color: var(--c0); }
.several .tile dd { font-size: 1.05rem; font-weight: 450; color: inherit; }
.tiles.several .tile dd { color: var(--ink); }
.several .tile dd.best { font-weight: 680; }
.tile dd.note, .tiles.several .tile dd.note { font-size: .76rem; font-weight: 400; letter-spacing: 0; color: var(--faint); }
.dot { display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; background: currentColor; margin-right: .45rem; }
.switches { display: grid; gap: .3rem; margin-top: .8rem; }
.switch { cursor: pointer; }
.switch .about { margin-left: .5rem; }
.chart figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .1rem 1rem; margin-bottom: .9rem; }
figure { margin: 0; }
figure.card { margin-bottom: 1rem; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem .9rem; font-size: .8rem; color: var(--faint); }
.key { display: inline-flex; align-items: center; gap: .4rem; }
.key i { display: inline-block; width: 1.1rem; background: currentColor; border-radius: 2px; }
.key i.thick { height: 3px; } .key i.thin { height: 1.5px; opacity: .65; }
.key i.box { width: .7rem; height: .7rem; } i.box.hit { color: var(--hit); opacity: .75; } i.box.gap { color: var(--miss); opacity: .45; }
i.box.miss { color: var(--miss); } .key i.ring { width: .7rem; height: .7rem; border-radius: 50%; background: none; border: 2.5px solid var(--ink); }
.key i.dashes { height: 0; background: none; border-top: 2px dotted var(--faint); }
.scale { display: inline-flex; align-items: center; gap: .5rem; font-size: .82rem; color: var(--faint); }
.scale i { display: inline-block; width: 7rem; height: .6rem; border-radius: .2rem; background: var(--ground); }
.scale i.tint { background: linear-gradient(90deg, var(--card), rgb(var(--heat))); border: 1px solid var(--edge); }
.tag { display: inline-block; font-size: .7rem; line-height: 1; padding: .16rem .4rem; border-radius: .6rem; color: var(--faint); border: 1px solid var(--edge);
  vertical-align: .08em; white-space: nowrap; } .tag.given { color: var(--c0); border-color: currentColor; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.plot { position: relative; height: 15rem; margin: .2rem .7rem 2.5rem 3.1rem; }
.plot.square { height: auto; aspect-ratio: 1; max-width: 22rem; }
.plot svg { position: absolute; width: 100%; height: 100%; overflow: visible; }
.plot path { fill: none; vector-effect: non-scaling-stroke; stroke-linejoin: round; stroke-linecap: round; }
.grid { stroke: var(--grid); } .mark { stroke: var(--faint); stroke-dasharray: 2 4; stroke-opacity: .6; }
.plot .best { stroke: currentColor; stroke-width: 11px; } .plot .best.inner { stroke: var(--card); stroke-width: 5.5px; }
.line { stroke: currentColor; } .line.thick { stroke-width: 2.4px; } .line.thin { stroke-width: 1.2px; stroke-opacity: .7; }
.ty, .tx, .across { position: absolute; font-size: .74rem; line-height: 1; color: var(--faint); white-space: nowrap; font-variant-numeric: tabular-nums; }
.ty { right: calc(100% + .5rem); transform: translateY(50%); }
.tx { top: calc(100% + .5rem); transform: translateX(-50%); }
.across { top: calc(100% + 1.55rem); right: 0; }
.cross { position: absolute; top: 0; bottom: 0; width: 0; border-left: 1px solid var(--faint); pointer-events: none; }
.tip { position: absolute; top: .3rem; padding: .35rem .6rem; border-radius: .45rem; background: var(--ink); color: var(--paper); font-size: .76rem;
  line-height: 1.45; pointer-events: none; white-space: nowrap; z-index: 1; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; font-size: .86rem; width: 100%; font-variant-numeric: tabular-nums; }
.card > h3 { margin-bottom: .6rem; } .card > p { font-size: .82rem; margin: -.3rem 0 .6rem; }
th { font-weight: 450; text-align: left; overflow-wrap: normal; } td, th { padding: .28rem .8rem .28rem 0; vertical-align: baseline; }
td:last-child, th:last-child { padding-right: 0; }
thead th, thead th.number { color: var(--faint); vertical-align: bottom; white-space: normal; line-height: 1.25; font-size: .78rem; border-bottom: 1px solid var(--edge); }
tbody tr + tr > * { border-top: 1px solid var(--grid); }
.number { text-align: right; white-space: nowrap; }
.bars .bar { display: block; height: 4px; margin: .15rem 0 .1rem; border-radius: 2px; background: var(--ground); min-width: 2.6rem; }
.bars .bar i { display: block; height: 100%; border-radius: 2px; background: var(--c0); }
.bars tbody th { overflow-wrap: anywhere; min-width: 4rem; } .total > * { font-weight: 620; } tbody + tbody > tr:first-child > * { border-top: 1px solid var(--grid); }
tr.best > * { background: color-mix(in srgb, var(--c0) 8%, transparent); }
.fold .part { display: none; } .fold:has(details[open]) .part { display: table-row; } .fold .part th { padding-left: 1.1rem; color: var(--faint); }
@supports not selector(:has(a)) { .fold .part { display: table-row; } }
.fold details { margin: 0; } .fold summary { font-weight: inherit; padding: 0; } .part.each > * { font-style: italic; }
.costs tbody th { overflow-wrap: normal; font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; font-size: .78rem; }
button { font: inherit; font-size: .78rem; color: var(--faint); background: none; border: 1px solid var(--edge); border-radius: 1rem; padding: .05rem .65rem;
  cursor: pointer; margin-left: .4rem; }
button[aria-pressed=true] { color: var(--ink); border-color: var(--faint); }
.matrix { display: block; font-family: inherit; } .card > .matrix { width: 100%; height: auto; }
.matrix text { fill: var(--ink); dominant-baseline: central; } .matrix .over { fill: var(--card); }
.ground { fill: var(--ground); } .hit { fill: var(--hit); } .miss { fill: var(--miss); } .matrix .heat { fill: rgb(var(--heat)); }
.square .hit { fill-opacity: .75; } .gap { fill: var(--miss); fill-opacity: .4; }
.samples { display: grid; gap: .9rem; } .images { grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); }
.texts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); align-items: start; }
.sample { background: var(--card); border: 1px solid var(--edge); border-radius: .7rem; padding: .7rem; font-size: .86rem; min-width: 0; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem; margin-bottom: .5rem; }
.two img { display: block; width: 100%; border-radius: .35rem; } .sharp { image-rendering: pixelated; }
.laid { position: relative; display: block; } .laid .heat { position: absolute; inset: 0; height: 100%; opacity: var(--over, .6); }
.verdict { font-weight: 700; } .right .verdict { color: var(--c2); } .wrong .verdict { color: var(--miss); }
.tokens { line-height: 1.9; margin: 0 0 .5rem; }
.token { padding: .1rem .18rem; border-radius: .25rem; background: rgb(var(--heat) / calc(.6 * var(--w))); }
.translation dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem .8rem; margin: 0 0 .8rem; }
dt { color: var(--faint); } dd { margin: 0; }
.controls { display: flex; flex-wrap: wrap; gap: .4rem 1.6rem; align-items: center; color: var(--faint); font-size: .86rem; } .controls input { vertical-align: middle; accent-color: var(--c0); }
.settings { columns: 19rem; column-gap: 1rem; } .settings .card { break-inside: avoid; padding: .7rem 1rem; font-size: .86rem; }
.settings dl { margin: 0; }
.settings dl > div { display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0; } .settings dd { text-align: right; }
.settings h3 { font-size: inherit; margin: 0 0 .2rem; } .settings .given dd { font-weight: 600; } .settings .tag { font-weight: 400; margin-left: .3rem; }
.settings dt[title] { cursor: help; } section > .legend { margin-bottom: .8rem; gap: .2rem 1.4rem; }
.log { list-style: none; max-height: 26rem; overflow: auto; font-size: .84rem; line-height: 1.5; }
.log li { display: grid; grid-template-columns: 4.6rem minmax(0, 1fr); gap: 0 .9rem; padding: .22rem 0; } .log li + li { border-top: 1px solid var(--grid); }
.log time { color: var(--faint); font-variant-numeric: tabular-nums; } .log .day { display: block; font-weight: 600; border: 0; }
details { margin-bottom: .8rem; } summary { cursor: pointer; font-weight: 600; padding: .3rem 0; }
footer { margin-top: 2.5rem; font-size: .8rem; }
@media (max-width: 34rem) {
  body { padding: 1.4rem 1rem 2rem; } nav { margin: 1.2rem -1rem 0; padding: .5rem 1rem; gap: .1rem .9rem; }
  .tiles { grid-template-columns: repeat(auto-fill, minmax(6.6rem, 1fr)); gap: .55rem; } .tile { padding: .6rem .7rem; }
  .tile dd { font-size: 1.2rem; } .plot { height: 12.5rem; margin-left: 2.7rem; } .card { padding: .8rem .8rem; }
  nav { position: static; } .costs tbody th { font-size: .7rem; } .images { grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: .6rem; } .two { gap: .3rem; }
  .sample { padding: .5rem; } .log li { grid-template-columns: minmax(0, 1fr); } td, th { padding-right: .5rem; } .switch .about { display: block; margin: 0 0 0 1.6rem; }
}
@media print { nav, .controls, button { display: none; } .tall { max-height: none; } .card, .tile, .sample { break-inside: avoid; } }
)";

const char* const kReportScript = R"(
'use strict';
for (const box of document.querySelectorAll('[data-run]')) box.addEventListener('change', () => {
  for (const part of document.querySelectorAll('main .run' + box.dataset.run + ', .tile .run' + box.dataset.run))
    part.style.display = box.checked ? '' : 'none';
});
for (const range of document.querySelectorAll('input.over'))
  range.addEventListener('input', () => document.documentElement.style.setProperty('--over', range.value / 100));
for (const button of document.querySelectorAll('.sort')) {
  const body = button.closest('.card').querySelector('tbody'), rows = [...body.rows];
  button.addEventListener('click', () => {
    const on = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', on);
    body.append(...(on ? [...rows].sort((a, b) => a.dataset.value - b.dataset.value) : rows));
  });
}
for (const plot of document.querySelectorAll('[data-lines]')) {
  const lines = JSON.parse(plot.dataset.lines), cross = document.createElement('div'), tip = document.createElement('div');
  cross.className = 'cross';
  tip.className = 'tip';
  cross.hidden = tip.hidden = true;
  plot.append(cross, tip);
  plot.addEventListener('pointermove', event => {
    const box = plot.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
    const seen = lines.filter(line => !plot.querySelector('.run' + line.run + '[style*="none"]'))
      .map(line => ({ line, point: line.points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a) }));
    if (!seen.length) return;
    const nearest = seen.reduce((a, b) => Math.abs(b.point[0] - at) < Math.abs(a.point[0] - at) ? b : a).point;
    cross.hidden = tip.hidden = false;
    cross.style.left = 100 * nearest[0] + '%';
    tip.replaceChildren(plot.querySelector('.across').textContent + ' ' + nearest[2]);
    for (const { line, point } of seen) {
      const row = document.createElement('div');
      row.textContent = line.name + ' ' + point[3];
      tip.append(row);
    }
    tip.style.left = nearest[0] < .5 ? 'calc(' + 100 * nearest[0] + '% + .6rem)' : '';
    tip.style.right = nearest[0] < .5 ? '' : 'calc(' + 100 * (1 - nearest[0]) + '% + .6rem)';
  });
  plot.addEventListener('pointerleave', () => { cross.hidden = tip.hidden = true; });
}
)";

}  // namespace heed
