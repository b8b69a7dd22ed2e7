// heed_faults: fault injection. Each system call of a job fails once. The job must end with one line and the right exit code, and leave
// complete files.
//
// heed_faults [--places | --all] [--job NAME] [--kind NAME] [--at N[:rest]]
// By default some calls of each kind fail; with --places every file call and one allocation per call site; with --all also every
// allocation, which takes hours.
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "tests/supervised.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;  // path in a folder -> bytes

const std::string kProgram = HEED_PROGRAM, kLibrary = HEED_FAULTS_LIBRARY;
const fs::path kFixtures = fs::path(HEED_SOURCE_DIR) / "tests/fixtures";

// Files that are reproducible; the others contain times, or sizes of such files.
bool is_same_each_time(const std::string& path) {
  for (const char* part : {"log.txt", "speed.csv", "events.out", "report.html", "checkpoints/", "run.json"})
    if (path.find(part) != path.npos) return false;
  return true;
}

Files files_in(const fs::path& folder) {
  Files out;
  if (!fs::exists(folder)) return out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), folder);
    const std::string events = name.substr(0, name.find("events.out.") + 11);  // the name contains the time
    out[name.find("events.out.") == name.npos ? name : events] = is_same_each_time(name) ? bytes_of_file(entry.path()) : "";
  }
  return out;
}

// Describes the first difference; empty: none.
std::string difference(const Files& found, const Files& expected) {
  for (const auto& [name, bytes] : expected)
    if (!found.contains(name))
      return name + " is missing";
    else if (found.at(name) != bytes)
      return name + " differs";
  for (const auto& [name, bytes] : found)
    if (!expected.contains(name)) return name + " was left behind";
  return "";
}

struct Job {
  std::string name;
  std::function<void(const fs::path& folder)> prepare;   // writes inputs to folder/in, and existing files to folder/out
  std::function<Words(const fs::path& folder)> command;  // writes below folder/out only
  std::function<Words(const fs::path& folder)> again =
      {};  // continues after a failure to the same result. Without it, each file must be the old or the new one
};

void copy_model(const std::string& fixture, const fs::path& to) {
  fs::create_directories(to);
  fs::copy(kFixtures / fixture, to);
}

Words training(const fs::path& folder) {
  return {"train",
          "classify",
          "data=" + (folder / "in/images").string(),
          "layers=1",
          "width=8",
          "heads=2",
          "patch=4",
          "batch=4",
          "epochs=2",
          "save_every=1",
          "log_every=1",
          "average=0.9",
          "position=gaussian",
          "loaders=2",
          "--runs",
          folder / "out",
          "--name",
          "a"};
}

// Eight images of two classes.
void put_images(const fs::path& folder) {
  int count = 0;
  for (const char* part : {"train/", "validation/"})
    for (const char* kind : {"noisy", "plain"})
      for (const char* name : {"color.png", "gray.jpg"}) {
        fs::create_directories(folder / (std::string(part) + kind));
        fs::copy(kFixtures / "images" / name, folder / (std::string(part) + kind) / (std::to_string(count++) + name));
      }
}

const std::vector<Job> kJobs = {
    {"train", [](const fs::path& folder) { put_images(folder / "in/images"); }, training,
     [](const fs::path& folder) {
       const fs::path run = folder / "out/classify/a";
       return fs::exists(run / "config.toml") ? Words{"train", "--resume", run} : training(folder);
     }},
    {"predict",
     [](const fs::path& folder) {
       copy_model("vit-classify", folder / "in/model");
       fs::create_directories(folder / "in/images");
       for (const char* name : {"color.png", "gray.jpg", "palette-200.png"}) fs::copy(kFixtures / "images" / name, folder / "in/images");
     },
     [](const fs::path& folder) {
       return Words{"predict", folder / "in/model", folder / "in/images", "--json"};
     }},
    {"convert", [](const fs::path& folder) { copy_model("bert-sentiment", folder / "in/model"); },
     [](const fs::path& folder) {
       return Words{"convert", folder / "in/model", folder / "out/model", "--dtype", "bf16"};
     }},
    {"shards",  // over an existing model
     [](const fs::path& folder) {
       copy_model("bert-sentiment", folder / "in/model");
       copy_model("bert-sentiment", folder / "out/model");
     },
     [](const fs::path& folder) {
       return Words{"convert", folder / "in/model", folder / "out/model", "--shard", "20000"};
     }},
};

const std::vector<std::string> kFileKinds = {"open",  "read",  "write",  "fsync", "rename", "mmap",  "truncate",
                                             "close", "mkdir", "unlink", "list",  "stat",   "thread"};

enum class Extent { some, places, all };

