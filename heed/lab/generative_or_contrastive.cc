// L43: what an encoder represents after masked words, a generative objective, and after next sentences, a contrastive one (Devlin et al.
// 2019), measured by linear probes (Alain and Bengio 2016) on frozen states.
#include <algorithm>
#include <functional>
#include <map>

#include "heed/lab/experiments.h"
#include "heed/lab/invented_language.h"
#include "heed/lab/linear_probe.h"
#include "heed/lab/training.h"
#include "heed/models/embed.h"

namespace heed::lab {
namespace {

// Long documents: near the end of one the lengths of two segments tell whether they belong together.
constexpr int64_t kSentences = 200;
constexpr int64_t kProbeTexts = 400;  // for fitting a probe, and as many for its test
constexpr double kLearned = 0.75;     // accuracy for the next sentence from which a run has learned it: halfway from chance to 1

struct ObjectiveOptions {
  int64_t width = 64, layers = 1, heads = 4, max_length = 96, documents = 480, epochs = 12, seeds = 4, topics = 8, words = 6;
  float rate = 2e-3f;
  uint64_t seed = 1;
};

void declare_objectives(Settings& settings, ObjectiveOptions& options, Size size) {
  if (size == Size::full) options.documents = 1920, options.epochs = 12, options.seeds = 5;
  settings.add("documents", options.documents, "texts of " + std::to_string(kSentences) + " sentences for pre-training",
               {.least = 20, .most = 1e6});
  settings.add("topics", options.topics, "of documents; each has its own nouns", {.least = 2, .most = 20});
  settings.add("words", options.words, "nouns of a topic, and half of the verbs, of the adjectives and of the adverbs",
               {.least = 2, .most = 40});
  settings.add("epochs", options.epochs, "passes over the documents", {.least = 1, .most = 1000});
  settings.add("max_length", options.max_length, "most tokens per sample", {.least = 16, .most = 128});
  settings.add("width", options.width, "of tokens", {.least = 8, .most = 1024});
  settings.add("layers", options.layers, "of the encoder", {.least = 1, .most = 24});
  settings.add("heads", options.heads, "of attention", {.least = 1, .most = 64});
  settings.add("seeds", options.seeds, "runs per objective, which differ only by their seed", {.least = 2, .most = 100});
  settings.add("rate", options.rate, "learning rate", {.least = 1e-6, .most = 1});
  settings.add("seed", options.seed, "of the first run");
}

// Keeps one output of a batch.
std::function<TensorMap(const TextBatch&)> only(const std::string& output) {
  return [output](const TextBatch& batch) { return TensorMap{{output, batch.out.at(output)}}; };
}

// The states of sentences and pairs. use(index of the sentence, its number of tokens, the state of a token)
using StateOf = std::function<std::vector<double>(int64_t token)>;
void each_state(const TextModel& encoder, const std::vector<Sentence>& sentences,
                const std::function<void(size_t place, int64_t tokens, const StateOf& state)>& use) {
  const EncodedSentences encoded = encode_sentences(encoder, sentences);
  each_batch(encoder, encoded.encodings, only("last_hidden_state"), [&](const TextBatch& batch) {
    const Tensor& states = batch.out.at("last_hidden_state");  // (B, N, D)
    const int64_t N = states.size(1), D = states.size(2);
    const std::vector<float> values = states.to_vector<float>();
    for (size_t b = 0; b < batch.places.size(); ++b)
      use(batch.places[b], batch.lengths[b], [&](int64_t token) {
        const float* from = values.data() + (static_cast<int64_t>(b) * N + token) * D;
        return std::vector<double>(from, from + D);
      });
  });
}

// The class of every word, from its own state.
Labelled classed_states(const TextModel& encoder, const InventedLanguage& language, WordSet which, uint64_t seed) {
  Rng rng(seed);
  std::vector<ClassedText> texts;
  std::vector<Sentence> sentences;
  for (int64_t i = 0; i < kProbeTexts; ++i) {
    texts.push_back(drawn_text(language, i % std::ssize(language.nouns), 2, which, rng));
    sentences.push_back({texts.back().text});
  }
  Labelled out;
  each_state(encoder, sentences, [&](size_t place, int64_t tokens, const StateOf& state) {
    const std::vector<int64_t>& classes = texts[place].classes;
    check(tokens == std::ssize(classes) + 2, "L43: ", tokens, " tokens for ", classes.size(), " words");
    for (size_t w = 0; w < classes.size(); ++w)
      if (classes[w] >= 0) out.add(state(static_cast<int64_t>(w) + 1), classes[w]);
  });
  return out;
}

// Whether two texts have one topic, from the pooled state of [CLS]. They are about as long as the segments of pre-training.
Labelled paired_states(const TextModel& encoder, const InventedLanguage& language, int64_t max_length, uint64_t seed) {
  const int64_t sentences = std::max<int64_t>(1, (max_length - 3) / 2 / 8);
  Rng rng(seed);
  std::vector<Sentence> pairs;
  const int64_t topics = std::ssize(language.nouns);
  for (int64_t i = 0; i < 2 * kProbeTexts; ++i) {
    const auto first = static_cast<int64_t>(rng.below(static_cast<uint64_t>(topics)));
    const int64_t second = i % 2 == 1 ? first : (first + 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(topics - 1)))) % topics;
    const std::string text = drawn_text(language, first, sentences, WordSet::all, rng).text;
    pairs.push_back({text, drawn_text(language, second, sentences, WordSet::all, rng).text});
  }
  Labelled out;
  each_batch(encoder, encode_sentences(encoder, pairs).encodings, only("pooler_output"), [&](const TextBatch& batch) {
    const Tensor& pooled = batch.out.at("pooler_output");  // (B, D)
    const std::vector<float> values = pooled.to_vector<float>();
    const auto D = pooled.size(1);
    for (size_t b = 0; b < batch.places.size(); ++b) {
      const float* from = values.data() + static_cast<int64_t>(b) * D;
      out.add(std::vector<double>(from, from + D), static_cast<int64_t>(batch.places[b] % 2));
    }
  });
  return out;
}

