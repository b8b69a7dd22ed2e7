// Trains a vision transformer on a folder of images, with one folder for every class, and says how well it does on images that it has not
// seen. The run's folder then has the model, the curves and a report. Without arguments the images are coloured shapes, made here.
//
//   train_vit [DATA]
//
// docs/training.md describes data, settings and the files of a run.
#include <heed/train/training_job.h>

#include <iostream>

int main(int argc, char** argv) try {
  heed::TrainingJob job("classify");
  job.apply({"preset=vit-tiny", "layers=2", "width=64", "heads=4", "patch=8", "epochs=10", "rate=3e-3"});
  job.apply({std::string("data=") + (argc > 1 ? argv[1] : "shapes:3000")});
  const heed::Task task = job.make();  // reads the data and builds the model
  for (const auto& [part, count] : task.counts) std::cout << part << ": " << count << " images\n";
  std::cout << task.model->architecture() << " with " << task.model->params().count() << " parameters\n";

  heed::RunFolder run = heed::RunFolder::create("runs", task.name, "");
  heed::write_settings(run, job.settings());
  heed::TrainCallbacks callbacks;
  callbacks.epoch = [](const heed::EpochInfo& epoch) {
    std::cout << "epoch " << epoch.epoch << '/' << epoch.epochs << ": " << heed::figures_text(epoch.figures) << std::endl;
  };
  const heed::TrainResult result = heed::train_model(task, job.train_options(), run, callbacks);

  const heed::Evaluation scores = heed::finish_run(task, run, result.best_epoch);
  std::cout << "best epoch " << result.best_epoch << ": " << heed::figures_text(scores.figures) << '\n';
  std::cout << "model: " << (run.path() / "best").string() << ", report: " << (run.path() / "report.html").string() << '\n';
} catch (const heed::Error& error) {
  std::cerr << "train_vit: " << error.what() << '\n';
  return error.exit_code();
}
