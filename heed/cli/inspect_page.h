// The page of heed inspect: additions to the report style, and the script in two halves. They are embedded, so that a page is one file.
#pragma once

namespace heed::cli {

extern const char* const kInspectStyle;
extern const char* const kInspectDraw;      // maps, colours and canvases
extern const char* const kInspectControls;  // controls and mouse and keyboard input

}  // namespace heed::cli
