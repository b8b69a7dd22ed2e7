// heed report: one page of HTML about a run, or about several side by side, drawn from the files in their folders.
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
    if (found.empty()) found = {typed};  // the page says what is missing
    runs.insert(runs.end(), found.begin(), found.end());
  }
  const std::string page = report_page(runs);
  const Path beside = runs.size() == 1 ? runs[0] : options.runs.size() == 1 ? Path(options.runs[0]) : Path();
  const Path out = !options.out.empty() ? Path(options.out) : beside / "report.html";
  write_text(out, page);
  for (const Path& run : runs)
    for (const std::string& damage : read_run(run).damaged) std::cerr << "heed: damaged: " << damage << '\n';
  std::cout << out.string() << '\n';
}

const Command report_command("report", "A page about a run, or about several side by side", [](Flags& flags) {
  auto options = std::make_shared<ReportFlags>();
  flags.option("runs", options->runs, "Folders of single runs, or with runs in them").value("RUN").required().no_default();
  flags
      .option("-o,--out", options->out, "The page; without it report.html in the folder that is named, or in this one if there are several")
      .value("FILE");
  flags.footer(
      "Prints the name of the file that it wrote. Files that a run has not written yet leave their part out;\nthose that are damaged are "
      "named there and on standard error.\n\nExamples:\n"
      "  heed report runs/classify/001\n  heed report runs/classify\n  heed report runs/classify/001 runs/classify/002 -o "
      "side-by-side.html");
  return [options] { run_report(*options); };
});

}  // namespace
}  // namespace heed::cli
