// heed variants: what config.json and key=value settings can choose, and the score terms of the library.
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/two_columns.h"
#include "heed/core/nearest.h"
#include "heed/models/choices.h"
#include "heed/train/settings_value.h"

namespace heed::cli {
namespace {

std::string with_source(const std::string& summary, const std::string& source) {
  return summary + (source.empty() ? "" : " (" + source + ")");
}

void print_choices(const Choices& list) {
  std::cout << list.key << ": " << list.meaning << "\n  \"" << list.key << "\" in config.json, " << list.setting << "= in settings\n\n";
  for (const Choice& each : list.all) {
    std::string text = with_source(each.summary, each.source) + (each.needs_grid ? "; for images\n" : "\n");
    std::string aliases;
    for (const std::string& alias : each.aliases) aliases += (aliases.empty() ? "also called " : ", ") + alias;
    if (!aliases.empty()) text += aliases + "\n";
    if (each.term)
      for (const TermSetting& setting : each.term->settings) text += setting.name + ": " + setting.meaning + "\n";
    put_row(std::cout, each.term ? each.term->usage() : each.name, text, 36);
  }
}

void print_terms() {
  std::cout << "terms: score terms, which add to the score of query i and key j or mask it\n  structs in heed/attention/terms/\n\n";
  for (const TermInfo& each : term_infos()) {
    std::string text = with_source(each.summary, each.source) + "\n";
    for (const TermParameter& parameter : each.parameters) text += parameter.name + ": " + parameter.shape_text() + "\n";
    put_row(std::cout, each.struct_name + ", " + each.file, text, 36);
  }
}

void run_variants(const std::string& key) {
  if (key == "terms") return print_terms();
  std::vector<std::string> known;
  for (const Choices& list : all_choices()) {
    known.push_back(list.key);
    if (!key.empty() && key != list.key) continue;
    if (key.empty() && known.size() > 1) std::cout << '\n';
    print_choices(list);
    if (!key.empty()) return;
  }
  known.emplace_back("terms");
  check<UsageError>(key.empty(), "variants: found '", key, "', expected one of ", listed(known), did_you_mean(key, known));
}

const Command variants_command("variants", "List positions, patterns, kinds of attention and poolings", [](Flags& flags) {
  auto key = std::make_shared<std::string>();
  flags.option("KEY", *key, "One list: positions, pattern, attention, features, pooling or norm; or the score terms of C++: terms")
      .value("KEY")
      .no_default();
  flags.footer("Examples:\n  heed variants\n  heed variants positions\n  heed variants terms");
  return [key] { run_variants(*key); };
});

}  // namespace
}  // namespace heed::cli
