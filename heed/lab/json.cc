// Results as JSON.
#include <cmath>

#include "heed/lab/formula.h"
#include "heed/lab/result.h"
#include "heed/lab/sources.h"

namespace heed::lab {
namespace {

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

const char* verdict_key(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::corrected: return "corrected";
    case Verdict::fails: return "fails";
    case Verdict::undecided: return "undecided";
  }
  return "";
}

Json measured_json(const Measured& each) {
  return {{"name", each.name},
          {"predicted", number_json(each.predicted)},
          {"measured", number_json(each.measured)},
          {"prediction", each.prediction()},
          {"by_clock", each.by_clock},
          {"contradicts", each.rule == Measured::Rule::contradicts},
          {"passes", each.passes()}};
}

Json table_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row)
      cells.push_back(std::holds_alternative<double>(cell) ? number_json(std::get<double>(cell)) : Json(std::get<std::string>(cell)));
    rows.push_back(std::move(cells));
  }
  return {{"title", table.title}, {"columns", table.columns}, {"rows", std::move(rows)}};
}

}  // namespace

Json result_json(const Result& result) {
  const Experiment& experiment = *result.experiment;
  Json out{{"number", experiment.number},
           {"name", experiment.name},
           {"topic", title_of(experiment.topic)},
           {"title", experiment.title},
           {"claim", sentence_text(experiment.claim)},
           {"formula", experiment.formula},
           {"setup", sentence_text(experiment.setup)},
           {"statement", sentence_text(finding_of(result.report))},
           {"verdict", verdict_key(result.verdict)},
           {"expected", verdict_key(experiment.expected)},
           {"as_documented", result.as_documented()},
           {"settings", result.settings},
           {"seconds", result.seconds},
           {"measured", Json::array()},
           {"tables", Json::array()},
           {"figures", Json::array()}};
  if (!experiment.published.empty()) out["published"] = sentence_text(experiment.published);
  if (const std::string source = source_text(experiment); !source.empty()) out["source"] = source;
  if (!result.error.empty()) out["error"] = result.error;
  for (const Measured& each : result.report.measured) out["measured"].push_back(measured_json(each));
  for (const Table& table : result.report.tables) out["tables"].push_back(table_json(table));
  for (size_t i = 0; i < result.report.figures.size(); ++i) {
    const Figure& figure = result.report.figures[i];
    Json frames = Json::array();
    for (size_t j = 0; j < figure.frames.size(); ++j)
      frames.push_back({{"value", figure.frames[j].value}, {"file", figure_file(experiment, i, j, figure.frames.size())}});
    out["figures"].push_back({{"title", figure.title}, {"caption", figure.caption}, {"parameter", figure.parameter}, {"frames", frames}});
  }
  return out;
}

Json results_json(std::span<const Result> results) {
  Json out{{"experiments", Json::array()}, {"as_documented", true}};
  for (const Result& result : results) {
    out["experiments"].push_back(result_json(result));
    if (!result.as_documented()) out["as_documented"] = false;
  }
  return out;
}

}  // namespace heed::lab
