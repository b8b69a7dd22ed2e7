#include "heed/train/sample_json.h"

#include "heed/io/json_reader.h"
#include "heed/io/markup.h"

namespace heed {
namespace {

constexpr int64_t kMaxSamplePixels = int64_t{1} << 22;

Image image_in(const std::string& text) {
  const std::optional<std::vector<std::byte>> bytes = from_base64(text);
  check<FileError>(bytes.has_value(), "image: found ", in_quotes(text, 20), ", expected base64");
  return parse_image(*bytes, "image", kMaxSamplePixels);
}

}  // namespace

void to_json(Json& json, const Sample& sample) {
  json = {{"truth", sample.truth}, {"guess", sample.guess}, {"score", sample.score}, {"right", sample.right}};
  if (!sample.source.empty()) json["source"] = sample.source;
  if (sample.image.width > 0) {
    const std::string png = png_bytes(sample.image);
    json["image"] = base64(std::as_bytes(std::span(png)));
  }
  if (!sample.columns.empty()) {
    json["rows"] = sample.rows;
    json["columns"] = sample.columns;
  }
  if (sample.map.empty()) return;
  json["map_rows"] = sample.map_rows;
  json["map_columns"] = sample.map_columns;
  json["map"] = sample.map;
}

void from_json(const Json& document, Sample& sample) {
  const JsonReader json(document, "sample");
  json.object();
  const auto texts_in = [&](const char* key) {
    std::vector<std::string> out;
    if (json.has(key))
      for (const JsonReader& each : json[key].list()) out.push_back(each.text());
    return out;
  };
  sample.truth = json.text_or("truth", "");
  sample.guess = json.text_or("guess", "");
  sample.source = json.text_or("source", "");
  sample.score = json.has("score") ? json["score"].number() : 0;  // null: not finite
  sample.right = json.flag_or("right", false);
  sample.rows = texts_in("rows");
  sample.columns = texts_in("columns");
  sample.map_rows = json.whole_or("map_rows", 0);
  sample.map_columns = json.whole_or("map_columns", 0);
  if (json.has("map"))
    for (const JsonReader& weight : json["map"].list())
      sample.map.push_back(weight.json().is_null() ? 0 : static_cast<float>(weight.number()));
  for (const char* key : {"image", "picture"})  // picture: of older versions
    if (json.has(key)) sample.image = image_in(json.text(key));
  const auto most = static_cast<int64_t>(sample.map.size());
  check<FileError>(sample.map_rows >= 0 && sample.map_columns >= 0 && sample.map_rows <= most && sample.map_columns <= most &&
                       sample.map_rows * sample.map_columns == most,
                   "sample: found ", most, " weights, expected ", sample.map_rows, " rows of ", sample.map_columns);
  const bool texts = sample.image.width == 0 && most > 0;
  check<FileError>(!texts || (static_cast<int64_t>(sample.columns.size()) == sample.map_columns &&
                              (sample.map_rows == 1 || static_cast<int64_t>(sample.rows.size()) == sample.map_rows)),
                   "sample: found ", sample.rows.size(), " rows and ", sample.columns.size(), " columns, expected ", sample.map_rows,
                   " and ", sample.map_columns, " as in its map");
}

}  // namespace heed
