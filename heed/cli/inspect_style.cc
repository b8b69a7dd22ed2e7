// The style sheet of heed inspect's page, in addition to that of reports.
#include "heed/cli/inspect_page.h"

namespace heed::cli {

const char* const kInspectStyle = R"(
html { overflow-y: scroll; } body { max-width: 120rem; }
.about .input { white-space: pre-wrap; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 0 1rem; align-items: start; }
.panels > div { min-width: 0; }
.panel h2 { font-size: .92rem; font-weight: 600; margin: 0 0 .6rem; letter-spacing: 0; }
.panel .scale { margin-top: .6rem; } .panel > p { margin: .5rem 0 0; }
.fit { max-height: 85vh; overflow: auto; }
canvas { display: block; cursor: crosshair; touch-action: manipulation; border-radius: .2rem; }
canvas:focus-visible, select:focus-visible, button:focus-visible, input:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
.controls { position: sticky; top: 0; z-index: 2; margin: .6rem 0 1rem; padding: .7rem 1.1rem; }
.controls select { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--edge); border-radius: .4rem; padding: .15rem .4rem; }
.controls input[type=range] { width: 7rem; }
#top th { font-family: ui-monospace, "Cascadia Mono", Menlo, monospace; font-size: .82rem; overflow-wrap: anywhere; }
#top td:last-child { width: 40%; vertical-align: middle; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 0 1rem; align-items: start; margin-top: 1.6rem; }
.answers table { table-layout: fixed; max-width: 44rem; } .answers th { width: 45%; overflow-wrap: anywhere; } .answers h3 { margin: 0 0 .6rem; }
.answers dl { margin: 0; }
.translation dd { white-space: pre-wrap; }
.tokens.list { columns: 11rem; margin: 0; } .tokens.list > span { display: block; }
@media (max-width: 34rem) { .controls { position: static; padding: .6rem .8rem; } }
)";

}  // namespace heed::cli
