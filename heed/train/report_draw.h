// Pieces of a report's page: numbers for people, charts, and the parts that other files draw.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/train/report_run.h"

namespace heed {

// A figure by its name: shares are per cents, scores of translations have two decimals, others about four digits.
std::string figure_text(const std::string& name, double value);
std::string count_text(double count);                 // 5524416 -> 5.52 M; to 9999 as it is
std::string readable(std::string_view name);          // "validation_loss" -> "validation loss"
std::string fixed(double value, int digits);          // for SVG and CSS
double number_in(const Json& json, const char* key);  // 0 where there is none
std::string text_in(const Json& json, const char* key);
const Json& list_in(const Json& json, const char* key);  // an empty list where there is none

struct ChartLine {
  std::string name = {}, key = {};  // in full, and in the legend, where lines of a run with the same key are one
  size_t run = 0;                   // its colour
  bool thick = true;                // validation; thin: training
  std::vector<std::pair<double, double>> points = {};
  std::optional<double> best = {};  // x of the best point, which is marked
};
struct Chart {
  std::string title = {}, across = {};  // across: what x counts
  std::string figure = {};              // how its values are written
  std::vector<ChartLine> lines = {};
  bool from_zero = false;
  std::vector<double> marks = {};   // of x, for dashed lines
  std::string marked = {};          // what they are
  std::optional<double> left = {};  // where x begins, if that is before the first point
};
std::vector<double> round_ticks(double least, double most, int about);  // 1, 2 or 5 times a power of ten apart
std::string chart_html(Chart chart);

std::string section_html(const std::string& id, const std::string& title, const std::string& body);
std::string details_html(const std::string& title, const std::string& body, bool open);
std::string heat_legend_html(const std::string& low, const std::string& high);  // low, high: markup
std::string missing_html(const std::string& file, const std::string& what);     // a word in place of a part

// The parts. They are empty, or a word, where the run has not written their files.
std::string curves_html(std::span<const RunRecord> runs);
std::string speed_html(std::span<const RunRecord> runs);
std::string classes_html(const RunRecord& run);
std::string samples_html(const RunRecord& run);
std::string costs_html(const RunRecord& run);
std::string log_html(const RunRecord& run);
std::string image_size_text(const RunRecord& run);  // "96 × 64", width first; empty: it does not see images
std::string settings_html(const RunRecord& run);
std::string differences_html(std::span<const RunRecord> runs);

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace heed
