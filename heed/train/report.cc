#include "heed/train/report.h"

#include <algorithm>
#include <cmath>

#include "heed/io/markup.h"
#include "heed/train/report_draw.h"
#include "heed/train/scores.h"

namespace heed {
namespace {

// Order of the metrics; others follow by name.
const std::vector<std::string> kFirstMetrics{"bleu", "chrf", "accuracy", "perplexity", "loss", "top5", "f1", "calibration_error"};

bool lower_is_better(const std::string& figure) { return !larger_is_better(figure) || figure == "parameters" || figure == "epochs"; }

// The final evaluation, or the best epoch so far if the run is not finished.
std::map<std::string, double> final_metrics(const RunRecord& run) {
  std::map<std::string, double> out;
  if (run.finished() && run.evaluation.is_object() && run.evaluation.contains("figures") && run.evaluation["figures"].is_object()) {
    for (const auto& [key, value] : run.evaluation["figures"].items())
      if (value.is_number()) out[key] = value.get<double>();
  } else if (const RunRow* best = run.best_epoch()) {
    for (const auto& [key, value] : best->figures)
      if (key.starts_with("validation_")) out[key.substr(11)] = value;
  }
  return out;
}

std::map<std::string, double> facts(const RunRecord& run) {
  std::map<std::string, double> out;
  if (!run.epochs.empty()) out["epochs"] = static_cast<double>(run.epochs.back().epoch);
  for (const Json& layer : list_in(run.costs, "layers")) out["parameters"] += number_in(layer, "parameters");
  std::vector<double> speeds;
  for (const RunRow& row : run.speed)
    if (const auto found = row.figures.find("samples_per_second"); found != row.figures.end()) speeds.push_back(found->second);
  if (!speeds.empty()) {
    std::nth_element(speeds.begin(), speeds.begin() + static_cast<int64_t>(speeds.size() / 2), speeds.end());
    out["samples per second"] = speeds[speeds.size() / 2];
  }
  return out;
}

// Subtitle of the metric tiles: "test, epoch 7 (best)".
std::string part_of(std::span<const RunRecord> runs) {
  const RunRecord& run = runs[0];
  std::string out = run.finished() ? text_in(run.evaluation, "part") : "validation";
  if (out.empty()) out = "evaluation";
  if (runs.size() > 1) return out + ", best epochs";
  const RunRow* best = run.best_epoch();
  return best ? out + ", epoch " + std::to_string(best->epoch) + " (best)" : out;
}

// Subtitle of the epochs tile: the planned number, and whether the run is finished.
std::string progress_of(const RunRecord& run) {
  const std::string planned = run.setting({"epochs", "learning.epochs"});
  const bool all = !run.epochs.empty() && planned == std::to_string(run.epochs.back().epoch);
  return run.finished() ? (all || planned.empty() ? "finished" : "of " + planned + ", finished")
                        : (planned.empty() ? "so far" : "of " + planned + " so far");
}

std::string tile(const std::string& figure, const std::string& label, const std::string& note,
                 const std::vector<std::pair<size_t, double>>& values, size_t runs, bool ranked) {
  if (values.empty()) return "";
  std::string out = "<div class=\"tile\"><dt>" + escape_markup(label) + "</dt>";
  const auto [least, most] =
      std::minmax_element(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double best = lower_is_better(figure) ? least->second : most->second;
  const bool differs = ranked && least->second < most->second;
  for (const auto& [run, value] : values) {
    out += "<dd class=\"run" + std::to_string(run) + (differs && value == best ? " best" : "") + "\">";
    if (runs > 1) out += "<i class=\"dot c" + std::to_string(run % 8) + "\"></i>";
    out += figure_text(figure, value) + "</dd>";
  }
  return out + "<dd class=\"note\">" + escape_markup(note) + "</dd></div>\n";
}

std::string tiles_html(std::span<const RunRecord> runs) {
  std::vector<std::string> names = kFirstMetrics;
  for (const RunRecord& run : runs)
    for (const auto& [name, value] : final_metrics(run))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  const auto all = [&](const auto& read, const std::string& name) {
    std::vector<std::pair<size_t, double>> out;
    for (size_t i = 0; i < runs.size(); ++i)
      if (const std::map<std::string, double> figures = read(runs[i]); figures.contains(name)) out.emplace_back(i, figures.at(name));
    return out;
  };
  std::string out;
  for (const std::string& name : names) out += tile(name, readable(name), part_of(runs), all(final_metrics, name), runs.size(), true);
  out += tile("epochs", "epochs", runs.size() > 1 ? "trained" : progress_of(runs[0]), all(facts, "epochs"), runs.size(), false);
  out += tile("parameters", "parameters", "of the model", all(facts, "parameters"), runs.size(), false);
  out += tile("samples per second", "samples/s", "median", all(facts, "samples per second"), runs.size(), false);
  return "<dl class=\"tiles" + std::string(runs.size() > 1 ? " several" : "") + "\">" + out + "</dl>\n";
}

std::string about(const RunRecord& run) {
  const std::string model = run.setting({"preset", "model.preset", "model", "from"}),
                    data = run.setting({"data", "data.path", "data.set", "train"});
  std::string out;
  for (const auto& [name, value] : {std::pair("model", model), std::pair("data", data), std::pair("images", image_size_text(run))})
    if (!value.empty()) out += "<span>" + std::string(name) + " <b>" + escape_markup(value) + "</b></span> ";
  return out;
}

std::string head_html(std::span<const RunRecord> runs) {
  std::string out = "<header>";
  if (runs.size() == 1) {
    out += "<p class=\"kicker\">" + escape_markup(runs[0].task) + "</p><h1>" + escape_markup(runs[0].name) + "</h1><p class=\"about\">" +
           about(runs[0]) + "</p>";
  } else {
    out += "<p class=\"kicker\">" + escape_markup(runs[0].task) + "</p><h1>" + std::to_string(runs.size()) +
           " runs side by side</h1><div class=\"switches\">";
    for (size_t i = 0; i < runs.size(); ++i)
      out += "<label class=\"switch\"><input type=\"checkbox\" checked data-run=\"" + std::to_string(i) + "\"><i class=\"dot c" +
             std::to_string(i % 8) + "\"></i><b>" + escape_markup(runs[i].name) + "</b> <span class=\"about\">" + about(runs[i]) +
             "</span></label>";
    out += "</div>";
  }
  return out + "</header>\n";
}

// The section of one run; for several runs one <details> each, the first one open.
template <class Draw>
std::string each(std::span<const RunRecord> runs, Draw draw) {
  if (runs.size() == 1) return draw(runs[0]);
  std::string out;
  for (const RunRecord& run : runs)
    if (const std::string body = draw(run); !body.empty()) out += details_html(run.name, body, out.empty());
  return out;
}

std::string damaged_html(const RunRecord& run) {
  std::string items;
  for (const std::string& damage : run.damaged) items += "<li>" + escape_markup(damage) + "</li>";
  return items.empty() ? "" : "<ul class=\"card\">" + items + "</ul>\n";
}

std::string classes_or_placeholder(const RunRecord& run) {
  if (run.evaluation.is_null()) return missing_html("evaluation.json", "the final evaluation");
  return classes_html(run);
}

}  // namespace

std::string report_page(std::span<const Path> folders) {
  check<UsageError>(!folders.empty(), "report: found 0 run folders, expected 1 or more");
  std::vector<RunRecord> runs;
  for (const Path& folder : folders) runs.push_back(read_run(folder));
  struct Part {
    const char *id, *title;
    std::string body;
  };
  std::vector<Part> parts{
      {"damaged", "Damaged files", each(runs, damaged_html)},
      {"curves", "Curves", curves_html(runs)},
      {"classes", "Classes", each(runs, classes_or_placeholder)},
      {"samples", "Samples", each(runs, samples_html)},
      {"speed", "Rate and speed", speed_html(runs)},
      {"costs", "Cost of layers", each(runs, costs_html)},
      {"settings", "Settings", (runs.size() > 1 ? "<h3>What differs</h3>" + differences_html(runs) : "") + each(runs, settings_html)},
      {"log", "Log", each(runs, log_html)}};
  std::string sections, links;
  for (const Part& part : parts) {
    if (part.body.empty()) continue;
    links += std::string("<a href=\"#") + part.id + "\">" + part.title + "</a>\n";
    sections += section_html(part.id, part.title, part.body);
  }
  const std::string title = runs.size() == 1 ? runs[0].task + " " + runs[0].name : std::to_string(runs.size()) + " runs";
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
         "initial-scale=1\">\n<title>" +
         escape_markup(title) + ": heed</title>\n<style>" + kReportStyle + "</style>\n</head>\n<body>\n" + head_html(runs) +
         tiles_html(runs) + "<nav aria-label=\"Parts of this page\">" + links + "</nav>\n<main>\n" + sections +
         "</main>\n<footer class=\"faint\">drawn by heed from " + escape_markup(runs[0].task + "/" + runs[0].name) +
         (runs.size() > 1 ? " and others" : "") + "</footer>\n<script>" + kReportScript + "</script>\n</body>\n</html>\n";
}

}  // namespace heed
