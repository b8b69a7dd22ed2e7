// The page of heed inspect: what it adds to the style of reports, and its script in two halves. They stand in every page that is written,
// which needs nothing else.
#pragma once

namespace heed::cli {

extern const char* const kInspectStyle;
extern const char* const kInspectDraw;      // maps, colours and canvases
extern const char* const kInspectControls;  // what people choose and point at

}  // namespace heed::cli
