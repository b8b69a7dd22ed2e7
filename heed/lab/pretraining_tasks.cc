// L31: effect of pre-training tasks on fine-tuning: masked words and next sentences (Devlin et al. 2019), inverted order, and inference.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "heed/data/synthetic_documents.h"
#include "heed/lab/experiments.h"
#include "heed/lab/training.h"

namespace heed::lab {
namespace {

struct PretrainingOptions {
  int64_t width = 64, layers = 2, heads = 4, steps = 640, max_length = 64, opinions = 24000;
  int64_t labelled = 400, epochs = 8, seeds = 3;
  float rate = 2e-3f, fine_rate = 1e-3f;
  std::string tasks = "masked,next,both,inversion,inference";
  uint64_t seed = 1;
};

void declare_pretraining(Settings& settings, PretrainingOptions& options, Size size) {
  if (size == Size::full) options.steps = 2000, options.seeds = 4;
  settings.add("tasks", options.tasks, "pre-training tasks to compare",
               {.choices = {"masked", "next", "both", "inversion", "inference"}, .several = true});
  settings.add("width", options.width, "of tokens", {.least = 8, .most = 1024});
  settings.add("layers", options.layers, "of the encoder", {.least = 1, .most = 24});
  settings.add("heads", options.heads, "of attention", {.least = 1, .most = 64});
  settings.add("steps", options.steps, "of pre-training, with 32 samples each", {.least = 1, .most = 1e6});
  settings.add("opinions", options.opinions, "from which the documents for pre-training are made", {.least = 100, .most = 1e6});
  settings.add("max_length", options.max_length, "most tokens per sample", {.least = 8, .most = 128});
  settings.add("labelled", options.labelled, "texts for fine-tuning", {.least = 16, .most = 8000});
  settings.add("epochs", options.epochs, "epochs of fine-tuning", {.least = 1, .most = 1000});
  settings.add("seeds", options.seeds, "runs per task, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("rate", options.rate, "learning rate of pre-training", {.least = 1e-6, .most = 1});
  settings.add("fine_rate", options.fine_rate, "learning rate of fine-tuning", {.least = 1e-6, .most = 1});
  settings.add("seed", options.seed, "of the first run");
}

struct PretrainingKind {
  std::string task, name;                  // task: as in options.tasks; empty: no pre-training
  std::vector<std::string> settings = {};  // settings that select it
  std::vector<std::string> metrics = {};   // metrics of the task itself
  std::vector<Trials> scores = {};         // values of those metrics
  Trials topics = {}, entailment = {};     // accuracy after fine-tuning
};

std::vector<PretrainingKind> pretraining_kinds(const PretrainingOptions& options) {
  const auto only = [](const std::string& task) {
    std::vector<std::string> out;
    for (const std::string each : {"masked", "next", "inversion", "inference"}) out.push_back(each + (each == task ? "=true" : "=false"));
    return out;
  };
  std::vector<PretrainingKind> all{{"masked", "masked words", only("masked"), {"masked_accuracy"}},
                                   {"next", "next sentence", only("next"), {"next_accuracy"}},
                                   {"both", "both", {"masked=true", "next=true"}, {"masked_accuracy", "next_accuracy"}},
                                   {"inversion", "inversion", only("inversion"), {"inversion_accuracy"}},
                                   {"inference", "inference", only("inference"), {"inference_accuracy"}}};
  std::vector<PretrainingKind> out{{"", "none"}};
  const std::string selected = "," + options.tasks + ",";
  for (PretrainingKind& kind : all)
    if (selected.find("," + kind.task + ",") != std::string::npos) out.push_back(std::move(kind));
  return out;
}

// Documents for pre-training: next sentences need many, or a model learns the documents themselves. -> the share of the most frequent
// word or mark, which a guess without context gets right
double write_documents(const Path& file, int64_t opinions) {
  std::string lines;
  for (const std::vector<std::string>& document : synthetic_documents(opinions, 1)) {
    for (const std::string& sentence : document) lines += sentence + " ";
    lines += "\n\n";
  }
  write_text(file, lines);
  std::map<std::string, double> counts;
  double all = 0, most = 0;
  std::string word;
  for (const char each : lines) {
    const bool letter = std::isalnum(static_cast<unsigned char>(each)) != 0, mark = !letter && each != ' ' && each != '\n';
    if (letter) word += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    if (!letter && !word.empty()) most = std::max(most, ++counts[word]), ++all, word.clear();
    if (mark) most = std::max(most, ++counts[std::string(1, each)]), ++all;
  }
  return most / all;
}

// Sentences labelled with the topic of their document, for documents that name it; balanced over topics.
void write_topics(const Path& file, int64_t opinions, DataPart part) {
  constexpr std::array things{"film", "restaurant", "hotel", "phone", "book", "concert"};
  std::array<std::vector<std::string>, things.size()> sentences;
  for (const std::vector<std::string>& document : synthetic_documents(opinions, 1, part))
    for (size_t i = 0; i < things.size(); ++i) {
      const auto mentions = [&](const std::string& sentence) { return sentence.find(std::string(" ") + things[i]) != std::string::npos; };
      if (std::none_of(document.begin(), document.end(), mentions)) continue;
      sentences[i].insert(sentences[i].end(), document.begin(), document.end());
      break;
    }
  std::string lines = "text\tlabel\n";
  for (size_t row = 0; std::all_of(sentences.begin(), sentences.end(), [&](const auto& each) { return row < each.size(); }); ++row)
    for (size_t i = 0; i < things.size(); ++i) lines += sentences[i][row] + "\t" + things[i] + "\n";
  write_text(file, lines);
}

// All tasks with one seed, starting from the same weights. -> the share of the most frequent word
double pretrain_once(std::vector<PretrainingKind>& kinds, const PretrainingOptions& options, uint64_t seed,
                     const ProgressCallback& progress) {
  const TemporaryFolder folder;
  const std::string of_seed = setting("seed", seed), length = setting("max_length", options.max_length);
  // The shared vocabulary covers both kinds of text.
  const Path documents = folder.path() / "documents.txt";
  const double most_frequent = write_documents(documents, options.opinions);
  const Path initial_model =
      save_initial_model({.task = "pretrain",
                          .settings = {"data=" + documents.string(), "inference=true", length, of_seed, setting("width", options.width),
                                       setting("layers", options.layers), setting("heads", options.heads)}},
                         folder, "initial");
  const Path topics = folder.path() / "topics.tsv", topics_test = folder.path() / "topics_test.tsv";
  write_topics(topics, 4000, DataPart::train);
  write_topics(topics_test, 1000, DataPart::test);
  for (PretrainingKind& kind : kinds) {
    Path from = initial_model;
    const std::string name = "seed " + std::to_string(seed) + ", " + kind.name;
    if (!kind.task.empty()) {
      TrainingRun run{.task = "pretrain",
                      .settings = {"data=" + documents.string(), "from=" + from.string(), length, of_seed, setting("rate", options.rate),
                                   setting("steps", options.steps), setting("epochs", options.steps), "dropout=0"}};
      run.add(kind.settings);
      const TrainedModel trained = run_training(run, folder, name, progress);
      kind.scores.resize(kind.metrics.size());
      for (size_t i = 0; i < kind.metrics.size(); ++i) kind.scores[i].values.push_back(trained.metric(kind.metrics[i]));
      from = trained.folder;
    }
    const auto fine_tune = [&](const std::string& task, const std::vector<std::string>& data) {
      TrainingRun run{.task = task,
                      .settings = {"from=" + from.string(), length, of_seed, setting("rate", options.fine_rate),
                                   setting("limit", options.labelled), setting("epochs", options.epochs), "dropout=0"}};
      run.add(data);
      return run_training(run, folder, name + ", then " + task, progress).metric("accuracy");
    };
    kind.topics.values.push_back(fine_tune("sentiment", {"data=" + topics.string(), "test_data=" + topics_test.string()}));
    kind.entailment.values.push_back(fine_tune("pairs", {"data=entailment"}));
  }
  return most_frequent;
}

// Accuracy of a guess: always the most frequent word, or one of two classes.
double chance_of(const std::string& metric, double most_frequent) { return metric.starts_with("masked") ? most_frequent : 0.5; }

// What each task has learned of itself, and what it changes on the other two, as far as the intervals tell.
std::string pretraining_text(const std::vector<PretrainingKind>& kinds, const PretrainingOptions& options, double most_frequent) {
  std::string learned, not_yet;
  std::array<std::string, 4> changes;  // helps topics, harms topics, helps entailment, harms entailment
  const auto append = [](std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; };
  for (const PretrainingKind& kind : kinds) {
    for (size_t i = 0; i < kind.metrics.size(); ++i) {
      const Interval own = kind.scores[i].interval();
      append(own.low > chance_of(kind.metrics[i], most_frequent) ? learned : not_yet,
             (kind.metrics.size() > 1 ? kind.name + " (" + kind.metrics[i].substr(0, kind.metrics[i].find('_')) + ")" : kind.name) + " " +
                 interval_text(own));
    }
    if (kind.task.empty()) continue;
    const std::array gains{difference(kind.topics, kinds[0].topics), difference(kind.entailment, kinds[0].entailment)};
    for (size_t i = 0; i < gains.size(); ++i) {
      if (gains[i].low > 0) append(changes[2 * i], kind.name);
      if (gains[i].high < 0) append(changes[2 * i + 1], kind.name);
    }
  }
  const auto part = [](const char* what, const std::string& list) { return list.empty() ? "" : std::string(what) + list + ". "; };
  return "After " + std::to_string(options.steps) +
         " steps of pre-training, accuracy on the task itself: " + part("above chance for ", learned) +
         part("Not above chance, so the run is too short to tell what it teaches: ", not_yet) +
         part("Topics are classified better after ", changes[0]) + part("Topics are classified worse after ", changes[1]) +
         part("Entailment is decided better after ", changes[2]) + part("Entailment is decided worse after ", changes[3]) +
         "Comparisons are with models that were not pre-trained.";
}

Report run_pretraining(const PretrainingOptions& options, const ProgressCallback& progress) {
  std::vector<PretrainingKind> kinds = pretraining_kinds(options);
  double most_frequent = 0;
  for (int64_t i = 0; i < options.seeds; ++i)
    most_frequent = pretrain_once(kinds, options, options.seed + static_cast<uint64_t>(i), progress);
  const PretrainingKind& none = kinds[0];

  Report report;
  report.statement = pretraining_text(kinds, options, most_frequent);
  Table table{.title = "95 % CI",
              .columns = {"pre-training", "accuracy on its own task", "topics", "entailment", "gain on topics", "gain on entailment"}};
  BarSet topics{.name = "topics"}, entailment{.name = "entailment"};
  std::vector<std::string> groups;
  for (const PretrainingKind& kind : kinds) {
    std::string scores;
    for (size_t i = 0; i < kind.metrics.size(); ++i)
      scores += (i > 0 ? "; " : "") + kind.metrics[i].substr(0, kind.metrics[i].find('_')) + " " + interval_text(kind.scores[i].interval());
    const auto add = [](BarSet& bars, const Interval& interval) {
      bars.values.push_back(interval.mean), bars.low.push_back(interval.low), bars.high.push_back(interval.high);
    };
    add(topics, kind.topics.interval()), add(entailment, kind.entailment.interval());
    groups.push_back(kind.name);
    table.rows.push_back({kind.name, scores, interval_text(kind.topics.interval()), interval_text(kind.entailment.interval()),
                          points_text(difference(kind.topics, none.topics)), points_text(difference(kind.entailment, none.entailment))});
  }
  const auto kind_of = [&](const std::string& task) -> const PretrainingKind* {
    for (const PretrainingKind& kind : kinds)
      if (kind.task == task) return &kind;
    return nullptr;
  };
  // A difference is judged if its interval excludes 0, and after a task that was learned.
  std::string open;
  const auto judge = [&](const std::string& what, const Interval& change, bool gain) {
    if (change.low <= 0 && change.high >= 0)
      open += " " + what + " is " + points_text(change) + ".";
    else if (gain)
      report.measured.push_back(at_least(what + ": lower bound", 0, change.low));
    else
      report.measured.push_back(at_most(what + ": upper bound", 0, change.high));
  };
  const PretrainingKind *inference = kind_of("inference"), *next = kind_of("next");
  if (inference) judge("entailment after inference, minus after none", difference(inference->entailment, none.entailment), true);
  if (inference && next)
    judge("entailment after inference, minus after next sentence", difference(inference->entailment, next->entailment), true);
  for (const char* task : {"inversion", "inference"})
    if (const PretrainingKind* kind = kind_of(task))
      judge("topics after " + kind->name + ", minus after none", difference(kind->topics, none.topics), false);
  for (const char* task : {"masked", "inversion", "inference"})
    if (const PretrainingKind* kind = kind_of(task)) {
      const double least = chance_of(kind->metrics[0], most_frequent), low = kind->scores[0].interval().low;
      if (low > least)
        report.measured.push_back(at_least(kind->name + ", held out: accuracy, lower bound, above chance", least, low));
      else
        open += " " + kind->name + " is not learned above chance.";
    }
  if (!open.empty()) {
    report.undecided = report.statement + " Too few steps or runs to tell:" + open;
    report.measured.push_back(at_least("runs of each task", 2, static_cast<double>(options.seeds)));
  }
  report.tables.push_back(std::move(table));
  report.figures.push_back(
      figure("Accuracy after fine-tuning",
             "Test accuracy after fine-tuning on the same few labelled texts: mean over runs, 95 % confidence interval.",
             Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {topics, entailment}}}));
  return report;
}

}  // namespace

Experiment pretraining_tasks() {
  return {.number = "L31",
          .name = "pretraining-tasks",
          .topic = Topic::learning,
          .title = "What pre-training tasks transfer",
          .claim =
              "Pre-training helps with similar tasks and may harm others: inference helps with sentence pairs, and neither it nor inverted "
              "order helps with topics.",
          .setup =
              "Small encoders with the same initial weights are pre-trained on synthetic text with one task each, or not at all, then "
              "fine-tuned on few labelled texts: to classify topics, and to decide whether one sentence entails another. Test accuracies "
              "over several seeds are compared by 95 % confidence intervals.",
          .budget = {"epochs", "steps"},
          .gpu = true,
          .prepare = prepared(declare_pretraining, run_pretraining)};
}

}  // namespace heed::lab
