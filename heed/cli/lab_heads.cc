#include "heed/cli/lab_heads.h"

#include <iostream>

#include "heed/lab/heads.h"

namespace heed::cli {

void run_lab_heads(const std::vector<std::string>& words, const std::string& out, bool json, bool quiet) {
  check<UsageError>(words.size() == 1, "lab heads: found ", words.size(), " runs, expected one: heed lab heads RUN");
  const Path folder = out.empty() ? Path(words[0]) / "heads" : Path(out);
  const lab::HeadsRun run = lab::read_heads_run(words[0]);
  lab::check_heads_folder(folder);
  lab::write_heads(folder, run);
  if (json) {
    std::cout << lab::heads_json(run).dump(2) << '\n';
    return;
  }
  if (!quiet) {
    lab::tell_heads(std::cout, run);
    std::cout << '\n';
  }
  std::cout << (folder / "index.html").string() << '\n';
}

}  // namespace heed::cli
