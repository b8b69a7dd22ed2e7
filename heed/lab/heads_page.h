// Style and script of the heads page.
#pragma once

namespace heed::lab {

extern const char* const kHeadsStyle;   // in addition to kReportStyle and kLabStyle
extern const char* const kHeadsScript;  // draws the panels from the JSON in the page

}  // namespace heed::lab
