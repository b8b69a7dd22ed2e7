// Where the claims of the experiments come from: the courses that the lab follows, and papers.
#pragma once

#include <string>
#include <vector>

#include "heed/lab/experiment.h"

namespace heed::lab {

enum class Course { attention_sheets, convolution_sheet, coursework, textbook };
inline constexpr int kCourses = 4;
std::string title_of(Course course);

struct Source {
  Course course;
  std::string question = {};  // what the course asks, in our words
  std::string paper = {};     // author, year and section of the claim; may be empty
};
const Source* find_source(const Experiment& experiment);  // null if it has none
std::string source_text(const Experiment& experiment);    // course, question and paper in one line; empty if there is none

}  // namespace heed::lab
