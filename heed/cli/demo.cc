// heed demo: the main job in one go. A small vision transformer learns Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), or shapes made by
// rule where that is not installed, is judged and reported, and classifies one picture.
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/completion.h"
#include "heed/cli/inspect_look.h"
#include "heed/cli/train_run.h"
#include "heed/data/picture_data.h"
#include "heed/io/paths.h"
#include "heed/models/classify.h"
#include "heed/models/pictures.h"

namespace heed::cli {
namespace {

constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";

struct DemoFlags {
  std::string data = kDebianFolder, runs = "runs";
  int64_t epochs = 5;
  std::vector<std::string> settings = {};
};

// One picture as a file, and what the model says about it: of the test part where there is one.
void classify_one(const Path& run, const std::string& data) {
  PictureData seen = read_pictures(data, DataPart::test);
  for (const DataPart part : {DataPart::validation, DataPart::train})
    if (seen.count() == 0) seen = read_pictures(data, part);
  const Picture picture = seen.picture(0);
  const Path file = run / "picture.png";
  write_png(file, picture);
  const Path folder = run / "best";
  const Model model = load(folder, {.weights = Weights::packed});
  const Tensor logits = model({{"pixel_values", PictureReader(folder)(std::span(&picture, 1))}}).at("logits");
  std::cout << "\nOne picture, " << file.string() << " (truly: " << seen.classes[static_cast<size_t>(seen.labels[0])]
            << "). The model says:\n";
  const std::vector<std::vector<Label>> best = Labels(model)(logits, 3);
  for (const Label& label : best[0])
    std::cout << "  " << std::fixed << std::setprecision(1) << std::setw(5) << 100 * label.score << "%  " << label.name << '\n';
}

void run_demo(const DemoFlags& options) {
  const bool there = is_folder(options.data) || options.data.starts_with("shapes");
  check<FileError>(there || options.data == kDebianFolder, options.data, ": no such folder");
  const std::string data = there ? options.data : "shapes";
  Training training("classify");
  std::vector<std::string> words{"data=" + data, "epochs=" + std::to_string(options.epochs)};
  // Shoes of Fashion-MNIST all point one way, and five passes are too few to learn from changed pictures.
  if (data == kDebianFolder)
    for (const char* word :
         {"patch=7", "layers=4", "pad=0", "flip=false", "rate=6e-4", "warmup=0.1", "label_smoothing=0", "validation=0.05"})
      words.emplace_back(word);
  words.insert(words.end(), options.settings.begin(), options.settings.end());
  training.tell(words);
  if (!there) std::cout << "Debian's package dataset-fashion-mnist is not installed: these are heed's own shapes, which are easier.\n";
  const Path run = train_anew(training, {.runs = options.runs});
  classify_one(run, data);
  const std::string best = (run / "best").string(), picture = (run / "picture.png").string();
  const Look look = look_at(best, {.input = picture});
  write_text(run / "attention.html", html_page(look));
  write_png(run / "attention.png", still(look, default_query(look)).pixels());
  std::cout << "\nLook at these in a browser:\n  " << (run / "report.html").string()
            << "     curves, mistakes, and where the heads looked\n  " << (run / "attention.html").string()
            << "  every head over the picture; attention.png is one view of it\n"
            << "Then try:\n  heed predict " << best << ' ' << picture << "\n  heed eval " << best << ' ' << data
            << "\n  heed train classify --settings\n";
}

const Command demo_command("demo", "The main job in one go: train on Fashion-MNIST, judge, report, predict", [](Flags& flags) {
  auto options = std::make_shared<DemoFlags>();
  flags.option("--data", options->data, "Pictures to learn from, as of heed train classify").value("DATA");
  flags.option("--epochs", options->epochs, "Passes over the pictures").value("N").must_be(whole_within(1, 1000));
  flags.option("--runs", options->runs, "Where the run's folder is put").value("FOLDER");
  flags.option("settings", options->settings, "Settings of heed train classify").shown("[KEY=VALUE ...]").many();
  flags.footer("Examples:\n  heed demo\n  heed demo --epochs 3 seed=7\n  heed demo --data shapes");
  flags.completes([](const std::vector<std::string>&) { return setting_candidates(Training("classify").settings()); });
  return [options] { run_demo(*options); };
});

}  // namespace
}  // namespace heed::cli
