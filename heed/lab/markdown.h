// Parts of the Markdown pages of docs/lab.
#pragma once

#include <span>
#include <string>

#include "heed/lab/result.h"

namespace heed::lab {

std::string page_name(Topic topic);                 // "cost"
std::string link_to(const Experiment& experiment);  // its title, linked to its section
std::string in_cell(std::string text);              // without the bar that ends a cell of a table
// A measurement with its name: the first whose name begins with `start`, else the first that contradicts a publication, else the first.
std::string key_number(const Report& report, const std::string& start = {});
std::string course_pages(const Path& folder, std::span<const Result> results);  // writes a page per course -> the table of all items
void write_stability(const Path& folder, std::span<const Result> once, std::span<const Result> twice);  // stability.md

}  // namespace heed::lab
