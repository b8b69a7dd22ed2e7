// Fine-tunes a BERT checkpoint to classify sentences, then classifies some. Without arguments it first pre-trains a small BERT on synthetic
// text for a few seconds, in place of a published checkpoint, and fine-tunes it on synthetic opinions.
//
//   fine_tune_classifier [CHECKPOINT DATA.csv SENTENCE...]
//
// docs/training.md describes the tasks, docs/models.md the checkpoints.
#include <heed/models/classify.h>
#include <heed/train/training_job.h>

#include <iostream>

namespace {

// Trains with these settings and returns the folder of the best model.
heed::Path train(const std::string& task_name, const std::vector<std::string>& settings) {
  heed::TrainingJob job(task_name);
  job.apply(settings);
  const heed::Task task = job.make();
  heed::RunFolder run = heed::RunFolder::create("runs", task.name, "");
  heed::write_settings(run, job.settings());
  heed::TrainCallbacks callbacks;
  callbacks.epoch = [&](const heed::EpochInfo& epoch) {
    std::cout << task_name << ", epoch " << epoch.epoch << '/' << epoch.epochs << ": " << heed::figures_text(epoch.figures) << std::endl;
  };
  heed::train_model(task, job.train_options(), run, callbacks);
  return run.path() / "best";
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> settings{"epochs=5"};
  std::vector<heed::Sentence> sentences;
  if (argc > 2) {
    settings.insert(settings.end(), {std::string("from=") + argv[1], std::string("data=") + argv[2], "rate=3e-5"});
    for (int i = 3; i < argc; ++i) sentences.push_back({argv[i]});
  } else {
    const heed::Path start =
        train("pretrain", {"layers=2", "width=64", "heads=4", "vocabulary=400", "max_length=40", "steps=60", "batch=16"});
    settings.insert(settings.end(), {"from=" + start.string(), "data=opinions", "rate=1e-3", "dropout=0"});
    sentences = {{"The soup was wonderful."}, {"I was bored by the singer, who was awful."}};
  }

  const heed::Path best = train("sentiment", settings);
  const heed::TextModel model = heed::load_text_model(best);
  const auto labels = heed::classify(model, sentences);  // for every sentence all labels, the best first
  for (size_t i = 0; i < sentences.size(); ++i)
    std::cout << labels[i][0].name << " (" << labels[i][0].score << "): " << sentences[i].text << '\n';
} catch (const heed::Error& error) {
  std::cerr << "fine_tune_classifier: " << error.what() << '\n';
  return error.exit_code();
}
