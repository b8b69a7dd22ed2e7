// heed variants: what config.json and key=value settings can choose, and the score terms of the library.
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/command.h"
#include "heed/cli/print_json.h"
#include "heed/cli/terminal_text.h"
#include "heed/cli/two_columns.h"
#include "heed/core/nearest.h"
#include "heed/models/choices.h"
#include "heed/train/settings_value.h"

namespace heed::cli {
namespace {

std::string with_source(const std::string& summary, const std::string& source) {
  return summary + (source.empty() ? "" : " (" + source + ")");
}

void print_choices(std::ostream& out, const Choices& list) {
  out << list.key << ": " << list.meaning << "\n  \"" << list.key << "\" in config.json, " << list.setting << "= in settings\n\n";
  for (const Choice& each : list.all) {
    std::string text = with_source(each.summary, each.source) + (each.needs_grid ? "; for images\n" : "\n");
    std::string aliases;
    for (const std::string& alias : each.aliases) aliases += (aliases.empty() ? "also called " : ", ") + alias;
    if (!aliases.empty()) text += aliases + "\n";
    if (each.term)
      for (const TermSetting& setting : each.term->settings) text += setting.name + ": " + setting.meaning + "\n";
    put_row(out, each.term ? each.term->usage() : each.name, text, 36);
  }
}

void print_terms(std::ostream& out) {
  out << "terms: score terms, which add to the score of query i and key j or mask it\n  structs in heed/attention/terms/\n\n";
  for (const TermInfo& each : term_infos()) {
    std::string text = with_source(each.summary, each.source) + "\n";
    for (const TermParameter& parameter : each.parameters) text += parameter.name + ": " + parameter.shape_text() + "\n";
    put_row(out, each.struct_name + ", " + each.file, text, 36);
  }
}

Json choices_json(const Choices& list) {
  Json choices = Json::array();
  for (const Choice& each : list.all) {
    Json one{{"name", each.name}, {"summary", each.summary}, {"source", each.source}, {"aliases", each.aliases}};
    one["images_only"] = each.needs_grid;
    if (each.term)
      for (const TermSetting& setting : each.term->settings)
        one["settings"].push_back({{"name", setting.name}, {"meaning", setting.meaning}});
    choices.push_back(std::move(one));
  }
  return {{"key", list.key}, {"setting", list.setting}, {"meaning", list.meaning}, {"choices", std::move(choices)}};
}

Json terms_json() {
  Json out = Json::array();
  for (const TermInfo& each : term_infos()) {
    Json parameters = Json::array();
    for (const TermParameter& parameter : each.parameters)
      parameters.push_back({{"name", parameter.name}, {"shape", parameter.shape_text()}});
    out.push_back({{"struct", each.struct_name},
                   {"file", each.file},
                   {"summary", each.summary},
                   {"source", each.source},
                   {"parameters", std::move(parameters)}});
  }
  return out;
}

void run_variants(const std::string& key, bool as_json) {
  std::vector<const Choices*> lists;
  std::vector<std::string> known;
  for (const Choices& list : all_choices()) {
    known.push_back(list.key);
    if (key.empty() || key == list.key) lists.push_back(&list);
  }
  known.emplace_back("terms");
  const bool terms = key == "terms";
  check<UsageError>(terms || !lists.empty(), "variants: found '", key, "', expected one of ", listed(known), did_you_mean(key, known));
  if (as_json) {
    if (terms) return print_json_line({{"terms", terms_json()}});
    Json out = Json::array();
    for (const Choices* list : lists) out.push_back(choices_json(*list));
    return print_json_line({{"lists", std::move(out)}});
  }
  std::ostringstream out;
  if (terms) print_terms(out);
  for (const Choices* list : lists) {
    if (list != lists.front()) out << '\n';
    print_choices(out, *list);
  }
  std::cout << for_terminal(out.str());
}

const Command variants_command("variants", "List positions, patterns, kinds of attention and poolings", [](Flags& flags) {
  const auto key = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  flags.option("KEY", *key, "One list: positions, pattern, attention, features, pooling or norm; or the score terms of C++: terms")
      .value("KEY")
      .no_default();
  flags.flag("--json", *as_json, "One JSON object");
  flags.footer("Examples:\n  heed variants\n  heed variants positions\n  heed variants terms");
  return [key, as_json] { run_variants(*key, *as_json); };
});

}  // namespace
}  // namespace heed::cli
