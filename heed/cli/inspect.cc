// heed inspect: what a model is made of and what it costs; with an input, where its heads look.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <string>

#include "heed/cli/command.h"
#include "heed/cli/inspect_look.h"
#include "heed/cli/inspect_tree.h"
#include "heed/cli/model_name.h"
#include "heed/cli/print_json.h"
#include "heed/core/nearest.h"
#include "heed/io/paths.h"

namespace heed::cli {
namespace {

struct InspectFlags {
  std::string folder, size, layers, heads, query, kind;
  std::string html, png, svg;
  std::vector<std::string> input;  // one at most
  std::string pair, target;
  bool has_pair = false, has_target = false, ids = false, all = false, json = false;
};

int64_t number_in(std::string_view text, const char* flag) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  check<UsageError>(error == std::errc() && end == text.data() + text.size() && out >= 0, flag, ": found ", in_quotes(text, 20),
                    ", expected a number");
  return out;
}

std::vector<std::string> words_in(const std::string& text, std::string_view gaps) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(gaps, at), end = text.find_first_of(gaps, begin);
    if (begin == std::string::npos) break;
    out.push_back(text.substr(begin, end - begin));
    at = std::min(end, text.size());
  }
  return out;
}

// "0,3-5" -> 0, 3, 4, 5
std::vector<int64_t> ranges_in(const std::string& text, const char* flag) {
  constexpr int64_t most = 4096;
  std::vector<int64_t> out;
  for (const std::string& word : words_in(text, ", ")) {
    const size_t dash = word.find('-');
    const int64_t first = number_in(word.substr(0, dash), flag),
                  last = dash == std::string::npos ? first : number_in(word.substr(dash + 1), flag);
    check<UsageError>(first <= last && last < most, flag, ": found ", in_quotes(word, 20), ", expected for example 0,3-5");
    for (int64_t i = first; i <= last; ++i) out.push_back(i);
  }
  check<UsageError>(text.empty() || !out.empty(), flag, ": found nothing, expected for example 0,3-5");
  return out;
}

// "batch=8 tokens=128"
InputSize size_in(const std::string& text) {
  InputSize out;
  const std::vector<std::string> keys{"batch", "tokens", "target"};
  for (const std::string& word : words_in(text, ", ")) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const bool known = equals != std::string::npos && std::find(keys.begin(), keys.end(), key) != keys.end();
    check<UsageError>(known, "--size: found ", in_quotes(word, 30), ", expected batch=, tokens= or target= and a number",
                      did_you_mean(key, keys));
    const int64_t value = number_in(word.substr(equals + 1), "--size");
    check<UsageError>(value >= 1, "--size: ", key, " is ", value, ", expected 1 or more");
    (key == "batch" ? out.batch : key == "tokens" ? out.tokens : out.target) = value;
  }
  return out;
}

void show_tree(const InspectFlags& options) {
  const ModelChoice choice{.preset = options.folder};
  const Model model = outlined(options.folder, config_named("inspect", options.folder, choice));
  const ModelCost cost = cost_of(model, size_in(options.size));
  if (options.json)
    print_json_line(tree_json(model, cost));
  else
    print_tree(std::cout, model, cost, {options.all});
}

// "class", a token's number, or row,column of a patch.
int64_t query_in(const Look& look, const std::string& text) {
  if (text.empty()) return default_query(look);
  check<UsageError>(look.kind == InputKind::picture, "--query: is for pictures; of texts every token is shown");
  const std::vector<std::string> words = words_in(text, ", ");
  check<UsageError>(words.size() == 2, "--query: found ", in_quotes(text, 20),
                    ", expected the row and the column of a patch, for example 3,5");
  const int64_t row = number_in(words[0], "--query"), column = number_in(words[1], "--query");
  check<UsageError>(row < look.rows && column < look.columns, "--query: patch ", row, ",", column, " of ", look.rows, " x ", look.columns);
  return look.first + row * look.columns + column;
}

void tell_size(const std::string& file) {
  constexpr int64_t large = 8'000'000;
  const auto bytes = file_bytes(file);
  std::cout << file << ": " << readable_bytes(bytes) << (bytes > large ? "; --layers and --heads make it smaller" : "") << '\n';
}