class Suite {
 public:
  explicit Suite(Extent extent) : extent_(extent) {
    std::string name = (fs::temp_directory_path() / "heed-faults-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    scratch_ = name;
  }
  ~Suite() { fs::remove_all(scratch_); }
  Suite(const Suite&) = delete;
  Suite& operator=(const Suite&) = delete;

  void run(const Job& job, const std::string& only_kind, const std::string& only_at) {
    run_without_faults(job);
    std::vector<std::string> kinds = kFileKinds;
    kinds.push_back("malloc");
    for (const std::string& kind : kinds) {
      if (!only_kind.empty() && kind != only_kind) continue;
      if (!only_at.empty()) {
        try_one(job, kind, only_at);
        continue;
      }
      const std::vector<std::string> call_numbers = calls_to_fail(job, kind);
      for (const std::string& at : call_numbers) try_one(job, kind, at);
      std::cout << job.name << ' ' << kind << ": " << call_numbers.size() << " of " << calls_ << " calls failed, " << wrong_
                << " wrong so far\n"
                << std::flush;
    }
  }
  int wrong() const { return wrong_; }

 private:
  fs::path folder() const { return scratch_ / "job"; }
  void prepare(const Job& job) {
    fs::remove_all(folder());
    fs::create_directories(folder() / "in");
    fs::create_directories(folder() / "out");
    job.prepare(folder());
  }
  Supervised start(const Words& words, const Words& faults = {}) {
    Words environment = faults;
    environment.push_back("HEED_THREADS=2");
    environment.push_back("HEED_ISA=baseline");
    return supervise(kProgram, words, environment, scratch_, 60);
  }
  Words injected(const std::string& fault) const {
    return {"LD_PRELOAD=" + kLibrary, "HEED_FAULT=" + fault, "HEED_FAULT_ROOT=" + folder().string()};
  }

  void run_without_faults(const Job& job) {
    prepare(job);
    before_ = files_in(folder() / "out");
    const Supervised ran = start(job.command(folder()));
    if (ran.exit_code != 0) throw std::runtime_error(job.name + " fails without faults: " + ran.err);
    after_ = files_in(folder() / "out");
    output_ = ran.out;
  }

  // The numbers of the calls to fail.
  std::vector<std::string> calls_to_fail(const Job& job, const std::string& kind) {
    prepare(job);
    Words environment = injected(kind + ":0");
    environment.push_back("HEED_FAULT_COUNT=" + (scratch_ / "calls").string());
    start(job.command(folder()), environment);
    std::ifstream in(scratch_ / "calls");
    std::vector<int64_t> call_numbers;
    std::set<uint32_t> places;
    calls_ = 0;
    for (uint32_t place = 0; in >> place;)
      if (++calls_; places.insert(place).second || kind != "malloc" || extent_ == Extent::all) call_numbers.push_back(calls_);
    // A training run takes 0.25 s, the others 0.02 s.
    const size_t some = job.name == "train" ? (kind == "malloc" ? 40 : 4) : kind == "malloc" ? 120 : 40;
    const size_t max_calls = extent_ == Extent::some ? some : call_numbers.size();
    std::vector<std::string> out;
    for (size_t i = 0; i < std::min(max_calls, call_numbers.size()); ++i) {
      out.push_back(std::to_string(call_numbers[i * call_numbers.size() / std::min(max_calls, call_numbers.size())]));
      if (kind == "malloc" && i % 2 == 0) out.back() += ":rest";
    }
    return out;
  }

  void try_one(const Job& job, const std::string& kind, const std::string& at) {
    prepare(job);
    const Words words = job.command(folder()), environment = injected(kind + ":" + at);
    const Supervised ran = start(words, environment);
    std::string wrong = wrong_ending(ran);
    if (wrong.empty()) wrong = ran.exit_code == 0 ? wrong_success(ran) : wrong_failure(job, kind, ran);
    if (wrong.empty()) return;
    ++wrong_;
    std::cout << "WRONG: " << job.name << " --kind " << kind << " --at " << at << ": " << wrong << " (exit code " << ran.exit_code << ", "
              << ran.err.substr(0, 400) << ")\n"
              << std::flush;
  }

  std::string wrong_success(const Supervised& ran) const {
    if (!output_.empty() && output_[0] == '{' && ran.out != output_) return "different output, but no error";
    const std::string differs = difference(files_in(folder() / "out"), after_);
    return differs.empty() ? "" : differs + ", but no error";
  }

  std::string wrong_failure(const Job& job, const std::string& kind, const Supervised& ran) {
    const std::set<std::string> reading = {"open", "read", "list", "stat"};
    if (ran.exit_code != 1 && !(ran.exit_code == 3 && reading.contains(kind))) return "the wrong exit code";
    Files now = files_in(folder() / "out");
    if (!job.again) {
      for (const auto& [name, bytes] : now)
        if (!(before_.contains(name) && before_.at(name) == bytes) && !(after_.contains(name) && after_.at(name) == bytes))
          if (kind != "unlink" || name.find(".heed-") == name.npos) return name + " is neither the old nor the new version";
      return "";
    }
    const Supervised second = start(job.again(folder()));
    if (second.exit_code != 0) return "cannot resume: " + second.err;
    now = files_in(folder() / "out");
    if (kind == "unlink") std::erase_if(now, [](const auto& file) { return file.first.find(".heed-") != std::string::npos; });
    const std::string differs = difference(now, after_);
    return differs.empty() ? "" : differs + " after resuming";
  }

  const Extent extent_;
  fs::path scratch_;
  Files before_, after_;  // of folder/out: before the job, and after a run without faults
  std::string output_;
  int64_t calls_ = 0;
  int wrong_ = 0;
};

int run(const Words& words) {
  std::string job, kind, at;
  Extent extent = Extent::some;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--all")
      extent = Extent::all;
    else if (words[i] == "--places")
      extent = Extent::places;
    else if (i + 1 < words.size() && words[i] == "--job")
      job = words[++i];
    else if (i + 1 < words.size() && words[i] == "--kind")
      kind = words[++i];
    else if (i + 1 < words.size() && words[i] == "--at")
      at = words[++i];
    else {
      std::cerr << "usage: heed_faults [--places | --all] [--job NAME] [--kind NAME] [--at N[:rest]]\n";
      return 2;
    }
  }
  Suite suite(extent);
  for (const Job& each : kJobs)
    if (job.empty() || job == each.name) suite.run(each, kind, at);
  return suite.wrong() > 0;
}

}  // namespace
}  // namespace heed::test

int main(int argc, char** argv) {
  try {
    return heed::test::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "heed_faults: " << error.what() << '\n';
    return 1;
  }
}
