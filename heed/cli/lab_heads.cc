#include "heed/cli/lab_heads.h"

#include <iostream>

#include "heed/lab/heads.h"
#include "heed/train/model_folder.h"

namespace heed::cli {

void run_lab_heads(const std::vector<std::string>& arguments, const std::string& out, bool json, bool quiet) {
  check<UsageError>(arguments.size() == 1, "lab heads: found ", arguments.size(), " runs, expected one: heed lab heads RUN");
  const Path typed = run_folder(arguments[0]), folder = out.empty() ? typed / "heads" : Path(out);
  const lab::HeadsRun run = lab::read_heads_run(typed);
  lab::check_heads_folder(folder);
  lab::write_heads(folder, run);
  if (json) {
    std::cout << lab::heads_json(run).dump(2) << '\n';
    return;
  }
  if (!quiet) {
    lab::print_heads(std::cout, run);
    std::cout << '\n';
  }
  std::cout << (folder / "index.html").string() << '\n';
}

}  // namespace heed::cli
