// heed report: one page of HTML about a run, or about several side by side, drawn from the files in their folders.
#include "heed/train/report.h"

#include <iostream>
#include <memory>

#include "heed/cli/command.h"

namespace heed::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out;
};

void run_report(const ReportFlags& options) {
  const std::vector<Path> runs(options.runs.begin(), options.runs.end());
  const std::string page = report_page(runs);
  const Path out = !options.out.empty() ? Path(options.out) : runs.size() == 1 ? runs[0] / "report.html" : Path("report.html");
  write_text(out, page);
  std::cout << out.string() << '\n';
}

const Command report_command("report", "A page about a run, or about several side by side", [](Flags& flags) {
  auto options = std::make_shared<ReportFlags>();
  flags.option("runs", options->runs, "Folders of runs").value("RUN").required().no_default();
  flags.option("-o,--out", options->out, "The page; without it report.html in the folder of the run, of several in this one").value("FILE");
  flags.footer(
      "Prints the name of the file that it wrote. Files that a run has not written yet leave their part out.\n\nExamples:\n"
      "  heed report runs/classify/001\n  heed report runs/classify/001 runs/classify/002 -o side-by-side.html");
  return [options] { run_report(*options); };
});

}  // namespace
}  // namespace heed::cli
