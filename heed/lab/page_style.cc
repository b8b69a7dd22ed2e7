// Style and script of the report page.
#include "heed/lab/page.h"

namespace heed::lab {

const char* const kLabStyle = R"(
:root { --holds: #0f6f56; --corrected: #875300; --fails: #a92c3d; }
@media (prefers-color-scheme: dark) { :root { --holds: #4fcba6; --corrected: #e0b04a; --fails: #ff828f; } }
body { max-width: 82rem; }
.ink { color: var(--ink); } .edge { color: var(--edge); }
.top h1 { font-size: 2.2rem; }
.badge { display: inline-block; font-size: .76rem; font-weight: 600; line-height: 1; padding: .32rem .6rem; border-radius: 1rem; white-space: nowrap;
  color: var(--tone); background: color-mix(in srgb, var(--tone) 13%, transparent); }
.holds { --tone: var(--holds); } .corrected { --tone: var(--corrected); } .fails { --tone: var(--fails); }
.tally { margin-top: .9rem; }
.sheet { display: grid; grid-template-columns: 17rem minmax(0, 1fr); gap: 0 3rem; margin-top: 2rem; align-items: start; }
nav { position: sticky; top: 0; display: block; margin: 0; padding: .5rem 0 1rem; border: 0; max-height: 100vh; overflow-y: auto; font-size: .86rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav .topic { display: block; margin: 1rem 0 .25rem; color: var(--ink); font-weight: 600; }
nav > ul > li:first-child .topic { margin-top: 0; }
nav li li a { display: grid; grid-template-columns: .5rem 2rem 1fr; gap: .5rem; align-items: baseline; padding: .14rem 0; line-height: 1.35; }
nav .number { text-align: left; font-variant-numeric: tabular-nums; }
.state { width: .5rem; height: .5rem; border-radius: 50%; background: var(--tone); }
main > section:first-child > h2 { margin-top: 0; }
h2 { font-size: 1.45rem; padding-bottom: .5rem; border-bottom: 1px solid var(--edge); }
.experiment { margin: 0 0 3.4rem; scroll-margin-top: 1rem; }
.experiment > header { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; align-items: center; }
.experiment > header h3 { grid-column: 1 / -1; font-size: 1.18rem; font-weight: 620; letter-spacing: -.01em; line-height: 1.3; }
.experiment h3 a { color: inherit; text-decoration: none; }
.experiment h3 a:hover { text-decoration: underline; }
.claim { max-width: 46rem; margin: .5rem 0 0; }
.formula { display: flex; flex-wrap: wrap; justify-content: center; align-items: center; gap: .4rem 2rem; margin: 1rem 0; padding: .3rem 0; font-size: 1.12rem;
  overflow-x: auto; overflow-y: hidden; }
.formula math { margin: 0; width: auto; }
math { font-family: "STIX Two Math", "Latin Modern Math", "Cambria Math", "Noto Sans Math", "DejaVu Math TeX Gyre", math, serif; }
.said { display: grid; grid-template-columns: 6rem 1fr; gap: .2rem .8rem; max-width: 52rem; margin: .55rem 0; padding-left: .8rem; border-left: 3px solid var(--tone, var(--edge)); }
.said b { font-weight: 600; color: var(--tone); }
.said.source { --tone: var(--faint); } .said.wrong { --tone: var(--fails); } .said.right { --tone: var(--holds); }
.said.wrong b + span { color: var(--faint); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; margin: 1.3rem 0 1rem; grid-auto-flow: dense; }
.figures > .wide { grid-column: 1 / -1; }
.figures .card { margin: 0; display: flex; flex-direction: column; } .frames { margin-bottom: auto; }
figcaption h4 { margin: 0; font-size: .92rem; font-weight: 600; }
figcaption p { color: var(--faint); font-size: .82rem; margin: .1rem 0 .7rem; }
.frame { display: flex; flex-wrap: wrap; gap: .6rem; justify-content: center; }
.frame[hidden] { display: none; }
.frame svg { flex: 1 1 13rem; max-width: min(100%, 20rem); height: auto; font-family: inherit; display: block; }
.frame svg:only-child { max-width: min(100%, 30rem); }
.slider { display: grid; grid-template-columns: auto minmax(0, 1fr) minmax(6.5rem, auto); gap: .7rem; align-items: center; margin: 0 0 .8rem; font-size: .86rem; }
.slider input { width: 100%; accent-color: var(--c0); margin: 0; }
.slider output { font-variant-numeric: tabular-nums; color: var(--faint); white-space: nowrap; }
.slider output b { color: var(--ink); font-weight: 600; }
.slider button { margin: 0; padding: 0; width: 1.8rem; height: 1.8rem; line-height: 1; border-radius: 50%; color: var(--ink); }
.measured { width: 100%; } .measured th[scope] { min-width: 9rem; overflow-wrap: normal; }
.mark { color: var(--tone); font-weight: 600; text-align: right; } .published, small { color: var(--faint); } small { font-size: .72rem; }
sup { font-size: .72em; line-height: 0; }
.command { display: flex; flex-wrap: wrap; justify-content: space-between; gap: .2rem 1rem; color: var(--faint); font-size: .78rem; margin: .6rem 0 0; }
code { font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; }
@media (max-width: 60rem) {
  .sheet { grid-template-columns: minmax(0, 1fr); } nav { position: static; max-height: none; margin-bottom: 2rem; padding: 0 0 1.4rem; border-bottom: 1px solid var(--edge); }
}
@media (max-width: 34rem) {
  .top h1 { font-size: 1.8rem; } .formula { font-size: 1rem; } .said { grid-template-columns: 1fr; gap: 0; }
  .measured th[scope] { min-width: 8rem; } .measured { font-size: .8rem; } .figures { gap: .8rem; } .figures .card { padding: .8rem .6rem; }
}
)";

const char* const kLabScript = R"(
'use strict';
for (const slider of document.querySelectorAll('.slider')) {
  const frames = slider.parentElement.querySelectorAll('.frame'), values = slider.dataset.values.split('|');
  const range = slider.querySelector('input'), button = slider.querySelector('button'), shown = slider.querySelector('b');
  let timer = 0;
  const show = place => {
    range.value = place;
    frames.forEach((frame, i) => { frame.hidden = i !== place; });
    shown.textContent = values[place];
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    button.textContent = '▶';
    button.setAttribute('aria-label', 'play');
  };
  range.addEventListener('input', () => { stop(); show(+range.value); });
  button.addEventListener('click', () => {
    if (timer) return stop();
    if (+range.value === frames.length - 1) show(0);
    button.textContent = '❚❚';
    button.setAttribute('aria-label', 'pause');
    timer = setInterval(() => {
      show(+range.value + 1);
      if (+range.value === frames.length - 1) stop();
    }, Math.min(400, 6000 / frames.length));
  });
}
)";

}  // namespace heed::lab
