// heed attend: attention on the user's own tensors. Reads q, k, v and more from a file and writes the results to another.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/attend_compute.h"
#include "heed/cli/command.h"
#include "heed/core/nearest.h"
#include "heed/core/parse.h"

namespace heed::cli {
namespace {

constexpr const char* kUsage = "heed attend FILE.safetensors [name=value ...] -o OUT.safetensors";

struct CommandLine {
  std::vector<std::string> arguments, flags;  // arguments: a file and options name=value; flags: options --name value
  std::string output;
};

// Options and the file come in any order. An option has a name without path characters before the first =.
bool is_option(const std::string& argument) {
  const std::optional<KeyValue> option = parse_key_value(argument);
  return option && option->key.find_first_of("./\\") == std::string::npos;
}

// Finite inputs can still overflow.
void check_results(const NamedTensors& results) {
  for (const auto& [name, tensor] : results)
    for (const float x : tensor.to_vector<float>())
      check(std::isfinite(x), "attend: ", name, " holds ", std::isnan(x) ? "nan" : "infinity",
            ", though all inputs are finite: values overflowed f32, try a smaller beta");
}

void print(const NamedTensors& results, const std::string& output, double seconds) {
  std::cout << output << ":\n";
  for (const auto& [name, tensor] : results) std::cout << "  " << std::left << std::setw(20) << name << " f32 " << tensor.shape() << '\n';
  std::cout << "computed in " << std::setprecision(3) << 1e3 * seconds << " ms\n";
}

void run_attend(const CommandLine& line) {
  std::vector<std::string> options = line.flags, files;
  for (const std::string& argument : line.arguments) (is_option(argument) ? options : files).push_back(argument);
  const AttendOptions parsed = parse_attend(options);
  check<UsageError>(!files.empty(), "attend: no input file; ", kUsage);
  if (files.size() > 1) {
    const std::vector<AttendOption>& known = attend_options();
    for (const std::string& name : files)
      for (const AttendOption& option : known)
        check<UsageError>(!option.is_named(name), "attend: ", name, " without a value, expected ", name, "=..., ", option.value);
    fail<UsageError>("attend: unexpected argument '", files[1], "'; ", kUsage);
  }
  check<UsageError>(!line.output.empty(), "attend: no output file; ", kUsage);
  std::error_code unknown;
  check<UsageError>(!std::filesystem::equivalent(files[0], line.output, unknown), "attend: ", line.output,
                    " is the input file, expected another one to write to");
  AttendFile file(files[0], parsed);
  const auto start = std::chrono::steady_clock::now();
  const NamedTensors results = attend(file, parsed);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  check_results(results);
  Metadata metadata{{"command", "heed attend"}};
  for (const std::string& option : options) metadata["options"] += (metadata["options"].empty() ? "" : " ") + option;
  write_safetensors(line.output, results, metadata);
  print(results, line.output, elapsed.count());
}

const Command attend_command("attend", "Compute attention on the tensors of a safetensors file", [](Flags& flags) {
  auto line = std::make_shared<CommandLine>();
  flags.option("FILE", line->arguments, "Safetensors file to read, and options name=value").usage("FILE [name=value ...]");
  flags.option(kOutputFlag, line->output, "Safetensors file to write").value("OUT");
  for (const AttendOption& option : attend_options()) {  // --name value also works; hidden, as the help lists name=value
    std::vector<std::string> names = option.aliases;
    names.push_back(option.name);
    for (const std::string& name : names)
      flags.each("--" + name, [line, name](const std::string& value) { line->flags.push_back(name + "=" + value); }).hidden();
  }
  flags.footer(attend_help());
  return [line] { run_attend(*line); };
});

}  // namespace
}  // namespace heed::cli
