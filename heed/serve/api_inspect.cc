// /api/inspect: tokens, attention maps, predictions and shapes of one input, also with changed attention.
#include <chrono>
#include <cmath>
#include <numeric>

#include "heed/io/json_reader.h"
#include "heed/models/inspection.h"
#include "heed/serve/app.h"
#include "heed/serve/request_image.h"
#include "heed/serve/tensor_json.h"

namespace heed::serve {
namespace {

constexpr int64_t kMostWeights = int64_t{1} << 23;   // in one answer
constexpr int64_t kMostComputed = int64_t{1} << 28;  // of all heads, which are in memory together

std::vector<int64_t> numbers_in(const JsonReader& body, const char* key) {
  std::vector<int64_t> out;
  if (body.has(key))
    for (const JsonReader& each : body[key].list()) out.push_back(each.whole(0, 1 << 20));
  return out;
}

struct InspectRequest {
  InspectOptions options = {};
  std::vector<int64_t> queries = {};
  bool maps = true, compare = true;
};

InspectRequest inspect_request_in(const JsonReader& body, const ModelInfo& info) {
  InspectRequest out{.queries = numbers_in(body, "queries"), .maps = body.flag_or("maps", true), .compare = body.flag_or("compare", true)};
  InspectOptions& options = out.options;
  require(body.has("image") == info.image, info.image ? 400 : 422, "body: ", info.id, " takes ", info.image ? "an image" : "a text");
  if (info.image)
    options.image = image_in(body["image"]);
  else
    options.input = body.text("text");
  if (body.has("pair")) options.pair = body.text("pair");
  if (body.has("target")) options.target = body.text("target");
  options.choice = {.layers = numbers_in(body, "layers"), .heads = numbers_in(body, "heads")};
  options.top = body.has("top") ? body["top"].whole(1, 100) : 5;
  options.every_token = body.flag_or("every_token", false);
  options.shapes = body.flag_or("shapes", false);
  options.terms = body.flag_or("terms", false);
  options.beta = body.has("beta") ? static_cast<float>(body["beta"].number(0, 1000)) : 1;
  options.hidden = numbers_in(body, "hidden");
  if (body.has("off"))
    for (const JsonReader& each : body["off"].list())
      options.off.insert({each.text_or("kind", "attention"), each["layer"].whole(0, 1 << 16), each["head"].whole(0, 1 << 16)});
  return out;
}

Json predictions_json(const std::vector<Prediction>& predictions) {
  Json out = Json::array();
  for (const Prediction& each : predictions) {
    Json labels = Json::array();
    for (const Label& label : each.labels)
      labels.push_back({{"label", label.name}, {"id", label.id}, {"score", short_number(label.score)}});
    out.push_back({{"about", each.about},
                   {"token", each.token < 0 ? Json() : Json(each.token)},
                   {"probabilities", each.probabilities},
                   {"labels", std::move(labels)}});
  }
  return out;
}

Json tokens_json(const std::vector<int64_t>& ids, const Tokenizer& tokenizer) {
  Json out = Json::array();
  for (const int64_t id : ids) out.push_back({{"id", id}, {"text", tokenizer.display(id)}});
  return out;
}

// The queries of the answer. numbers: how many there are of every weight
std::vector<int64_t> chosen_rows(const AttentionMaps& maps, const InspectRequest& request, int64_t numbers) {
  for (const int64_t row : request.queries) require(row < maps.N, 400, "body: queries: found ", row, ", expected less than ", maps.N);
  std::vector<int64_t> rows = request.queries;
  if (rows.empty()) {
    rows.resize(static_cast<size_t>(maps.N));
    std::iota(rows.begin(), rows.end(), int64_t{0});
  }
  const int64_t weights = std::ssize(maps.layers) * std::ssize(maps.heads) * std::ssize(rows) * maps.M * numbers;
  require(weights <= kMostWeights, 400, "body: ", weights, " weights are too many, expected some layers, heads or queries");
  return rows;
}

Json chosen_maps(const Inspection& found, const InspectRequest& request) {
  Json out = Json::array();
  for (const AttentionMaps& each : found.maps) {
    const std::vector<int64_t> rows = chosen_rows(each, request, 1);
    Json maps = maps_json(each, rows);
    maps["rows"] = rows;
    maps["all_layers"] = each.all_layers;
    maps["all_heads"] = each.all_heads;
    out.push_back(std::move(maps));
  }
  return out;
}

Json chosen_terms(const Inspection& found, const InspectRequest& request) {
  constexpr int64_t numbers = 6;  // four terms, their sum, the weight
  Json out = Json::array();
  for (const AttentionMaps& each : found.maps) out.push_back(terms_json(found, each, chosen_rows(each, request, numbers)));
  return out;
}

const char* kind_name(InputKind kind) { return kind == InputKind::image ? "image" : kind == InputKind::text ? "text" : "translation"; }

Json inspection_answer(const ModelInfo& info, const Inspection& found, const InspectRequest& request, LoadedModel& loaded) {
  Json out{{"model", info.id},
           {"architecture", found.architecture},
           {"kind", kind_name(found.kind)},
           {"input", info.image ? "" : found.input},
           {"tokens", info.image ? Json::array() : tokens_json(found.tokens, loaded.text().tokenizer)},
           {"predictions", predictions_json(found.predictions)},
           {"maps", request.maps ? chosen_maps(found, request) : Json::array()},
           {"rollout", Json::array()}};
  if (request.maps)
    for (const float each : found.rollout) out["rollout"].push_back(std::round(static_cast<double>(each) * 1e6) / 1e6);
  if (found.kind == InputKind::translation) {
    out["target_tokens"] = tokens_json(found.target_tokens, loaded.target());
    out["translation"] = found.translation;
    out["own_translation"] = found.own_translation;
  }
  if (info.image)
    out["image"] = {{"data", image_data_url(found.image)},
                    {"width", found.image.width},
                    {"height", found.image.height},
                    {"rows", found.rows},
                    {"columns", found.columns},
                    {"first", found.first}};
  if (request.options.shapes) out["shapes"] = shapes_json(found.shapes);
  if (request.options.terms) out["terms"] = chosen_terms(found, request);
  return out;
}

void check_length(ModelHost& host, const InspectOptions& options) {
  const ModelInfo& info = host.info();
  const EncodeOptions encode{.max_length = info.max_tokens};
  const Tokenizer tokenizer = host.tokenizer();
  const Encoding found = options.pair ? tokenizer.encode(options.input, *options.pair, encode) : tokenizer.encode(options.input, encode);
  const int64_t weights = info.layers * info.heads * found.size() * found.size();
  require(weights <= kMostComputed, 400, "body: text: ", found.size(), " tokens have ", weights, " attention weights, expected at most ",
          kMostComputed, ": a shorter text");
}

void inspect_request(const Call& call) {
  const Json json = call.body();
  const JsonReader body(json, "body");
  const auto host = call.app.models().host(body.text("model"));
  const ModelInfo& info = host->info();
  require(info.maps, 422, info.id, ": the attention of this model has no maps");
  const auto request = std::make_shared<InspectRequest>(inspect_request_in(body, info));
  if (!info.image) check_length(*host, request->options);
  const auto run = [=](LoadedModel& loaded) {
    const auto begin = std::chrono::steady_clock::now();
    const InspectedModel inspected{.model = loaded.model(),
                                   .folder = info.folder,
                                   .tokenizer = info.image ? nullptr : &loaded.text().tokenizer,
                                   .target = info.image ? nullptr : &loaded.target(),
                                   .images = info.image ? &loaded.images() : nullptr};
    const Inspection found = inspect(inspected, request->options);
    Json out = inspection_answer(info, found, *request, loaded);
    if (request->compare && request->options.changes_attention()) {
      InspectOptions unchanged = request->options;
      unchanged.beta = 1;
      unchanged.hidden.clear();
      unchanged.off.clear();
      out["before"] = predictions_json(inspect(inspected, unchanged).predictions);
    }
    out["milliseconds"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    call.reply_later([made = std::move(out)]() mutable { return std::move(made); });
  };
  host->submit(ModelJob{.run = run, .failed = call.failed(), .cancelled = call.cancelled()});
}

}  // namespace

Endpoints inspect_endpoints() { return {{"POST", "/api/inspect", Where::worker, inspect_request}}; }

}  // namespace heed::serve
