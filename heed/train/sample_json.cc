#include "heed/train/sample_json.h"

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

void from_json(const Json& json, Sample& sample) {
  try {
    check<FileError>(json.is_object(), "sample: found a ", json.type_name(), ", expected an object");
    sample.truth = json.value("truth", "");
    sample.guess = json.value("guess", "");
    sample.source = json.value("source", "");
    sample.score = json.contains("score") && json["score"].is_null() ? 0 : json.value("score", 0.0);  // null: not finite
    sample.right = json.value("right", false);
    sample.rows = json.value("rows", sample.rows);
    sample.columns = json.value("columns", sample.columns);
    sample.map_rows = json.value("map_rows", int64_t{0});
    sample.map_columns = json.value("map_columns", int64_t{0});
    if (json.contains("map"))
      for (const Json& weight : json["map"]) sample.map.push_back(weight.is_null() ? 0 : weight.get<float>());
    const char* image = json.contains("image") ? "image" : "picture";  // of older versions
    if (json.contains(image) && !json[image].is_null()) sample.image = image_in(json[image].get<std::string>());
  } catch (const Json::exception& error) {
    fail<FileError>("sample: found a member of the wrong type: ", in_quotes(error.what(), 200));
  }
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
