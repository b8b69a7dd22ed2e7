#include "heed/cli/inspect_look.h"

#include <algorithm>
#include <charconv>

#include "heed/core/autograd.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/models/config.h"
#include "heed/models/generate.h"
#include "heed/models/pictures.h"
#include "heed/models/translate.h"
#include "heed/text/tokenizer.h"

namespace heed::cli {
namespace {

using Ids = std::vector<int64_t>;

// Texts of a model as tokens, or their numbers where the folder has no tokenizer or the caller has none to give.
class Reader {
 public:
  Reader(const Path& folder, bool ids, bool target = false) {
    if (!ids) tokenizer_.emplace(target ? Tokenizer::open_target(folder) : Tokenizer::open(folder));
  }

  struct Tokens {
    Ids ids, types;
  };
  Tokens read(const std::string& text, const std::optional<std::string>& pair = {}) const {
    if (!tokenizer_) {
      check<UsageError>(!pair, "inspect: --pair beside --ids, expected one of them");
      Tokens out{.ids = numbers_in(text), .types = {}};
      out.types.resize(out.ids.size());
      return out;
    }
    const Encoding encoding = pair ? tokenizer_->encode(text, *pair) : tokenizer_->encode(text);
    return {{encoding.ids.begin(), encoding.ids.end()}, {encoding.type_ids.begin(), encoding.type_ids.end()}};
  }
  std::string label(int64_t id) const { return tokenizer_ ? tokenizer_->display(id) : std::to_string(id); }
  std::vector<std::string> labels(std::span<const int64_t> ids) const {
    std::vector<std::string> out;
    for (int64_t id : ids) out.push_back(label(id));
    return out;
  }
  std::string text(const Ids& ids) const {  // nothing without a tokenizer
    return tokenizer_ ? text_of(*tokenizer_, std::vector<int32_t>(ids.begin(), ids.end())) : "";
  }
  int64_t mask() const { return tokenizer_ ? tokenizer_->id("[MASK]").value_or(-1) : -1; }

 private:
  static Ids numbers_in(const std::string& text) {
    Ids out;
    for (const char *at = text.data(), *end = at + text.size(); at < end;) {
      if (*at == ' ' || *at == ',') {
        ++at;
        continue;
      }
      int64_t id = 0;
      const auto [next, error] = std::from_chars(at, end, id);
      check<UsageError>(error == std::errc() && id >= 0, "inspect: found ", in_quotes(std::string(at, end), 20),
                        ", expected numbers of tokens with spaces or commas between");
      out.push_back(id);
      at = next;
    }
    return out;
  }

