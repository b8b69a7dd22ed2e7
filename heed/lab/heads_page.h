// How the page of heads looks and moves.
#pragma once

namespace heed::lab {

extern const char* const kHeadsStyle;   // beside those of reports and of the lab
extern const char* const kHeadsScript;  // draws the panels from the numbers in the page

}  // namespace heed::lab
