// heed report: an HTML page about one run or several side by side, generated from the files in their folders.
#include "heed/train/report.h"

#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/train/model_folder.h"
#include "heed/train/report_run.h"

namespace heed::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
};

void run_report(const ReportFlags& options) {
  std::vector<Path> runs;
  for (const std::string& typed : options.runs) {
    const Path run = run_of_model(typed);
    std::vector<Path> found = run.empty() ? runs_below(typed) : std::vector{run};
    if (found.empty()) found = {typed};  // the page reports what is missing
    runs.insert(runs.end(), found.begin(), found.end());
  }
  const std::string page = report_page(runs);
  const Path folder = runs.size() == 1 ? runs[0] : options.runs.size() == 1 ? Path(options.runs[0]) : Path();
  const Path out = !options.out.empty() ? Path(options.out) : folder / "report.html";
  write_text(out, page);
  for (const Path& run : runs)
    for (const std::string& damage : read_run(run).damaged) std::cerr << "heed: damaged: " << damage << '\n';
  std::cout << out.string() << '\n';
}

const Command report_command("report", "Write an HTML report about one or several runs", [](Flags& flags) {
  auto options = std::make_shared<ReportFlags>();
  flags.option("runs", options->runs, "Folders of runs, or folders that contain runs").value("RUN").required().no_default();
  flags
      .option(kOutputFlag, options->out, "The page; by default report.html in the given folder, or in the current one if several are given")
      .value("FILE");
  flags.footer(
      "Prints the path of the page. Parts whose files a run has not written yet are left out;\ndamaged files are "
      "listed there and on standard error.\n\nExamples:\n"
      "  heed report runs/classify/001\n  heed report runs/classify\n  heed report runs/classify/001 runs/classify/002 -o "
      "side-by-side.html");
  return [options] { run_report(*options); };
});

}  // namespace
}  // namespace heed::cli
