// The report folder.
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "heed/lab/draw.h"
#include "heed/lab/result.h"
#include "heed/train/run_folder.h"

namespace heed::lab {
namespace {

namespace fs = std::filesystem;

std::string two_digits(size_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

void write_figures(const Path& folder, const Result& result) {
  for (size_t i = 0; i < result.report.figures.size(); ++i) {
    const std::vector<Frame>& frames = result.report.figures[i].frames;
    for (size_t j = 0; j < frames.size(); ++j) {
      const Path file = folder / figure_file(*result.experiment, i, j, frames.size());
      const Drawing drawing = drawing_of(frames[j]);
      write_text(file.string() + ".svg", svg_file(drawing));
      write_png(file.string() + ".png", drawing.pixels(2));
    }
  }
}

}  // namespace

std::string figure_file(const Experiment& experiment, size_t figure, size_t frame, size_t frames) {
  const std::string name = experiment.number + "-" + experiment.name + "-" + std::to_string(figure + 1);
  return frames > 1 ? name + "-" + two_digits(frame + 1) : name;
}

ReportFolder::ReportFolder(Path folder) : folder_(std::move(folder)) {
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    const Path parent = fs::absolute(folder_.has_filename() ? folder_ : folder_.parent_path()).parent_path();
    check(::access(parent.c_str(), W_OK) == 0, "lab: ", parent.string(), ": cannot create the report folder there (",
          std::generic_category().message(errno), ")");
    return;
  }
  check<UsageError>(fs::is_directory(folder_, error), "lab: ", folder_.string(), " is a file, expected a folder or nothing");
  check<UsageError>(fs::is_empty(folder_, error) || (fs::exists(folder_ / "report.json") && fs::exists(folder_ / "figures")),
                    "lab: ", folder_.string(),
                    " contains files other than a lab report, which would be lost; choose another folder with -o");
}

void ReportFolder::write(std::span<const Result> results) {
  const auto fill = [&](const Path& folder) {
    fs::create_directories(folder / "figures");
    for (const Result& result : results)
      if (!drawn_.contains(result.experiment)) write_figures(folder / "figures", result);
    write_text(folder / "index.html", results_page(results));
    write_json(folder / "report.json", results_json(results));
  };
  if (drawn_.empty())
    replace_folder(folder_, fill);
  else
    fill(folder_);
  for (const Result& result : results) drawn_.insert(result.experiment);
}

}  // namespace heed::lab
