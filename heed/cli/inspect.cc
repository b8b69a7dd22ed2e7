// heed inspect: what a model is made of and what it costs; with an input, where its heads look.
#include <iostream>
#include <memory>
#include <string>

#include "heed/cli/command.h"
#include "heed/cli/inspect_tree.h"

namespace heed::cli {
namespace {

struct Options {
  std::string folder, size;
  bool all = false, json = false;
};

// Without weights the shapes still follow from config.json.
Model outlined(const Path& folder) {
  const bool weights =
      std::filesystem::exists(folder / "model.safetensors") || std::filesystem::exists(folder / "model.safetensors.index.json");
  const ModelOptions options{.names = {.shapes_only = true}};
  if (weights || !std::filesystem::exists(folder / "config.json")) return load(folder, options);
  return make_model(read_json(folder / "config.json"), options);
}

void run_inspect(const Options& options) {
  const Model model = outlined(options.folder);
  const ModelCost cost = cost_of(model, {});
  if (options.json) {
    std::cout << tree_json(model, cost).dump() << '\n';
    return;
  }
  print_tree(std::cout, model, cost, {options.all});
}

const Command inspect("inspect", "Show what a model is made of, what it costs, and where its heads look", [](CLI::App& flags) {
  auto options = std::make_shared<Options>();
  flags.add_option("model", options->folder, "Folder of a model; config.json alone will do to see its parts")
      ->type_name("MODEL")
      ->required();
  flags.add_flag("--all", options->all, "Every layer, though they are alike");
  flags.add_flag("--json", options->json, "For machines");
  return [options] { run_inspect(*options); };
});

}  // namespace
}  // namespace heed::cli
