// heed_hostile: random mutations of all types of files that heed reads, through the commands that read them. A command may refuse a file
// with one line and the right exit code; it must not crash, hang, use much memory or leave partial files.
//
// heed_hostile [--count N] [--seed N] [--only N] [--keep FOLDER]
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "tests/hostile/mutate.h"
#include "tests/hostile/scenes.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;

constexpr double kSeconds = 10;                  // CPU time; wall-clock time may be longer
constexpr int64_t kMemory = int64_t{256} << 20;  // in addition to the memory for valid files and the file sizes
const std::string kProgram = HEED_PROGRAM;
const fs::path kFixtures = fs::path(HEED_SOURCE_DIR) / "tests/fixtures";

struct Options {
  int64_t count = 150, only = -1;
  uint64_t seed = 1;
  fs::path keep = "hostile-failures";
};

int64_t bytes_in(const fs::path& folder) {
  int64_t out = 0;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored)) out += static_cast<int64_t>(entry.file_size(ignored));
  return out;
}

class Suite {
 public:
  explicit Suite(Options options) : options_(std::move(options)) {
    std::string name = (fs::temp_directory_path() / "heed-hostile-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    scratch_ = name;
    scenes_ = make_scenes(scratch_ / "good", kFixtures, [&](const Words& words) {
      const Supervised ran = start(words);
      if (ran.exit_code != 0) throw std::runtime_error(command_line({}, kProgram, words) + ": " + ran.err);
    });
  }
  ~Suite() { fs::remove_all(scratch_); }
  Suite(const Suite&) = delete;
  Suite& operator=(const Suite&) = delete;

  int run() {
    for (int64_t i = 0; i < options_.count; ++i)
      if (options_.only < 0 || options_.only == i) try_one(i);
    std::cout << "hostile: " << options_.count << " inputs, seed " << options_.seed << ": " << refused_ << " refused, " << accepted_
              << " accepted, " << wrong_ << " wrong\n";
    return wrong_ > 0;
  }

 private:
  Supervised start(const Words& words) const { return supervise(kProgram, words, {"HEED_THREADS=1"}, scratch_, 60); }

  // Deterministic in `index`, so that a saved failure can be repeated by its command line.
  void try_one(int64_t index) {
    RandomSource rng(options_.seed * 1'000'003 + static_cast<uint64_t>(index));
    const Scene& scene = scenes_[static_cast<size_t>(index) % scenes_.size()];
    const std::string file = rng.of(scene.files);
    std::vector<Words> readers;
    std::copy_if(scene.commands.begin(), scene.commands.end(), std::back_inserter(readers),
                 [&](const Words& each) { return reads(each, file); });
    if (readers.empty()) throw std::runtime_error("no command reads " + scene.name + "/" + file);
    const Words command = rng.of(readers);
    const fs::path folder = scratch_ / "now";
    fs::remove_all(folder);
    fs::copy(scratch_ / "good" / scene.name, folder, fs::copy_options::recursive);
    fs::create_directories(folder / "out");
    std::string what;
    change(folder, file, rng, what);
    const Words words = in_folder(command, folder);
    const int64_t base = memory_of(scene, command), size = bytes_in(folder);
    const std::string wrong = verdict(start(words), base + size, folder / "out");
    if (wrong.empty()) return;
    ++wrong_;
    const fs::path saved = options_.keep / (std::to_string(options_.seed) + "-" + std::to_string(index));
    fs::remove_all(saved);
    fs::create_directories(options_.keep);
    fs::copy(folder, saved, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    std::ofstream(saved / "command") << command_line({"HEED_THREADS=1"}, kProgram, in_folder(command, fs::absolute(saved))) << '\n';
    std::cout << "WRONG: input " << index << ", " << scene.name << '/' << file << " (" << what << "): " << wrong << "\n  "
              << command_line({"HEED_THREADS=1"}, kProgram, in_folder(command, fs::absolute(saved))) << '\n'
              << std::flush;
  }

  void change(const fs::path& folder, const std::string& file, RandomSource& rng, std::string& what) {
    const fs::path path = folder / file;
    const size_t kind = rng.below(24);
    if (kind > 5) {
      const std::string bytes = mutated(bytes_of_file(path), format_of(file), rng, what);
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
      return;
    }
    fs::remove(path);
    if (kind == 0) what = "empty", std::ofstream(path).flush();
    if (kind == 1) what = "a folder", fs::create_directories(path);
    if (kind == 2) what = "a link to itself", fs::create_symlink(path, path);
    if (kind == 3) what = "missing";
    if (kind == 4) {
      const Scene& other = rng.of(scenes_);
      const std::string from = rng.of(other.files);
      what = "replaced by " + other.name + "/" + from;
      fs::copy_file(scratch_ / "good" / other.name / from, path);
    }
    if (kind == 5) {
      size_t size = size_t{1} << (10 + rng.below(19));
      const char fill = rng.one_in(2) ? '\n' : rng.one_in(2) ? '\0' : 'a';
      if (file == "lines.txt" || file == "words.txt")  // valid text: a model processes every line or token, which takes long and is no bug
        size = std::min(size, size_t{1} << (fill == '\n' ? 14 : 20));
      what = "zeros or lines, " + std::to_string(size);
      const std::string bytes(size, fill);
      std::ofstream(path, std::ios::binary) << (format_of(file) == Format::gz ? gz(bytes) : bytes);
    }
  }

  // Memory that a command uses for the valid files.
  int64_t memory_of(const Scene& scene, const Words& command) {
    const auto [found, is_new] = memory_.try_emplace(scene.name + command_line({}, "", command), 0);
    if (!is_new) return found->second;
    const fs::path folder = scratch_ / "base";
    fs::remove_all(folder);
    fs::copy(scratch_ / "good" / scene.name, folder, fs::copy_options::recursive);
    fs::create_directories(folder / "out");
    const Words words = in_folder(command, folder);
    const Supervised ran = start(words);
    if (ran.exit_code != 0) throw std::runtime_error(command_line({}, kProgram, words) + ": " + ran.err);
    return found->second = ran.memory;
  }

  std::string verdict(const Supervised& ran, int64_t memory, const fs::path& out) {
    (ran.exit_code == 0 ? accepted_ : refused_) += 1;
    if (const std::string wrong = wrong_ending(ran); !wrong.empty()) return wrong + ": " + ran.err.substr(0, 500);
    if (ran.cpu_seconds > kSeconds) return "took " + std::to_string(ran.cpu_seconds) + " s of one core";
    if (ran.memory > memory + kMemory)
      return "took " + std::to_string(ran.memory >> 20) + " MiB, expected at most " + std::to_string((memory + kMemory) >> 20);
    for (const char letter : ran.err)
      if (letter != '\n' && static_cast<unsigned char>(letter) < ' ')
        return "a control character in the message: " + ran.err.substr(0, 500);
    for (const auto& entry : fs::recursive_directory_iterator(out)) {
      const std::string name = entry.path().filename();
      if (name.find(".heed-") != name.npos) return name + " was left behind";
      if (ran.exit_code != 0 && (name.ends_with(".html") || name.ends_with(".npy") || name == "out.safetensors"))
        return name + " was written despite an error";
    }
    return "";
  }

  const Options options_;
  fs::path scratch_;
  std::vector<Scene> scenes_;
  std::map<std::string, int64_t> memory_;
  int64_t refused_ = 0, accepted_ = 0, wrong_ = 0;
};

int run(const Words& words) {
  Options options;
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string value = i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "--count" && !value.empty())
      options.count = std::stoll(value);
    else if (words[i] == "--seed" && !value.empty())
      options.seed = std::stoull(value);
    else if (words[i] == "--only" && !value.empty())
      options.only = std::stoll(value);
    else if (words[i] == "--keep" && !value.empty())
      options.keep = value;
    else {
      std::cerr << "usage: heed_hostile [--count N] [--seed N] [--only N] [--keep FOLDER]\n";
      return 2;
    }
  }
  return Suite(options).run();
}

}  // namespace
}  // namespace heed::test

int main(int argc, char** argv) {
  try {
    return heed::test::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "heed_hostile: " << error.what() << '\n';
    return 1;
  }
}
