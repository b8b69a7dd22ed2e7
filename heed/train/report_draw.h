// Building blocks of the report page: number formatting, charts, and its sections.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/train/report_run.h"

namespace heed {

// Formats a metric by name: fractions as percentages, translation scores with two decimals, others with about four digits.
std::string figure_text(const std::string& name, double value);
std::string count_text(double count);                 // 5524416 -> 5.52 M; below 10000 unchanged
std::string readable(std::string_view name);          // "validation_loss" -> "validation loss"
std::string fixed(double value, int digits);          // for SVG and CSS
double number_in(const Json& json, const char* key);  // 0 if missing
std::string text_in(const Json& json, const char* key);
const Json& list_in(const Json& json, const char* key);  // an empty list if missing

struct ChartLine {
  std::string name = {}, key = {};  // key: in the legend, where lines of a run with the same key are merged
  size_t run = 0;                   // selects the colour
  bool thick = true;                // validation; thin: training
  std::vector<std::pair<double, double>> points = {};
  std::optional<double> best = {};  // x of the best point, drawn as a ring
};
struct Chart {
  std::string title = {}, across = {};  // across: label of the x axis
  std::string figure = {};              // metric name, for formatting
  std::vector<ChartLine> lines = {};
  bool from_zero = false;
  std::vector<double> marks = {};   // x of vertical dashed lines
  std::string marked = {};          // legend text for them
  std::optional<double> left = {};  // start of the x axis, if before the first point
};
std::vector<double> round_ticks(double least, double most, int about);  // spaced by 1, 2 or 5 times a power of ten
std::string chart_html(Chart chart);

// Begins a card whose wide content scrolls, also with the keyboard.
constexpr const char* kScrollingCard = "<div class=\"card scroll\" tabindex=\"0\">";

std::string section_html(const std::string& id, const std::string& title, const std::string& body);
std::string details_html(const std::string& title, const std::string& body, bool open);
std::string heat_legend_html(const std::string& low, const std::string& high);  // low, high: HTML
std::string missing_html(const std::string& file, const std::string& what);     // placeholder for a missing section

// Sections. Empty, or a placeholder, if the run has not written their files.
std::string curves_html(std::span<const RunRecord> runs);
std::string speed_html(std::span<const RunRecord> runs);
std::string classes_html(const RunRecord& run);
std::string samples_html(const RunRecord& run);
std::string costs_html(const RunRecord& run);
std::string log_html(const RunRecord& run);
std::string image_size_text(const RunRecord& run);  // "96 × 64", width first; empty if the model has no image input
std::string settings_html(const RunRecord& run);
std::string differences_html(std::span<const RunRecord> runs);

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace heed
