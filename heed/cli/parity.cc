// heed parity: compares a checkpoint's outputs with those of another program.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "heed/cli/command.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/print_json.h"
#include "heed/models/parity.h"

namespace heed::cli {
namespace {

struct ParityFlags {
  std::string folder, file;
  double tolerance = 1e-4;
  std::string weights = "trainable";
  std::vector<std::string> allow_missing, allow_unused;
  bool nonfinite = false, json = false;
};

const std::map<std::string, Weights> kWeights = {{"trainable", Weights::trainable}, {"packed", Weights::packed}, {"int8", Weights::int8}};

std::string shape_text(const Shape& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

void print_parity(const Model& model, const ParityFlags& options, const std::vector<Difference>& all) {
  size_t name_width = 4, shape_width = 5;
  for (const Difference& each : all) {
    name_width = std::max(name_width, each.name.size());
    shape_width = std::max(shape_width, shape_text(each.shape).size());
  }
  const auto row = [&](const std::string& name, const std::string& shape, const std::string& absolute, const std::string& relative,
                       const std::string& verdict) {
    std::cout << std::left << std::setw(static_cast<int>(name_width)) << name << "  " << std::setw(static_cast<int>(shape_width)) << shape
              << "  " << std::setw(9) << absolute << "  " << std::setw(9) << relative << "  " << verdict << '\n';
  };
  const auto number = [](double x) {
    std::ostringstream text;
    text << std::scientific << std::setprecision(1) << x;
    return text.str();
  };
  std::cout << model.architecture() << ", " << model.params().count() << " parameters, " << options.folder << '\n';
  row("name", "shape", "absolute", "relative", "verdict");
  for (const Difference& each : all) {
    const std::string verdict = each.within ? "same" : each.problem.empty() ? "DIFFERS" : "DIFFERS: " + each.problem;
    row(each.name, shape_text(each.shape), number(each.absolute), number(each.relative), verdict);
  }
}

Json parity_json(const Model& model, const ParityFlags& options, const std::vector<Difference>& all) {
  Json outputs = Json::array();
  for (const Difference& each : all) {
    Json one{{"name", each.name}, {"absolute", each.absolute}, {"relative", each.relative}, {"same", each.within}};
    one["shape"] = std::vector<int64_t>(each.shape.begin(), each.shape.end());
    if (!each.problem.empty()) one["problem"] = each.problem;
    outputs.push_back(std::move(one));
  }
  return {{"architecture", model.architecture()},
          {"parameters", model.params().count()},
          {"tolerance", options.tolerance},
          {"outputs", std::move(outputs)}};
}

void run_parity(const ParityFlags& options) {
  const Path folder = options.folder;
  const Model model = load(folder, {.names = {.allow_missing = options.allow_missing,
                                              .allow_unused = options.allow_unused,
                                              .allow_nonfinite = nonfinite_warning(options.nonfinite)},
                                    .weights = kWeights.at(options.weights)});
  const std::vector<Difference> all =
      compare(model, options.file.empty() ? folder / "io.safetensors" : Path(options.file), options.tolerance);
  if (options.json)
    print_json_line(parity_json(model, options, all));
  else
    print_parity(model, options, all);
  const auto wrong = std::count_if(all.begin(), all.end(), [](const Difference& each) { return !each.within; });
  check(wrong == 0, "parity: ", wrong, " of ", all.size(), " outputs differ by more than ", options.tolerance, " of their largest value");
  if (!options.json) std::cout << "all " << all.size() << " are within " << options.tolerance << " of their largest value\n";
}

const Command parity_command("parity", "Compare a checkpoint's outputs with those of another program", [](Flags& flags) {
  auto options = std::make_shared<ParityFlags>();
  flags.option("folder", options->folder, "Folder of a run, or with config.json, model.safetensors and io.safetensors")
      .required()
      .value("FOLDER");
  flags.option("--io", options->file, "File with the tensors in.* and out.*; by default io.safetensors").value("FILE");
  flags.option("--tolerance", options->tolerance, "Maximum difference, relative to the largest value of an output")
      .value("R")
      .must_be(non_negative());
  flags.option("--weights", options->weights, "trainable, packed as in other commands, or int8").value("KIND").must_be(key_of(kWeights));
  flags.option("--allow-missing", options->allow_missing, "Parameters whose names contain NAME may be missing").value("NAME").one_value();
  flags.option("--allow-unused", options->allow_unused, "Tensors whose names contain NAME may be unused").value("NAME").one_value();
  add_nonfinite_flag(flags, options->nonfinite);
  flags.flag("--json", options->json, "One JSON object");
  flags.footer("Examples:\n  heed parity tests/fixtures/vit-classify\n  heed parity my-model --io mine.safetensors --tolerance 1e-5");
  return [options] {
    options->folder = resolve_model(options->folder);
    run_parity(*options);
  };
});

}  // namespace
}  // namespace heed::cli
