// heed demo: trains a small vision transformer on Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), or on synthetic shapes if that is not
// installed, evaluates it, writes a report and classifies one image.
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/command.h"
#include "heed/cli/completion.h"
#include "heed/cli/inspection.h"
#include "heed/cli/shell_word.h"
#include "heed/cli/train_run.h"
#include "heed/data/image_data.h"
#include "heed/io/paths.h"
#include "heed/models/classify.h"
#include "heed/models/image_processor.h"

namespace heed::cli {
namespace {

constexpr const char* kDebianFolder = "/usr/share/datasets/fashion-mnist";

struct DemoFlags {
  std::string data = kDebianFolder, runs = "runs";
  int64_t epochs = 5;
  std::vector<std::string> settings = {};
};

// Writes one image to a file and prints its prediction. The image is from the test part if there is one.
void classify_one(const Path& run, const std::string& data) {
  ImageData images = read_images(data, DataPart::test);
  for (const DataPart part : {DataPart::validation, DataPart::train})
    if (images.count() == 0) images = read_images(data, part);
  const Image image = images.image(0);
  const Path file = run / "image.png";
  write_png(file, image);
  const Path folder = run / "best";
  const Model model = load(folder, {.weights = Weights::packed});
  const Tensor logits = model({{"pixel_values", ImageProcessor(folder)(std::span(&image, 1))}}).at("logits");
  std::cout << "\nOne image, " << file.string() << " (true class: " << images.classes[static_cast<size_t>(images.labels[0])]
            << "). Prediction:\n";
  const std::vector<std::vector<Label>> best = Labels(model)(logits, 3);
  for (const Label& label : best[0])
    std::cout << "  " << std::fixed << std::setprecision(1) << std::setw(5) << 100 * label.score << "%  " << label.name << '\n';
}

void run_demo(const DemoFlags& options) {
  const bool available = is_folder(options.data) || options.data.starts_with("shapes");
  check<FileError>(available || options.data == kDebianFolder, options.data, ": no such folder");
  const std::string data = available ? options.data : "shapes";
  TrainingJob training("classify");
  std::vector<std::string> settings{"data=" + data, "epochs=" + std::to_string(options.epochs)};
  // No augmentation: shoes in Fashion-MNIST all point the same way, and five epochs are too few to benefit.
  if (data == kDebianFolder)
    for (const char* setting :
         {"patch=7", "layers=4", "pad=0", "flip=false", "rate=6e-4", "warmup=0.1", "label_smoothing=0", "validation=0.05"})
      settings.emplace_back(setting);
  settings.insert(settings.end(), options.settings.begin(), options.settings.end());
  training.apply(settings);
  if (!available)
    std::cout << "The Debian package dataset-fashion-mnist is not installed: using heed's synthetic shapes, which are easier.\n";
  const Path run = start_training(training, {.runs = options.runs});
  classify_one(run, data);
  const std::string best = (run / "best").string(), image = (run / "image.png").string();
  const Inspection inspection = inspect(best, {.input = image});
  write_text(run / "attention.html", html_page(inspection));
  write_png(run / "attention.png", static_drawing(inspection, default_query(inspection)).pixels());
  std::cout << "\nOpen in a browser:\n  " << (run / "report.html").string() << "     curves, errors and attention maps\n  "
            << (run / "attention.html").string() << "  attention of every head over the image; attention.png shows one view\n"
            << "Then try:\n  heed predict " << shell_word(best) << ' ' << shell_word(image) << "\n  heed eval " << shell_word(best) << ' '
            << shell_word(data) << "\n  heed train classify --settings\n";
}

const Command demo_command("demo", "Train on Fashion-MNIST, evaluate, report and predict, as a demonstration", [](Flags& flags) {
  auto options = std::make_shared<DemoFlags>();
  flags.option("--data", options->data, "Images to train on, as for heed train classify").value("DATA");
  flags.option("--epochs", options->epochs, "Passes over the images").value("N").must_be(whole_within(1, 1000));
  flags.option("--runs", options->runs, "Folder for the run").value("FOLDER");
  flags.option("settings", options->settings, "Settings of heed train classify").usage("[KEY=VALUE ...]").many();
  flags.footer("Examples:\n  heed demo\n  heed demo --epochs 3 seed=7\n  heed demo --data shapes");
  flags.completes([](const std::vector<std::string>&) { return setting_candidates(TrainingJob("classify").settings()); });
  return [options] { run_demo(*options); };
});

}  // namespace
}  // namespace heed::cli
