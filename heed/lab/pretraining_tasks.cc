// L31: what encoders take along from pre-training: masked words and next sentences (Devlin et al. 2019), inverted order, and inference.
#include <algorithm>
#include <array>

#include "heed/data/made_documents.h"
#include "heed/lab/experiments.h"
#include "heed/lab/learn.h"

namespace heed::lab {
namespace {

struct PretrainingOptions {
  int64_t width = 64, layers = 2, heads = 4, steps = 320, max_length = 32;
  int64_t labelled = 400, epochs = 8, seeds = 3;
  float rate = 2e-3f, fine_rate = 1e-3f;
  std::string tasks = "masked,next,both,inversion,inference";
  uint64_t seed = 1;
};

void declare_pretraining(Settings& settings, PretrainingOptions& options, Size size) {
  if (size == Size::full) options.steps = 1000, options.seeds = 4;
  settings.add("tasks", options.tasks, "of pre-training that are compared",
               {.words = {"masked", "next", "both", "inversion", "inference"}, .several = true});
  settings.add("width", options.width, "of tokens", {.least = 8, .most = 1024});
  settings.add("layers", options.layers, "of the encoder", {.least = 1, .most = 24});
  settings.add("heads", options.heads, "of attention", {.least = 1, .most = 64});
  settings.add("steps", options.steps, "of pre-training, 32 samples each", {.least = 1, .most = 1e6});
  settings.add("max_length", options.max_length, "tokens of a sample at most", {.least = 8, .most = 128});
  settings.add("labelled", options.labelled, "texts to learn from afterwards", {.least = 16, .most = 8000});
  settings.add("epochs", options.epochs, "passes over them", {.least = 1, .most = 1000});
  settings.add("seeds", options.seeds, "runs of each kind, which differ by chance alone", {.least = 2, .most = 100});
  settings.add("rate", options.rate, "of pre-training", {.least = 1e-6, .most = 1});
  settings.add("fine_rate", options.fine_rate, "of learning afterwards", {.least = 1e-6, .most = 1});
  settings.add("seed", options.seed, "the first one");
}

struct PretrainingKind {
  std::string task, name;                 // task: as options have it; empty: none
  std::vector<std::string> words = {};    // the settings that make it
  std::vector<std::string> figures = {};  // that tell what it learned
  std::vector<Trials> able = {};          // of each
  Trials topics = {}, entailment = {};    // accuracy afterwards
};

std::vector<PretrainingKind> pretraining_kinds(const PretrainingOptions& options) {
  const auto only = [](const std::string& task) {
    std::vector<std::string> words;
    for (const std::string each : {"masked", "next", "inversion", "inference"}) words.push_back(each + (each == task ? "=true" : "=false"));
    return words;
  };
  std::vector<PretrainingKind> all{{"masked", "masked words", only("masked"), {"masked_accuracy"}},
                                   {"next", "next sentence", only("next"), {"next_accuracy"}},
                                   {"both", "both", {"masked=true", "next=true"}, {"masked_accuracy", "next_accuracy"}},
                                   {"inversion", "inversion", only("inversion"), {"inversion_accuracy"}},
                                   {"inference", "inference", only("inference"), {"inference_accuracy"}}};
  std::vector<PretrainingKind> out{{"", "none"}};
  const std::string asked = "," + options.tasks + ",";
  for (PretrainingKind& kind : all)
    if (asked.find("," + kind.task + ",") != std::string::npos) out.push_back(std::move(kind));
  return out;
}

// Sentences of documents and what the document is about, where one of its sentences says so; all topics in turn.
void write_topics(const Path& file, int64_t opinions, DataPart part) {
  constexpr std::array things{"film", "restaurant", "hotel", "phone", "book", "concert"};
  std::array<std::vector<std::string>, things.size()> told;
  for (const std::vector<std::string>& document : made_documents(opinions, 1, part))
    for (size_t i = 0; i < things.size(); ++i) {
      const auto says = [&](const std::string& sentence) { return sentence.find(std::string(" ") + things[i]) != std::string::npos; };
      if (std::none_of(document.begin(), document.end(), says)) continue;
      told[i].insert(told[i].end(), document.begin(), document.end());
      break;
    }
  std::string lines = "text\tlabel\n";
  for (size_t row = 0; std::all_of(told.begin(), told.end(), [&](const auto& each) { return row < each.size(); }); ++row)
    for (size_t i = 0; i < things.size(); ++i) lines += told[i][row] + "\t" + things[i] + "\n";
  write_text(file, lines);
}

// All kinds with one seed: they begin with the same numbers.
void pretrain_once(std::vector<PretrainingKind>& kinds, const PretrainingOptions& options, uint64_t seed, const Say& say) {
  const TemporaryFolder folder;
  const std::string of_seed = word("seed", seed), length = word("max_length", options.max_length);
  // Words of both kinds of text are in the vocabulary of all.
  const Path beginning = begun({.task = "pretrain",
                                .words = {"data=opinions", "inference=true", length, of_seed, word("width", options.width),
                                          word("layers", options.layers), word("heads", options.heads)}},
                               folder, "begun");
  const Path topics = folder.path() / "topics.tsv", topics_test = folder.path() / "topics_test.tsv";
  write_topics(topics, 4000, DataPart::train);
  write_topics(topics_test, 1000, DataPart::test);
  for (PretrainingKind& kind : kinds) {
    Path from = beginning;
    const std::string name = "seed " + std::to_string(seed) + ", " + kind.name;
    if (!kind.task.empty()) {
      Lesson lesson{.task = "pretrain",
                    .words = {"data=opinions", "from=" + from.string(), length, of_seed, word("rate", options.rate),
                              word("steps", options.steps), word("epochs", options.steps), "dropout=0"}};
      lesson.add(kind.words);
      const Learned learned = learn(lesson, folder, name, say);
      kind.able.resize(kind.figures.size());
      for (size_t i = 0; i < kind.figures.size(); ++i) kind.able[i].values.push_back(learned.figure(kind.figures[i]));
      from = learned.folder;
    }
    const auto afterwards = [&](const std::string& task, const std::vector<std::string>& data) {
      Lesson lesson{.task = task,
                    .words = {"from=" + from.string(), length, of_seed, word("rate", options.fine_rate), word("limit", options.labelled),
                              word("epochs", options.epochs), "dropout=0"}};
      lesson.add(data);
      return learn(lesson, folder, name + ", then " + task, say).figure("accuracy");
    };
    kind.topics.values.push_back(afterwards("sentiment", {"data=" + topics.string(), "test_data=" + topics_test.string()}));
    kind.entailment.values.push_back(afterwards("pairs", {"data=entailment"}));
  }
}

Report run_pretraining(const PretrainingOptions& options, const Say& say) {
  std::vector<PretrainingKind> kinds = pretraining_kinds(options);
  for (int64_t i = 0; i < options.seeds; ++i) pretrain_once(kinds, options, options.seed + static_cast<uint64_t>(i), say);
  const PretrainingKind& none = kinds[0];

  Report report;
  report.statement =
      "An encoder takes along what it was asked before. Telling whether a sentence follows helps greatly with new pairs and harms telling "
      "what a sentence is about; telling inverted order, which is learned at once, harms that too. Masked words are learned slowly and "
      "change little in so few steps; whether a sentence is the next one is not learned in them at all.";
  Table table{.title = "95 % of the mean",
              .columns = {"pre-training", "what it learned", "topics", "entailment", "gain on topics", "gain on entailment"}};
  BarSet topics{.name = "topics"}, entailment{.name = "entailment"};
  std::vector<std::string> groups;
  for (const PretrainingKind& kind : kinds) {
    std::string able;
    for (size_t i = 0; i < kind.figures.size(); ++i)
      able += (i > 0 ? "; " : "") + kind.figures[i].substr(0, kind.figures[i].find('_')) + " " + interval_text(kind.able[i].interval());
    const auto add = [](BarSet& bars, const Interval& interval) {
      bars.values.push_back(interval.mean), bars.low.push_back(interval.low), bars.high.push_back(interval.high);
    };
    add(topics, kind.topics.interval()), add(entailment, kind.entailment.interval());
    groups.push_back(kind.name);
    table.rows.push_back({kind.name, able, interval_text(kind.topics.interval()), interval_text(kind.entailment.interval()),
                          interval_text(differences(kind.topics, none.topics).interval()),
                          interval_text(differences(kind.entailment, none.entailment).interval())});
  }
  const auto known = [&](const std::string& task) -> const PretrainingKind* {
    for (const PretrainingKind& kind : kinds)
      if (kind.task == task) return &kind;
    return nullptr;
  };
  const auto held_out = [&](const std::string& task, double least) {
    if (const PretrainingKind* kind = known(task))
      report.measured.push_back(at_least(kind->name + ", held out: accuracy, lower end", least, kind->able[0].interval().low));
  };
  held_out("masked", 0.15), held_out("inversion", 0.8), held_out("inference", 0.65);
  const PretrainingKind *inference = known("inference"), *next = known("next");
  const auto gains = [&](const PretrainingKind& less) {
    report.measured.push_back(at_least("entailment after inference, less after " + less.name + ": lower end", 0,
                                       differences(inference->entailment, less.entailment).interval().low));
  };
  if (inference) gains(none);
  if (inference && next) gains(*next);
  for (const char* task : {"inversion", "inference"})
    if (const PretrainingKind* kind = known(task))
      report.measured.push_back(at_most("topics after " + kind->name + ", less after none: upper end", 0,
                                        differences(kind->topics, none.topics).interval().high));
  report.tables.push_back(std::move(table));
  report.figures.push_back(figure("What is kept afterwards",
                                  "Test accuracy after learning from the same few labelled texts: mean over runs, 95 % interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0}, .groups = groups, .sets = {topics, entailment}}}));
  return report;
}

}  // namespace

Experiment pretraining_tasks() {
  return {
      .number = "L31",
      .name = "pretraining-tasks",
      .topic = Topic::learning,
      .title = "Which pre-training task does what",
      .claim =
          "Pre-training helps with what it resembles and may harm what it does not: inference helps with pairs of sentences, and neither "
          "it nor inverted order helps to tell topics.",
      .prepare = prepared(declare_pretraining, run_pretraining)};
}

}  // namespace heed::lab
