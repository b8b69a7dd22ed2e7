// The log of a run as a list: date headings, the time next to each line.
#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed {
namespace {

struct LogLine {
  std::string day = {}, time = {}, text = {};
};

// "2026-11-16 16:54:06 text", as written by RunFolder::log; other lines are text only.
LogLine log_line(const std::string& line) {
  constexpr std::string_view shape = "0000-00-00 00:00:00 ";
  bool dated = line.size() >= shape.size();
  for (size_t i = 0; dated && i < shape.size(); ++i) dated = shape[i] == '0' ? line[i] >= '0' && line[i] <= '9' : line[i] == shape[i];
  if (!dated) return {.text = line};
  return {.day = line.substr(0, 10), .time = line.substr(11, 8), .text = line.substr(shape.size())};
}

}  // namespace

std::string log_html(const RunRecord& run) {
  if (run.log.empty()) return missing_html("log.txt", "the log");
  std::string rows, day;
  for (const std::string& line : run.log) {
    const LogLine parts = log_line(line);
    if (!parts.day.empty() && parts.day != day) rows += "<li class=\"day\">" + escape_markup(parts.day) + "</li>";
    if (!parts.day.empty()) day = parts.day;
    rows += "<li><time" + (parts.day.empty() ? "" : " datetime=\"" + parts.day + "T" + parts.time + "\"") + ">" + parts.time +
            "</time><span>" + escape_markup(parts.text) + "</span></li>\n";
  }
  return "<ol class=\"card log\" tabindex=\"0\" aria-label=\"Log\">" + rows + "</ol>\n";
}

}  // namespace heed