void show_look(const InspectFlags& options) {
  LookOptions what{.input = options.input[0], .ids = options.ids};
  if (options.has_pair) what.pair = options.pair;
  if (options.has_target) what.target = options.target;
  what.choice = {.layers = ranges_in(options.layers, "--layers"), .heads = ranges_in(options.heads, "--heads")};
  Look look = look_at(options.folder, what);
  if (!options.kind.empty()) {  // the page still has all of them, this one first
    const auto found =
        std::find_if(look.maps.begin(), look.maps.end(), [&](const AttentionMaps& maps) { return maps.kind == options.kind; });
    check<UsageError>(found != look.maps.end(), "--maps: ", look.architecture, " has no ", options.kind, " maps");
    std::rotate(look.maps.begin(), found, found + 1);
  }
  const int64_t query = query_in(look, options.query);
  if (!options.html.empty()) write_text(options.html, html_page(look));
  if (!options.png.empty() || !options.svg.empty()) {
    const Drawing drawing = still(look, query);
    if (!options.png.empty()) write_png(options.png, drawing.pixels());
    if (!options.svg.empty()) write_text(options.svg, drawing.svg());
  }
  for (const std::string& file : {options.html, options.png, options.svg})
    if (!file.empty()) tell_size(file);
  if (options.json)
    print_json_line(look_json(look));
  else if (options.html.empty() && options.png.empty() && options.svg.empty())
    std::cout << text_view(look, query);
}

void run_inspect(const InspectFlags& options) {
  check<UsageError>(options.input.size() <= 1, "inspect: found ", options.input.size(),
                    " inputs, expected one at most; put a sentence in quotes");
  const bool draws = !(options.html + options.png + options.svg + options.layers + options.heads + options.query + options.kind).empty();
  check<UsageError>(!options.input.empty() || !(draws || options.has_pair || options.has_target || options.ids),
                    "inspect: found no input, expected a picture or a sentence to look at");
  check_model_name("inspect", options.folder);
  check<UsageError>(options.input.empty() || !is_preset(options.folder), "inspect: ", options.folder,
                    " is a preset without weights, expected the folder of a model to look into");
  if (options.input.empty())
    show_tree(options);
  else
    show_look(options);
}

constexpr const char* kHelp = R"(Examples:
  heed inspect vit-base                          modules, shapes, parameters, arithmetic, memory
  heed inspect gpt2 --size 'batch=8 tokens=512'  for another size of input
  heed inspect minilm 'The cat sat on the mat.'  which tokens look at which, here in the terminal
  heed inspect minilm 'The cat sat.' --layers 0,5 --heads 0-3 --html cat.html
  heed inspect vit-base cat.png --html cat.html  point at a patch to see where it looks
  heed inspect vit-base cat.png --png look.png --query 3,5
  heed inspect en-de 'A dog runs.' --target 'Ein Hund rennt.' --svg alignment.svg)";

const Command inspect_command("inspect", "Show what a model is made of, what it costs, and where its heads look", [](Flags& flags) {
  auto options = std::make_shared<InspectFlags>();
  flags.option("model", options->folder, "Folder of a model or of a run; to see its parts, a config.json or a preset will do")
      .value("MODEL")
      .required();
  // Or the parser would take "[MASK] a, b" for a list in brackets.
  flags.option("input", options->input, "A picture's file or a sentence to look at").shown("INPUT").many().one_value();
  flags.option("--size", options->size, "Of inputs: batch, tokens, target; by default 1 and 128").value("SIZES");
  flags.flag("--all", options->all, "Print every layer, though they are alike");
  flags.option("--layers", options->layers, "Which to look at: 0,3-5; all unless given").value("LIST");
  flags.option("--heads", options->heads, "Which to look at: 0,3-5; all unless given").value("LIST");
  flags.option("--query", options->query, "The patch that looks, in drawings; the class token unless given").value("ROW,COLUMN");
  flags
      .each(
          "--pair", [options](const std::string& text) { options->pair = text, options->has_pair = true; }, "A second sentence")
      .value("TEXT");
  flags
      .each(
          "--target", [options](const std::string& text) { options->target = text, options->has_target = true; },
          "A translation of the sentence; the model's own unless given")
      .value("TEXT");
  flags.option("--maps", options->kind, "Of translations, what drawings show: cross, encoder or decoder")
      .value("KIND")
      .must_be(one_of({"cross", "encoder", "decoder"}));
  flags.flag("--ids", options->ids, "Sentences are numbers of tokens");
  flags.option("--html", options->html, "Write a page to look at in a browser").value("FILE");
  flags.option("--png", options->png, "Write a drawing").value("FILE");
  flags.option("--svg", options->svg, "Write a drawing that can be enlarged").value("FILE");
  flags.flag("--json", options->json, "For machines");
  flags.footer(kHelp);
  flags.completes(preset_candidates);
  return [options] {
    options->folder = named_model(options->folder);
    run_inspect(*options);
  };
});

}  // namespace
}  // namespace heed::cli