struct Objective {
  std::string name, setting;  // setting: of training; empty: none
  std::string metric = {};
  Trials own = {}, pair = {}, word_class = {};
};

// The most frequent token's share of words: what a guess that ignores the context gets right.
double most_frequent_share(const std::vector<ClassedText>& documents) {
  std::map<int64_t, double> counts;
  double words = 0;
  for (const ClassedText& each : documents) {
    // "the" is twice in every sentence, more often than any other word.
    const auto functions = static_cast<double>(std::count(each.classes.begin(), each.classes.end(), -1));
    counts[0] += functions * 2 / 3;
    words += static_cast<double>(each.classes.size());
  }
  return counts[0] / words;
}

// The runs in which the next sentence was learned.
Trials runs_that_learned(const Trials& trials, const std::vector<double>& next_accuracy) {
  Trials out{.samples = trials.samples};
  for (size_t i = 0; i < trials.values.size(); ++i)
    if (next_accuracy[i] >= kLearned) out.values.push_back(trials.values[i]);
  return out;
}

Report not_learned(const std::vector<Objective>& objectives, const std::string& runs, const ObjectiveOptions& options) {
  Report report;
  report.undecided = "After " + std::to_string(options.epochs) + " epochs the next sentence is learned in " + runs +
                     ", with an accuracy of " + interval_text(objectives[2].own.interval()) + " over all. Masked words are guessed with " +
                     interval_text(objectives[1].own.interval()) + ". What the objectives teach cannot be told.";
  report.measured = {at_least("runs", 2, static_cast<double>(options.seeds))};
  return report;
}

