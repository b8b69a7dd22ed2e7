// Report charts: metrics per epoch with a table, learning rate and speed.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "heed/io/markup.h"
#include "heed/train/report_draw.h"

namespace heed {
namespace {

using Points = std::vector<std::pair<double, double>>;
constexpr std::array<int64_t, 3> kChosenEpochs{10, 30, 50};
constexpr size_t kMostEpochsShown = 8;

Points points_of(const std::vector<RunRow>& rows, const std::string& figure, bool by_epoch) {
  Points out;
  for (const RunRow& row : rows)
    if (const auto found = row.figures.find(figure); found != row.figures.end())
      out.emplace_back(static_cast<double>(by_epoch ? row.epoch : row.step), found->second);
  return out;
}

// "train_loss" and "validation_loss" -> "loss".
std::string base_of(const std::string& name) {
  for (const std::string part : {"train_", "validation_"})
    if (name.starts_with(part)) return name.substr(part.size());
  return name;
}

// Metrics to plot: loss and accuracy first, the others by name.
std::vector<std::string> bases_in(std::span<const RunRecord> runs) {
  std::set<std::string> found;
  for (const RunRecord& run : runs)
    for (const std::vector<RunRow>* rows : {&run.epochs, &run.steps})
      for (const RunRow& row : *rows)
        for (const auto& [name, value] : row.figures) found.insert(base_of(name));
  for (const char* elsewhere : {"rate", "gradient_norm"}) found.erase(elsewhere);
  std::vector<std::string> out;
  for (const char* first : {"loss", "accuracy"})
    if (found.erase(first) > 0) out.push_back(first);
  out.insert(out.end(), found.begin(), found.end());
  return out;
}

Chart chart_of(std::span<const RunRecord> runs, const std::string& base) {
  Chart chart{.title = readable(base), .across = "epoch", .figure = base};
  if (base != "chrf") chart.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(chart.title[0])));
  // With a single epoch, plot its steps.
  const bool by_epoch = std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
    return points_of(run.epochs, "train_" + base, true).size() > 1 || points_of(run.epochs, "validation_" + base, true).size() > 1 ||
           points_of(run.epochs, base, true).size() > 1;
  });
  if (!by_epoch) chart.across = "step";
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string before = runs.size() > 1 ? runs[i].name + ", " : "";
    const auto add = [&](const std::string& prefix, const std::string& name, bool thick) {
      Points points = points_of(by_epoch ? runs[i].epochs : runs[i].steps, prefix + base, by_epoch);
      if (!by_epoch && points.empty()) points = points_of(runs[i].epochs, prefix + base, false);
      ChartLine line{before + name, runs.size() > 1 ? runs[i].name : name, i, thick, std::move(points)};
      if (const RunRow* best = runs[i].best_epoch(); best && prefix == "validation_")
        line.best = static_cast<double>(by_epoch ? best->epoch : best->step);
      chart.lines.push_back(std::move(line));
    };
    add("train_", "training", false);
    add("validation_", "validation", true);
    add("", runs.size() > 1 ? "value" : readable(base), true);
  }
  if (by_epoch) chart.marks.assign(kChosenEpochs.begin(), kChosenEpochs.end());
  chart.marked = "epochs 10, 30, 50";
  return chart;
}

// Epochs in the table: all of a short run; else 10, 30 and 50, the best and the last.
bool is_chosen(const RunRecord& run, const RunRow& row) {
  return run.epochs.size() <= kMostEpochsShown || &row == &run.epochs.back() || &row == run.best_epoch() ||
         std::find(kChosenEpochs.begin(), kChosenEpochs.end(), row.epoch) != kChosenEpochs.end();
}

std::string epochs_table(std::span<const RunRecord> runs) {
  std::vector<std::string> known;  // by metric, training before validation
  for (const std::string& base : bases_in(runs))
    for (const std::string& name : {"train_" + base, "validation_" + base})
      for (const RunRecord& run : runs)
        if (!points_of(run.epochs, name, true).empty() && std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  if (known.empty()) return "";
  std::string head = "<tr>" + std::string(runs.size() > 1 ? "<th scope=\"col\">run</th>" : "") + "<th scope=\"col\">epoch</th>", body;
  for (const std::string& name : known) head += "<th scope=\"col\" class=\"number\">" + escape_markup(readable(name)) + "</th>";
  for (size_t i = 0; i < runs.size(); ++i)
    for (const RunRow& row : runs[i].epochs) {
      if (!is_chosen(runs[i], row)) continue;
      const bool last = &row == &runs[i].epochs.back(), best = &row == runs[i].best_epoch();
      body += "<tr class=\"run" + std::to_string(i) + (best ? " best" : "") + "\">";
      if (runs.size() > 1) body += "<td><i class=\"dot c" + std::to_string(i % 8) + "\"></i>" + escape_markup(runs[i].name) + "</td>";
      body += "<td>" + std::to_string(row.epoch) + (best ? " <span class=\"tag given\">best</span>" : "") +
              (last ? " <span class=\"tag\">last</span>" : "") + "</td>";
      for (const std::string& name : known) {
        const auto found = row.figures.find(name);
        body +=
            "<td class=\"number\">" + (found == row.figures.end() ? std::string("–") : figure_text(base_of(name), found->second)) + "</td>";
      }
      body += "</tr>";
    }
  return std::string(kScrollingCard) + "<h3>Epochs</h3><table><thead>" + head + "</tr></thead><tbody>" + body + "</tbody></table></div>\n";
}

}  // namespace

std::string curves_html(std::span<const RunRecord> runs) {
  std::string charts;
  for (const std::string& base : bases_in(runs)) charts += chart_html(chart_of(runs, base));
  if (charts.empty()) return missing_html("metrics.jsonl", "the training curves");
  return "<div class=\"pair\">" + charts + "</div>\n" + epochs_table(runs);
}

std::string speed_html(std::span<const RunRecord> runs) {
  Chart rate{.title = "Learning rate", .across = "step", .figure = "rate", .from_zero = true};
  Chart norm{.title = "Gradient norm", .across = "step", .figure = "gradient_norm", .from_zero = true};
  Chart speed{.title = "Samples per second", .across = "step", .figure = "samples_per_second", .from_zero = true};
  Chart share{.title = "Share of peak arithmetic", .across = "step", .figure = "share_of_peak", .from_zero = true};
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto add = [&](Chart& chart, const std::vector<RunRow>& rows, const std::vector<RunRow>& fallback) {
      Points points = points_of(rows, chart.figure, false);
      if (points.empty()) points = points_of(fallback, chart.figure, false);
      const std::string name = runs.size() > 1 ? runs[i].name : readable(chart.figure);
      chart.lines.push_back({name, name, i, &chart == &rate, std::move(points)});  // noisy curves are thin
    };
    add(rate, runs[i].steps, runs[i].epochs);
    add(norm, runs[i].steps, runs[i].epochs);
    add(speed, runs[i].speed, {});
    add(share, runs[i].speed, {});
  }
  const std::string speeds = chart_html(speed) + chart_html(share);
  return "<div class=\"pair\">" + chart_html(rate) + chart_html(norm) + speeds + "</div>\n" +
         (speeds.empty() ? missing_html("speed.csv", "the speed") : "");
}

}  // namespace heed
