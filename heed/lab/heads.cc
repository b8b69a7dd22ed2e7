#include "heed/lab/heads.h"

#include <cmath>
#include <iomanip>
#include <sstream>

#include "heed/train/head_drawing.h"
#include "heed/train/report_draw.h"

namespace heed::lab {
namespace {

std::string tokens_text(double value) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(2) << value;
  return out.str();
}

bool is_same_alarm(const HeadAlarm& a, const HeadAlarm& b) {
  return a.kind == b.kind && a.layer == b.layer && a.head == b.head && a.twin == b.twin;
}

}  // namespace

std::optional<double> HeadsRun::value(const std::string& part, int64_t epoch) const {
  for (const RunRow& row : run.epochs)
    if (row.epoch == epoch)
      if (const auto found = row.figures.find(part + "_" + figure); found != row.figures.end()) return found->second;
  return {};
}

HeadsRun read_heads_run(const Path& run) {
  HeadsRun out{.run = read_run(run), .frames = read_heads(run), .figure = "accuracy"};
  check<FileError>(!out.frames.empty(), (run / "heads.jsonl").string(),
                   ": this run recorded no heads, expected a model with Gaussian positions: heed train classify preset=gaussian, or "
                   "position=gaussian or gaussian_full");
  bool any = false;
  for (const RunRow& row : out.run.epochs) any = any || row.figures.contains("validation_accuracy");
  if (!any) out.figure = "loss";
  return out;
}

LayerMeans means_of(const GaussianLayer& layer) {
  LayerMeans out;
  double counted = 0;
  for (const GaussianHead& head : layer.heads) {
    out.distance += std::hypot(head.center[0], head.center[1]) / static_cast<double>(layer.heads.size());
    const auto covariance = head.covariance();
    if (!covariance) continue;
    ++counted;
    out.deviation += std::pow((*covariance)[0] * (*covariance)[2] - (*covariance)[1] * (*covariance)[1], 0.25);
  }
  out.deviation = counted > 0 ? out.deviation / counted : std::numeric_limits<double>::quiet_NaN();
  return out;
}

std::vector<LastingAlarm> lasting_alarms(const std::vector<HeadFrame>& frames) {
  std::vector<LastingAlarm> out;
  for (const HeadAlarm& alarm : alarms_of(frames.back().heads)) out.push_back({alarm, frames.back().epoch});
  std::vector<bool> persists(out.size(), true);
  for (size_t i = frames.size() - 1; i-- > 0;) {
    const std::vector<HeadAlarm> then = alarms_of(frames[i].heads);
    for (size_t k = 0; k < out.size(); ++k) {
      persists[k] =
          persists[k] && std::any_of(then.begin(), then.end(), [&](const HeadAlarm& each) { return is_same_alarm(each, out[k].alarm); });
      if (persists[k]) out[k].since = frames[i].epoch;
    }
  }
  return out;
}

std::string alarm_name(HeadAlarm::Kind kind) {
  switch (kind) {
    case HeadAlarm::Kind::no_gaussian: return "no Gaussian";
    case HeadAlarm::Kind::everywhere: return "looks everywhere";
    case HeadAlarm::Kind::one_key: return "sees one key";
    case HeadAlarm::Kind::outside: return "outside the image";
    case HeadAlarm::Kind::twins: return "same place";
  }
  return "";
}

Json heads_json(const HeadsRun& run) {
  Json layers = Json::array(), alarms = Json::array(), curve = Json::array();
  for (size_t i = 0; i < run.last().heads.layers.size(); ++i) {
    const LayerMeans start = means_of(run.frames.front().heads.layers[i]), end = means_of(run.last().heads.layers[i]);
    layers.push_back({{"name", run.last().heads.layers[i].name},
                      {"distance", {start.distance, end.distance}},
                      {"deviation", {start.deviation, end.deviation}}});
  }
  for (const auto& [alarm, since] : lasting_alarms(run.frames))
    alarms.push_back(
        {{"layer", alarm.layer}, {"head", alarm.head}, {"kind", alarm_name(alarm.kind)}, {"text", alarm.text}, {"since_epoch", since}});
  for (const HeadFrame& frame : run.frames)
    if (const auto value = run.value("validation", frame.epoch)) curve.push_back({frame.epoch, *value});
  return {{"task", run.run.task},
          {"name", run.run.name},
          {"epochs", run.last().epoch},
          {"steps", run.last().step},
          {"validation_" + run.figure, curve},
          {"layers", layers},
          {"alarms", alarms}};
}

void print_heads(std::ostream& out, const HeadsRun& run) {
  const size_t heads = run.last().heads.layers[0].heads.size();
  out << run.run.task << '/' << run.run.name << ": " << run.last().heads.layers.size() << " layers of " << heads << " heads, "
      << run.last().epoch << " epochs";
  if (const auto value = run.value("validation", run.last().epoch))
    out << ", validation " << run.figure << ' ' << figure_text(run.figure, *value);
  out << "\n\nlayer   distance from the query   deviation        (tokens, mean over heads, start -> end)\n";
  for (size_t i = 0; i < run.last().heads.layers.size(); ++i) {
    const LayerMeans start = means_of(run.frames.front().heads.layers[i]), end = means_of(run.last().heads.layers[i]);
    out << std::setw(5) << i << "   " << std::left << std::setw(26) << tokens_text(start.distance) + " -> " + tokens_text(end.distance)
        << tokens_text(start.deviation) + " -> " + tokens_text(end.deviation) << std::right << '\n';
  }
  out << '\n';
  const std::vector<LastingAlarm> alarms = lasting_alarms(run.frames);
  if (alarms.empty()) out << "no alarms\n";
  for (const auto& [alarm, since] : alarms)
    out << "alarm: layer " << alarm.layer << " head " << alarm.head << ' ' << alarm_name(alarm.kind) << " since epoch " << since << ": "
        << alarm.text << '\n';
}

void check_heads_folder(const Path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  check<UsageError>(fs::is_directory(folder, error), "lab: ", folder.string(), " is a file, expected a folder or nothing");
  check<UsageError>(fs::is_empty(folder, error) || (fs::exists(folder / "heads.json") && fs::exists(folder / "film.png")),
                    "lab: ", folder.string(),
                    " contains files other than a heads page, which would be lost; choose another folder with -o");
}

void write_heads(const Path& folder, const HeadsRun& run) {
  check_heads_folder(folder);
  replace_folder(folder, [&](const Path& output) {
    write_text(output / "index.html", heads_page(run));
    write_json(output / "heads.json", heads_json(run));
    write_text(output / "start.svg", heads_svg(heads_drawing(run, 1, false)));
    const Drawing end = heads_drawing(run, run.frames.size(), false);
    write_text(output / "end.svg", heads_svg(end));
    write_png(output / "end.png", end.pixels(2));
    write_text(output / "film.png", heads_film(run));
  });
}

}  // namespace heed::lab