  std::optional<Tokenizer> tokenizer_ = {};
};

Tensor as_batch(const Ids& ids) { return Tensor::from(ids, {1, std::ssize(ids)}); }

void check_ids(const Model& model, const Ids& ids, const std::string& text) {
  check<FileError>(!ids.empty(), "inspect: the text ", in_quotes(text, 40), " has no tokens, expected one or more");
  const Config config(model.config(), "config.json");
  const int64_t words = config.size("vocab_size", int64_t{1} << 40);
  for (int64_t id : ids) check<FileError>(id < words, "inspect: token ", id, ", the model knows ", words);
  const int64_t places = most_tokens(model);
  check<FileError>(std::ssize(ids) <= places, "inspect: ", ids.size(), " tokens, the model has ", places, " positions");
}

bool is_image_file(const std::string& text) { return is_image_name(text) && is_plain_file(text); }

void look_at_picture(const Model& model, const Path& folder, const LookOptions& options, Look& look) {
  check<FileError>(path_exists(options.input), options.input, ": there is no such file; ", model.architecture(),
                   " looks at pictures, expected a ", kReadFormats, " file");
  const PictureReader reader(folder);
  const Picture picture = read_picture(options.input);
  look.picture = reader.prepared(picture);
  const Tensor pixels = reader(std::span(&picture, 1));
  check_image_size(model, folder, pixels);
  const Named out = model({{"pixel_values", pixels}}, {.attentions = true});
  look.maps = {maps_in(out, "attentions.", "attention", options.choice)};
  AttentionMaps& maps = look.maps[0];
  const Config config(model.config(), "config.json");
  const std::array<int64_t, 2> patch = config.sides("patch_size", 16);
  look.rows = look.picture.height / patch[0];
  look.columns = look.picture.width / patch[1];
  look.first = maps.N - look.rows * look.columns;
  check(look.first >= 0 && maps.M == maps.N, "inspect: maps of ", maps.N, " x ", maps.M, " tokens on a grid of ", look.rows, " x ",
        look.columns, ", expected a key for every patch");
  look.rollout = rollout(out, "attentions.");
  look.answers = answers_in(model, out, {}, {});
  const std::array names{"[class]", "[teacher]"};
  for (int64_t i = 0; i < look.first; ++i) maps.rows.emplace_back(names[static_cast<size_t>(std::min<int64_t>(i, 1))]);
  for (int64_t i = 0; i < look.rows * look.columns; ++i)
    maps.rows.push_back("row " + std::to_string(i / look.columns) + ", column " + std::to_string(i % look.columns));
  maps.columns = maps.rows;
}

void look_at_text(const Model& model, const Path& folder, const LookOptions& options, Look& look) {
  const Reader reader(folder, options.ids);
  const Reader::Tokens tokens = reader.read(options.input, options.pair);
  check_ids(model, tokens.ids, options.input);
  Named inputs{{"input_ids", as_batch(tokens.ids)}};
  if (model.architecture().starts_with("Bert")) inputs["token_type_ids"] = as_batch(tokens.types);
  const Named out = model(inputs, {.attentions = true});
  look.maps = {maps_in(out, "attentions.", "attention", options.choice)};
  look.maps[0].rows = look.maps[0].columns = reader.labels(tokens.ids);
  look.answers = answers_in(
      model, out, tokens.ids, [&](int64_t id) { return reader.label(id); }, reader.mask());
  look.rollout = rollout(out, "attentions.");
}

// All that the model writes, with the token that texts begin with.
Ids written(const Model& model, const Ids& source) {
  GenerationOptions writing = generation_options(model);
  const Json& rules = model.generation().is_null() ? model.config() : model.generation();
  if (!rules.contains("max_length")) writing.max_length = std::min(2 * std::ssize(source) + 10, most_tokens(model));
  return generate(model, {{"input_ids", as_batch(source)}}, writing).to_vector<int64_t>();
}

void look_at_translation(const Model& model, const Path& folder, const LookOptions& options, Look& look) {
  const Reader reader(folder, options.ids), target_reader(folder, options.ids, true);
  const Ids source = reader.read(options.input, options.pair).ids;
  check_ids(model, source, options.input);
  Ids target;
  look.own_translation = !options.target;
  if (options.target) {
    target = target_reader.read(*options.target).ids;
    check_ids(model, target, *options.target);
    target.insert(target.begin(), generation_options(model).start);
  } else {
    target = written(model, source);
  }
  check<FileError>(target.size() >= 2 && target[0] >= 0, "inspect: ", target.size(), " tokens in the target, expected 2 or more");
  const Ids read(target.begin(), target.end() - 1), said(target.begin() + 1, target.end());
  const Named out = model({{"input_ids", as_batch(source)}, {"decoder_input_ids", as_batch(read)}}, {.attentions = true});
  for (int64_t layer : options.choice.layers)
    check<UsageError>(
        out.contains("encoder_attentions." + std::to_string(layer)) || out.contains("cross_attentions." + std::to_string(layer)),
        "inspect: layer ", layer, ", the model has no such layer");
  look.maps = {maps_in(out, "cross_attentions.", "cross", options.choice, true),
               maps_in(out, "encoder_attentions.", "encoder", options.choice, true),
               maps_in(out, "decoder_attentions.", "decoder", options.choice, true)};
  // A row of cross attention is called by the token that it helps to write, so that it reads as an alignment.
  look.maps[0].rows = target_reader.labels(said);
  look.translation = target_reader.text(said);
  look.maps[0].columns = look.maps[1].rows = look.maps[1].columns = reader.labels(source);
  look.maps[2].rows = look.maps[2].columns = target_reader.labels(read);
  std::erase_if(look.maps, [](const AttentionMaps& maps) { return maps.layers.empty(); });
}

// "vit-tiny" of models/vit-tiny; "001/best" of a run, whose models are all called so.
std::string model_name(const Path& folder) {
  const Path whole = std::filesystem::weakly_canonical(folder);
  const std::string name = whole.filename().string(), above = whole.parent_path().filename().string();
  return (name == "best" || name == "last") && !above.empty() ? above + "/" + name : name;
}

}  // namespace

Look look_at(const Path& folder, const LookOptions& options) {
  const NoGrad quiet;
  const Model model = load(folder);
  Look look{.kind = input_kind(model), .model = model_name(folder), .architecture = model.architecture(), .input = options.input};
  const bool picture = look.kind == InputKind::picture;
  if (picture) look.input = printable(options.input);
  check<UsageError>(look.kind == InputKind::translation || !options.target, "inspect: --target for ", model.architecture(),
                    ", expected a model that translates");
  check<UsageError>(!picture || (!options.pair && !options.ids), "inspect: --pair and --ids are for texts; ", model.architecture(),
                    " looks at pictures");
  check<FileError>(picture || !is_image_file(options.input), options.input, ": is a picture, but ", model.architecture(), " reads text");
  if (picture)
    look_at_picture(model, folder, options, look);
  else if (look.kind == InputKind::text)
    look_at_text(model, folder, options, look);
  else
    look_at_translation(model, folder, options, look);
  return look;
}

int64_t default_query(const Look& look) { return look.kind == InputKind::picture && look.first == 0 ? -1 : 0; }

std::vector<float> patches_seen(const Look& look, std::span<const float> map, int64_t query) {
  const int64_t N = look.maps[0].N, M = look.maps[0].M;
  std::vector<float> out(static_cast<size_t>(M - look.first));
  for (int64_t i = query < 0 ? 0 : query; i < (query < 0 ? N : query + 1); ++i)
    for (int64_t j = look.first; j < M; ++j)
      out[static_cast<size_t>(j - look.first)] += map[static_cast<size_t>(i * M + j)] / static_cast<float>(query < 0 ? N : 1);
  return out;
}

}  // namespace heed::cli
