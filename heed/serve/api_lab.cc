// /api/lab: the experiments, run with the settings of a client.
#include "heed/core/interrupt.h"
#include "heed/io/json_reader.h"
#include "heed/lab/draw.h"
#include "heed/lab/plot_json.h"
#include "heed/lab/result.h"
#include "heed/serve/app.h"
#include "heed/serve/setting_json.h"

namespace heed::serve {
namespace {

const char* verdict_name(lab::Verdict verdict) {
  return verdict == lab::Verdict::holds ? "holds" : verdict == lab::Verdict::corrected ? "corrected" : "fails";
}

void list_experiments(const Call& call) {
  Json out = Json::array();
  for (const lab::Experiment& each : lab::all_experiments()) {
    Json settings = Json::array();
    for (const SettingInfo& setting : lab::settings_of(each)) settings.push_back(setting_json(setting));
    Json one{
        {"number", each.number}, {"name", each.name},       {"topic", lab::title_of(each.topic)},      {"title", each.title},
        {"claim", each.claim},   {"formula", each.formula}, {"expected", verdict_name(each.expected)}, {"settings", std::move(settings)}};
    if (!each.published.empty()) one["published"] = each.published;
    out.push_back(std::move(one));
  }
  call.reply({{"experiments", std::move(out)}});
}

Json result_with_figures(const lab::Result& result, bool svg) {
  Json out = lab::result_json(result);
  for (size_t i = 0; i < result.report.figures.size(); ++i) {
    const lab::Figure& figure = result.report.figures[i];
    for (size_t j = 0; j < figure.frames.size(); ++j) {
      Json& frame = out["figures"][i]["frames"][j];
      frame["plots"] = lab::plots_json(figure.frames[j]);
      if (svg) frame["svg"] = lab::svg_file(lab::drawing_of(figure.frames[j]));
    }
  }
  return out;
}

void run_experiment(const Call& call) {
  const Json json = call.request().body.empty() ? Json::object() : call.body();
  const JsonReader body(json, "body");
  const lab::Experiment* experiment = nullptr;
  try {
    experiment = &lab::find_experiment(call.path.at("name"));
  } catch (const UsageError& error) {
    throw HttpError(404, error.what());
  }
  const lab::Plan plan{.experiments = {experiment}, .settings = assignments_in(body)};
  lab::check_plan(plan);
  const bool stream = body.flag_or("stream", false), svg = body.flag_or("svg", false);
  if (stream) call.begin_events();
  const std::function<bool()> stop = [&] { return call.exchange->cancelled() || call.app.stopping(); };
  const Interruptible interruptible(stop);
  try {
    const lab::Result result = lab::run_one(*experiment, plan.settings, [&](const std::string& line) {
      if (stream) call.exchange->write(sse_event(dump(line), "progress"));
    });
    const Json out = result_with_figures(result, svg);
    if (!stream) return call.reply(out);
    call.exchange->write(sse_event(dump(out), "result"));
  } catch (const StoppedError&) {
    const HttpError stopped(503, "the experiment was stopped");
    if (!stream) throw stopped;
    call.exchange->write(sse_event(error_response(stopped).body, "error"));
  } catch (const std::exception& error) {
    if (!stream) throw;
    call.exchange->write(sse_event(error_response(error).body, "error"));
  }
  call.exchange->end();
}

}  // namespace

Endpoints lab_endpoints() {
  return {{"GET", "/api/lab", Where::worker, list_experiments}, {"POST", "/api/lab/{name}", Where::lab, run_experiment}};
}

}  // namespace heed::serve
