// heed attend: a calculator on the user's own tensors. Reads q, k, v and more from a file, writes the attention of them.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/attend_compute.h"
#include "heed/cli/command.h"
#include "heed/core/nearest.h"

namespace heed::cli {
namespace {

constexpr const char* kUsage = "heed attend FILE.safetensors [name=value ...] -o OUT.safetensors";

struct CommandLine {
  std::vector<std::string> words, flags;  // one file and options name=value; options --name value
  std::string output;
};

// Options may stand before and behind the file: they are what has a name before the first =.
bool is_option(const std::string& word) {
  const size_t equals = word.find('=');
  return equals != std::string::npos && word.find_first_of("./\\") > equals;
}

// Finite inputs can still overflow: nobody should take that for a result.
void check_results(const NamedTensors& results) {
  for (const auto& [name, tensor] : results)
    for (const float x : tensor.to_vector<float>())
      check(std::isfinite(x), "attend: ", name, " holds ", std::isnan(x) ? "nan" : "infinity",
            ", though all inputs are finite: numbers grew beyond f32, try a smaller beta");
}

void print(const NamedTensors& results, const std::string& output, double seconds) {
  std::cout << output << ":\n";
  for (const auto& [name, tensor] : results) std::cout << "  " << std::left << std::setw(20) << name << " f32 " << tensor.shape() << '\n';
  std::cout << "computed in " << std::setprecision(3) << 1e3 * seconds << " ms\n";
}

void run_attend(const CommandLine& line) {
  std::vector<std::string> options = line.flags, files;
  for (const std::string& word : line.words) (is_option(word) ? options : files).push_back(word);
  const AttendOptions parsed = parse_attend(options);
  check<UsageError>(!files.empty(), "attend: no input file; ", kUsage);
  if (files.size() > 1) {
    const std::vector<AttendOption>& known = attend_options();
    for (const std::string& word : files)
      for (const AttendOption& option : known)
        check<UsageError>(word != option.name, "attend: ", word, " without a value, expected ", word, "=..., ", option.value);
    fail<UsageError>("attend: unexpected argument '", files[1], "'; ", kUsage);
  }
  check<UsageError>(!line.output.empty(), "attend: no output file; ", kUsage);
  std::error_code unknown;
  check<UsageError>(!std::filesystem::equivalent(files[0], line.output, unknown), "attend: ", line.output,
                    " is the input file, expected another one to write to");
  AttendFile file(files[0], parsed);
  const auto start = std::chrono::steady_clock::now();
  const NamedTensors results = attend(file, parsed);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  check_results(results);
  Metadata metadata{{"command", "heed attend"}};
  for (const std::string& word : options) metadata["options"] += (metadata["options"].empty() ? "" : " ") + word;
  write_safetensors(line.output, results, metadata);
  print(results, line.output, taken.count());
}

const Command attend_command("attend", "Compute attention on the tensors of a safetensors file", [](Flags& flags) {
  auto line = std::make_shared<CommandLine>();
  flags.option("FILE", line->words, "Safetensors file to read, and options name=value").value("name=value").no_default();
  flags.option("-o,--output", line->output, "Safetensors file to write, whole or not at all").value("OUT");
  for (const AttendOption& option : attend_options())  // some will type them so; the help has them only once
    flags.each("--" + option.name, [line, name = option.name](const std::string& value) { line->flags.push_back(name + "=" + value); })
        .hidden();
  flags.footer(attend_help());
  return [line] { run_attend(*line); };
});

}  // namespace
}  // namespace heed::cli