Report run_objectives(const ObjectiveOptions& options, const ProgressCallback& progress) {
  const InventedLanguage language(options.topics, options.words);
  std::vector<Objective> objectives{
      {"untrained", ""}, {"masked words", "next=false", "masked_accuracy"}, {"next sentence", "masked=false", "next_accuracy"}};
  double guess = 0;
  for (int64_t i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    const TemporaryFolder folder;
    Rng rng(1000 + seed);
    std::vector<ClassedText> documents;
    std::string lines;
    for (int64_t d = 0; d < options.documents; ++d) {
      documents.push_back(drawn_text(language, d % options.topics, kSentences, WordSet::all, rng));
      lines += documents.back().text + "\n\n";
    }
    guess = most_frequent_share(documents);
    const Path file = folder.path() / "documents.txt";
    write_text(file, lines);
    const TrainingRun run{.task = "pretrain",
                          .settings = {"data=" + file.string(), setting("max_length", options.max_length), setting("rate", options.rate),
                                       setting("epochs", options.epochs), setting("seed", seed), "dropout=0"}};
    TrainingRun untrained = run;
    untrained.add({setting("width", options.width), setting("layers", options.layers), setting("heads", options.heads)});
    const Path initial = save_initial_model(untrained, folder, "initial");
    for (Objective& each : objectives) {
      Path from = initial;
      if (!each.setting.empty()) {
        TrainingRun own = run;
        own.add({"from=" + initial.string(), each.setting});
        const TrainedModel trained = run_training(own, folder, each.name + ", run " + std::to_string(i + 1), progress);
        each.own.values.push_back(trained.metric(each.metric));
        from = trained.folder;
      }
      progress(each.name + ", probes");
      const TextModel encoder = load_embedder(from);
      each.word_class.values.push_back(balanced_accuracy(LinearProbe(classed_states(encoder, language, WordSet::even, 2000 + seed)),
                                                         classed_states(encoder, language, WordSet::odd, 3000 + seed)));
      each.pair.values.push_back(balanced_accuracy(LinearProbe(paired_states(encoder, language, options.max_length, 4000 + seed)),
                                                   paired_states(encoder, language, options.max_length, 5000 + seed)));
    }
  }
  // Next sentence is learned all at once, or not at all in some runs, which then cannot show that it teaches to compare texts.
  const std::vector<double> next_accuracy = objectives[2].own.values;
  const auto learned = std::count_if(next_accuracy.begin(), next_accuracy.end(), [](double each) { return each >= kLearned; });
  const std::string runs = std::to_string(learned) + " of " + std::to_string(options.seeds) + " runs";
  if (learned < 2) return not_learned(objectives, runs, options);
  for (Objective& each : objectives) each.pair = runs_that_learned(each.pair, next_accuracy);
  objectives[2].own = runs_that_learned(objectives[2].own, next_accuracy);
  const Objective &none = objectives[0], &masked = objectives[1], &next = objectives[2];
  const double class_chance = 1 / static_cast<double>(kWordClasses.size());
  const Interval masked_own = masked.own.interval(), next_own = next.own.interval(), pair_next = difference(next.pair, none.pair),
                 pair_both = difference(next.pair, masked.pair), class_masked = difference(masked.word_class, none.word_class),
                 class_both = difference(masked.word_class, next.word_class);

  Report report;
  report.statement =
      "The next sentence is learned in " + runs + ": the true one is distinguished from a drawn one with " + interval_text(next_own) +
      ". Masked words are guessed with an accuracy of " + interval_text(masked_own) +
      ". A linear probe reads the class of words that it has not seen from their states with " +
      interval_text(masked.word_class.interval()) + " after masked words, " + interval_text(next.word_class.interval()) +
      " after next sentence and " + interval_text(none.word_class.interval()) +
      " untrained: the generative objective has to know which word fits where. From the state of [CLS] a probe reads, in the runs that "
      "learned the next sentence, whether two texts have the same topic with " +
      interval_text(next.pair.interval()) + " after next sentence, " + interval_text(masked.pair.interval()) + " after masked words and " +
      interval_text(none.pair.interval()) +
      " untrained: the contrastive objective has to compare texts. Masked words may teach this, too, as the topic helps to guess a noun: "
      "next sentence minus masked words is " +
      points_text(pair_both) + ". For classes of words, next sentence minus untrained is " +
      points_text(difference(next.word_class, none.word_class)) + ".";
  Table table{.title = "95 % CI of the balanced accuracy of linear probes",
              .columns = {"objective", "accuracy on its own task", "class of a word", "same topic, from [CLS]"}};
  BarSet classes{.name = "class of a word"}, pairs{.name = "same topic, from [CLS]"};
  std::vector<std::string> groups;
  for (const Objective& each : objectives) {
    const auto add = [](BarSet& bars, const Interval& interval) {
      bars.values.push_back(interval.mean), bars.low.push_back(interval.low), bars.high.push_back(interval.high);
    };
    add(classes, each.word_class.interval()), add(pairs, each.pair.interval());
    groups.push_back(each.name);
    table.rows.push_back({each.name, each.own.values.empty() ? "none" : interval_text(each.own.interval()),
                          interval_text(each.word_class.interval()), interval_text(each.pair.interval())});
  }
  table.rows.push_back({"chance", "masked " + number_text(100 * guess) + " %, next 50 %", number_text(100 * class_chance) + " %", "50 %"});
  report.tables = {std::move(table)};
  report.figures.push_back(figure("What linear probes read", "Balanced accuracy: mean over runs, 95 % confidence interval.",
                                  Plot{.body = Bars{.up = {"accuracy", false, 0.0, 1.0}, .groups = groups, .sets = {classes, pairs}}}));
  const auto judge = [&](const std::string& what, const Interval& change) {
    if (change.low > 0 || change.high < 0)
      report.measured.push_back(at_least(what + ", lower bound", 0, change.low));
    else
      report.undecided += " " + what + " is " + points_text(change) + ".";
  };
  judge("class of a word: masked words minus untrained", class_masked);
  judge("class of a word: masked words minus next sentence", class_both);
  judge("same topic: next sentence minus untrained", pair_next);
  if (masked_own.low > guess)
    report.measured.push_back(
        at_least("masked words, held out: accuracy, lower bound, above the most frequent word", guess, masked_own.low));
  else
    report.undecided += " Masked words are not learned above chance.";
  if (!report.undecided.empty()) report.undecided = report.statement + " Too few epochs or runs to tell:" + report.undecided;
  report.measured.push_back(at_least("runs that learned the next sentence", 2, static_cast<double>(learned)));
  return report;
}

}  // namespace

Experiment generative_or_contrastive() {
  return {.number = "L43",
          .name = "generative-or-contrastive",
          .topic = Topic::learning,
          .title = "Generate words, or tell pairs apart",
          .claim =
              "Masked words, a generative objective, teach which word fits where; next sentence, a contrastive one, teaches to compare "
              "texts.",
          .formula = R"(L_{\text{masked}} = - \sum_{i} \log p(w_i \mid \text{context}), \quad L_{\text{next}} = - \log p(\text{true pair} )"
                     R"(\mid \text{pair}))",
          .setup =
              "Documents in an invented language have a topic, which chooses the nouns, and a grammar of nouns, verbs, adjectives and "
              "adverbs. Encoders with the same initial weights are pre-trained on one objective. Linear probes on their frozen states then "
              "read the class of a word, fitted to one half of the words and tested on the other, and, in the runs that learned the next "
              "sentence, whether two new texts have one topic.",
          .budget = {"epochs"},
          .prepare = prepared(declare_objectives, run_objectives)};
}

}  // namespace heed::lab
