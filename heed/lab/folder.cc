// The folder of a report.
#include "heed/lab/draw.h"
#include "heed/lab/result.h"
#include "heed/train/run_folder.h"

namespace heed::lab {
namespace {

std::string two_digits(size_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

std::string figure_file(const Experiment& experiment, size_t figure, size_t frame, size_t frames) {
  const std::string begin = experiment.number + "-" + experiment.name + "-" + std::to_string(figure + 1);
  return frames > 1 ? begin + "-" + two_digits(frame + 1) : begin;
}

void check_folder(const Path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  check<UsageError>(fs::is_directory(folder, error), "lab: ", folder.string(), " is a file, expected a folder or nothing");
  check<UsageError>(fs::is_empty(folder, error) || (fs::exists(folder / "report.json") && fs::exists(folder / "figures")),
                    "lab: ", folder.string(),
                    " holds other things than a report of the lab, which would be lost; name another folder with -o");
}

void write_results(const Path& folder, std::span<const Result> results) {
  check_folder(folder);
  replace_folder(folder, [&](const Path& beside) {
    write_json(beside / "report.json", results_json(results));
    write_text(beside / "index.html", results_page(results));
    std::filesystem::create_directory(beside / "figures");
    for (const Result& result : results)
      for (size_t i = 0; i < result.report.figures.size(); ++i) {
        const std::vector<Frame>& frames = result.report.figures[i].frames;
        for (size_t j = 0; j < frames.size(); ++j) {
          const Path file = beside / "figures" / figure_file(*result.experiment, i, j, frames.size());
          const Drawing drawing = drawing_of(frames[j]);
          write_text(file.string() + ".svg", svg_file(drawing));
          write_png(file.string() + ".png", drawing.pixels(2));
        }
      }
  });
}

}  // namespace heed::lab
