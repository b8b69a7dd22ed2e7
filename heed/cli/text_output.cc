#include "heed/cli/text_output.h"

#include "heed/cli/int8_flag.h"
#include "heed/cli/nonfinite_flag.h"

namespace heed::cli {

Model load_text_generator(const Path& folder, bool int8, bool nonfinite, const char* otherwise) {
  Model model = load(folder, {.names = {.allow_nonfinite = nonfinite_warning(nonfinite)}, .weights = weights_for(int8)});
  check<FileError>(model.generates(), folder.string(), ": ", model.architecture(), ": ", otherwise);
  return model;
}

GenerationOptions generation_options_in(const Path& folder, const Model& model) {
  const char* const file = model.generation().is_null() ? "config.json" : "generation_config.json";
  return generation_options(generation_settings(model), (folder / file).string());
}

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<int32_t> prompt)
    : tokenizer_(tokenizer), ids_(std::move(prompt)), text_(text_of(tokenizer, ids_)), returned_(text_.size()) {}

std::string TextStream::take_until(size_t end) {
  if (end <= returned_) return {};
  const std::string out = text_.substr(returned_, end - returned_);
  returned_ = end;
  return out;
}

std::string TextStream::add(std::span<const int32_t> ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  text_ = text_of(tokenizer_, ids_);
  // An incomplete character decodes to U+FFFD until its other bytes arrive.
  constexpr std::string_view incomplete = "\uFFFD";
  std::string_view complete = text_;
  while (complete.ends_with(incomplete)) complete.remove_suffix(incomplete.size());
  return take_until(complete.size());
}

std::string TextStream::finish() { return take_until(text_.size()); }

}  // namespace heed::cli
