// heed inspect: modules and cost of a model; with an input, its predictions and attention maps.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "heed/cli/command.h"
#include "heed/cli/image_size_flag.h"
#include "heed/cli/inspect_shapes.h"
#include "heed/cli/inspect_tree.h"
#include "heed/cli/inspection.h"
#include "heed/cli/model_name.h"
#include "heed/cli/print_json.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/train/cost_report.h"
#include "heed/train/settings_value.h"

namespace heed::cli {
namespace {

struct InspectFlags {
  std::string folder, size, layers, heads, query, kind;
  std::string html, png, svg;
  std::vector<std::string> input;  // at most one
  std::string pair, target;
  bool has_pair = false, has_target = false, ids = false, all = false, shapes = false, terms = false, json = false;
  ImageSizeFlag image = {};
};

int64_t number_in(std::string_view text, const char* flag) {
  const int64_t out = parse_number<int64_t>(text).value_or(-1);
  check<UsageError>(out >= 0, flag, ": found ", in_quotes(text, 20), ", expected a number");
  return out;
}

std::vector<std::string> split(const std::string& text, std::string_view separators) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(separators, at), end = text.find_first_of(separators, begin);
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
  for (const std::string& word : split(text, ", ")) {
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
  Settings settings("--size");
  settings.add("batch", out.batch, "sequences or images", {.least = 1});
  settings.add("tokens", out.tokens, "tokens of a sequence", {.least = 1});
  settings.add("target", out.target, "target tokens of a translation", {.least = 1});
  for (const std::string& word : split(text, ", ")) settings.assign(word);
  return out;
}

void show_shapes(const InspectFlags& options, const std::string& architecture, const std::vector<ShapeRecord>& shapes) {
  if (options.json) {
    print_json_line({{"architecture", architecture}, {"shapes", shapes_json(shapes)}});
  } else {
    std::cout << architecture << "\n\n";
    print_shapes(std::cout, shapes, options.all);
  }
}

void show_tree(const InspectFlags& options) {
  const ModelChoice choice{.preset = options.folder};
  const Model model = shapes_only_model(options.folder, config_named("inspect", options.folder, choice));
  if (options.shapes) return show_shapes(options, model.architecture(), shapes_of_example(model, size_in(options.size)));
  const ModelCost cost = cost_of(model, size_in(options.size));
  if (options.json)
    print_json_line(tree_json(model, cost));
  else
    print_tree(std::cout, model, cost, {options.all});
}

// "row,column" of a patch -> its token; empty: the default query
int64_t query_in(const Inspection& inspection, const std::string& text) {
  if (text.empty()) return default_query(inspection);
  check<UsageError>(inspection.kind == InputKind::image, "--query: is only for images; for texts every token is shown");
  const std::vector<std::string> words = split(text, ", ");
  check<UsageError>(words.size() == 2, "--query: found ", in_quotes(text, 20),
                    ", expected the row and the column of a patch, for example 3,5");
  const int64_t row = number_in(words[0], "--query"), column = number_in(words[1], "--query");
  check<UsageError>(row < inspection.rows && column < inspection.columns, "--query: patch ", row, ",", column, " of ", inspection.rows,
                    " x ", inspection.columns);
  return inspection.first + row * inspection.columns + column;
}

// For --terms: a patch, or of a text a token or its number. By default the class token or the middle patch; the last token of a causal map.
int64_t term_query_in(const Inspection& inspection, const std::string& text) {
  const AttentionMaps& maps = inspection.maps[0];
  if (text.empty()) {
    const int64_t usual = default_query(inspection);
    return usual < 0 ? (inspection.rows / 2) * inspection.columns + inspection.columns / 2 : maps.causal() ? maps.N - 1 : usual;
  }
  if (inspection.kind == InputKind::image) return query_in(inspection, text);
  const auto named = [&](const std::string& token) { return token == text || token == "\u00b7" + text; };  // with a space before it
  const int64_t number = parse_number<int64_t>(text).value_or(std::find_if(maps.rows.begin(), maps.rows.end(), named) - maps.rows.begin());
  check<UsageError>(0 <= number && number < maps.N, "--query: found ", in_quotes(text, 20),
                    ", expected a token of the text or its number, 0 to ", maps.N - 1);
  return number;
}

void show_terms(const InspectFlags& options, const Inspection& inspection) {
  const int64_t query = term_query_in(inspection, options.query);
  if (options.json)
    print_json_line({{"architecture", inspection.architecture},
                     {"input", inspection.input},
                     {"terms", terms_json(inspection, inspection.maps[0], std::array{query})}});
  else
    std::cout << terms_view(inspection, query);
}

void print_size(const std::string& file) {
  constexpr int64_t large = 8'000'000;
  const auto bytes = file_bytes(file);
  std::cout << file << ": " << readable_bytes(bytes) << (bytes > large ? "; --layers and --heads make it smaller" : "") << '\n';
}

void show_inspection(const InspectFlags& options) {
  InspectOptions what{.input = options.input[0], .ids = options.ids};
  if (options.has_pair) what.pair = options.pair;
  if (options.has_target) what.target = options.target;
  what.choice = {.layers = ranges_in(options.layers, "--layers"), .heads = ranges_in(options.heads, "--heads")};
  what.shapes = options.shapes;
  what.maps = !options.shapes;
  what.terms = options.terms;
  Inspection inspection = inspect(options.folder, what);
  if (options.shapes) return show_shapes(options, inspection.architecture, inspection.shapes);
  if (!options.kind.empty()) {  // moved to the front; the page still has all of them
    const auto found =
        std::find_if(inspection.maps.begin(), inspection.maps.end(), [&](const AttentionMaps& maps) { return maps.kind == options.kind; });
    check<UsageError>(found != inspection.maps.end(), "--maps: ", inspection.architecture, " has no ", options.kind, " maps");
    std::rotate(inspection.maps.begin(), found, found + 1);
  }
  if (options.terms) return show_terms(options, inspection);
  const int64_t query = query_in(inspection, options.query);
  if (!options.html.empty()) write_text(options.html, html_page(inspection));
  if (!options.png.empty() || !options.svg.empty()) {
    const Drawing drawing = static_drawing(inspection, query);
    if (!options.png.empty()) write_png(options.png, drawing.pixels());
    if (!options.svg.empty()) write_text(options.svg, drawing.svg());
  }
  for (const std::string& file : {options.html, options.png, options.svg})
    if (!file.empty()) print_size(file);
  if (options.json)
    print_json_line(inspection_json(inspection));
  else if (options.html.empty() && options.png.empty() && options.svg.empty())
    std::cout << text_view(inspection, query);
}

void run_inspect(InspectFlags& options) {
  check<UsageError>(options.input.size() <= 1, "inspect: found ", options.input.size(),
                    " inputs, expected one at most; put a sentence in quotes");
  const bool draws = !(options.html + options.png + options.svg).empty(),
             selects = draws || options.terms || !(options.layers + options.heads + options.query + options.kind).empty();
  check<UsageError>(
      !options.input.empty() || !(selects || options.has_pair || options.has_target || options.ids || !options.image.size.empty()),
      "inspect: found no input, expected an image or a sentence");
  check<UsageError>(!selects || !options.shapes, "inspect: found --shapes with options of maps, expected one of them");
  check<UsageError>(!draws || !options.terms, "inspect: found --terms with --html, --png or --svg, expected one of them");
  check_model_name("inspect", options.folder);
  check<UsageError>(options.input.empty() || !is_preset(options.folder), "inspect: ", options.folder,
                    " is a preset without weights, expected the folder of a model");
  if (options.input.empty()) return show_tree(options);
  const std::string& input = options.input.front();
  check<FileError>(!is_image_name(input) || input.find(' ') != std::string::npos || path_exists(input), input, ": there is no such file");
  options.folder = options.image.folder_for("inspect", options.folder, false);
  show_inspection(options);
}

constexpr const char* kInspectHelp = R"(Examples:
  heed inspect vit-base                          modules, shapes, parameters, arithmetic, memory
  heed inspect gpt2 --size 'batch=8 tokens=512'  for another size of input
  heed inspect gpt2 --shapes --size tokens=5     the shape of every intermediate result, for an input of 5 tokens
  heed inspect minilm 'The cat sat on the mat.'  the largest attention weights, in the terminal
  heed inspect minilm 'The cat sat.' --terms     what content and positions contribute to the scores of every head
  heed inspect minilm 'The cat sat.' --terms --layers 0 --heads 2 --query cat
  heed inspect minilm 'The cat sat.' --layers 0,5 --heads 0-3 --html cat.html
  heed inspect vit-base cat.png --html cat.html  an interactive page: point at a patch to see its attention
  heed inspect vit-base cat.png --png look.png --query 3,5
  heed inspect en-de 'A dog runs.' --target 'Ein Hund rennt.' --svg alignment.svg)";

const Command inspect_command("inspect", "Show modules, cost and attention maps of a model", [](Flags& flags) {
  auto options = std::make_shared<InspectFlags>();
  flags.option("model", options->folder, "Folder of a model or of a run; without INPUT also a config.json or a preset")
      .value("MODEL")
      .required();
  // one_value(): CLI11 would parse "[MASK] a, b" as a list in brackets.
  flags.option("input", options->input, "An image file or a sentence").usage("INPUT").many().one_value();
  flags.option("--size", options->size, "Input size: batch, tokens, target; by default 1 and 128").value("SIZES");
  flags.flag("--all", options->all, "Print every layer and call, also identical ones");
  flags.flag("--shapes", options->shapes, "Show the shape of every intermediate result and what it is computed from");
  flags.flag("--terms", options->terms, "Show scores as four terms: content and position of the query with those of the key");
  flags.option("--layers", options->layers, "Layers to include: 0,3-5; all by default").value("LIST");
  flags.option("--heads", options->heads, "Heads to include: 0,3-5; all by default").value("LIST");
  flags
      .option("--query", options->query,
              "The query: a patch ROW,COLUMN, by default the class token; with --terms also a token of a text or its number")
      .value("QUERY");
  flags
      .each(
          "--pair", [options](const std::string& text) { options->pair = text, options->has_pair = true; }, "A second sentence")
      .value("TEXT");
  flags
      .each(
          "--target", [options](const std::string& text) { options->target = text, options->has_target = true; },
          "A translation of the sentence; by default generated by the model")
      .value("TEXT");
  flags.option("--maps", options->kind, "For translations, the attention to draw: cross, encoder or decoder")
      .value("KIND")
      .must_be(one_of({"cross", "encoder", "decoder"}));
  options->image.add_to(flags);
  flags.flag("--ids", options->ids, "Sentences are token ids");
  flags.option("--html", options->html, "Write an interactive page for a browser").value("FILE");
  flags.option("--png", options->png, "Write a PNG drawing").value("FILE");
  flags.option("--svg", options->svg, "Write an SVG drawing").value("FILE");
  flags.flag("--json", options->json, "Print JSON");
  flags.footer(kInspectHelp);
  flags.completes(preset_candidates);
  return [options] {
    options->folder = resolve_model_or_preset(options->folder);
    run_inspect(*options);
  };
});

}  // namespace
}  // namespace heed::cli
