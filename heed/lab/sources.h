// Where the claims of the experiments come from: the courses that the lab follows, and papers.
#pragma once

#include <string>
#include <vector>

#include "heed/lab/experiment.h"

namespace heed::lab {

enum class Course { attention_sheets, convolution_sheet, coursework, textbook };
inline constexpr int kCourses = 4;
std::string title_of(Course course);
std::string name_of(Course course);  // in names of files

struct Source {
  Course course;
  std::string question = {};  // what the course asks, in our words
  std::string paper = {};     // author, year and section of the claim; may be empty
};
// What a course defines (D) or asks to build (T): the command that does it, the page that describes it, from docs/lab, and the experiment
// that measures it.
struct CourseTask {
  Course course;
  std::string number, task, command, page, experiment;
  std::string measurement = {};  // of the experiment: how its name begins; empty: its key number
  std::string result = {};       // on data that the lab does not have, in the words of the page
};
const std::vector<CourseTask>& course_tasks();

const Source* find_source(const Experiment& experiment);  // null if it has none
std::string source_text(const Experiment& experiment);    // course, question and paper in one line; empty if there is none

}  // namespace heed::lab
