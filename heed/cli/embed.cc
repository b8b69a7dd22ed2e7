// heed embed: sentences as vectors, for programs as JSON or .npy, for people as how alike they are.
#include "heed/models/embed.h"
#include "heed/cli/model_name.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/int8_flag.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/print_json.h"
#include "heed/cli/sentences.h"
#include "heed/io/npy.h"
#include "heed/models/finite.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

constexpr int64_t kMatrixAtMost = 12;  // sentences: more columns fit no terminal
constexpr int64_t kRowsAtOnce = 256;   // of a large matrix of cosines, which is never there as a whole

struct EmbedFlags {
  std::string model, npy, pooling;
  SentenceOptions inputs;
  bool int8 = false, nonfinite = false, json = false, similar = false, normalize = false, plain = false;
  int64_t top = 20, max_length = 0;
};

struct Embedded {
  std::vector<std::string> sentences;  // two in turn where pairs were read
  Tensor vectors;                      // (sentences, D)
};

EmbedOptions how(const EmbedFlags& options) {
  EmbedOptions out = embed_options(options.model);
  if (!options.pooling.empty()) out.pooling = sentence_pooling_named(options.pooling);
  if (options.normalize || options.plain) out.normalize = options.normalize;
  if (options.max_length > 0) out.max_length = options.max_length;
  return out;
}

// Some thousand sentences at a time; use(part) sees each of them.
template <class Use>
void each_part(const EmbedFlags& options, const Use& use) {
  const TextModel model = load_embedder(options.model, weights_for(options.int8), nonfinite_warning(options.nonfinite));
  const EmbedOptions embedding = how(options);
  SentenceReader reader(options.inputs, "embed");
  SentenceCounter counter;
  int64_t cut = 0;
  for (std::vector<Sentence> read = reader.next(); !read.empty(); read = reader.next()) {
    std::vector<Sentence> sentences;  // pairs are compared, not judged together: each is a sentence of its own
    Embedded part;
    for (const Sentence& each : read) {
      sentences.push_back({each.text});
      part.sentences.push_back(each.text);
      if (!each.pair) continue;
      sentences.push_back({*each.pair});
      part.sentences.push_back(*each.pair);
    }
    const EncodedSentences encoded = encode_sentences(model, sentences, embedding.max_length);
    cut += encoded.cut;
    try {
      part.vectors = embed(model, encoded.encodings, embedding, [&](int64_t done) { counter.add(done); });
    } catch (const NonfiniteOutput& error) {
      fail<FileError>("embed: ", in_quotes(part.sentences[static_cast<size_t>(error.item)], 60), ": ", error.what());
    }
    counter.clear();
    use(part);
  }
  tell_cut(cut, embedding.max_length > 0 ? std::min(embedding.max_length, model.most_tokens) : model.most_tokens);
}

// x: (n, D) -> the same with rows of length 1
Tensor unit_rows(const Tensor& x) { return x / scale(sqrt(sum(x * x, {1}, true)), 1, 1e-12f); }

std::string rounded(float cosine) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(4) << (std::abs(cosine) < 5e-5f ? 0.f : cosine);
  return text.str();
}

void print_pairs(const EmbedFlags& options) {
  if (!options.json) std::cout << " cosine  sentences\n";
  each_part(options, [&](const Embedded& part) {
    const Tensor x = unit_rows(part.vectors);
    const int64_t n = x.size(0);
    const std::vector<float> cosines = sum(slice(x, 0, 0, n, 2) * slice(x, 0, 1, n, 2), {1}).to_vector<float>();
    for (size_t i = 0; i < cosines.size(); ++i) {
      const std::string &a = part.sentences[2 * i], &b = part.sentences[2 * i + 1];
      if (options.json)
        print_json_line({{"text", a}, {"pair", b}, {"cosine", cosines[i]}});
      else
        std::cout << std::setw(7) << rounded(cosines[i]) << "  " << shown(a, 40) << " | " << shown(b, 40) << '\n';
    }
  });
}

void print_matrix(const Embedded& all, bool json) {
  const Tensor x = unit_rows(all.vectors);
  const auto n = static_cast<size_t>(x.size(0));
  const std::vector<float> cosines = matmul(x, transpose(x, 0, 1)).to_vector<float>();
  if (json) {
    Json rows = Json::array();
    for (size_t i = 0; i < n; ++i)
      rows.push_back(
          std::vector<float>(cosines.begin() + static_cast<int64_t>(i * n), cosines.begin() + static_cast<int64_t>((i + 1) * n)));
    return print_json_line({{"texts", all.sentences}, {"cosines", rows}});
  }
  std::cout << "  ";
  for (size_t j = 0; j < n; ++j) std::cout << std::setw(9) << j + 1;
  std::cout << '\n';
  for (size_t i = 0; i < n; ++i) {
    std::cout << std::setw(2) << i + 1;
    for (size_t j = 0; j < n; ++j) std::cout << std::setw(9) << rounded(cosines[i * n + j]);
    std::cout << "  " << shown(all.sentences[i]) << '\n';
  }
}

struct Alike {
  float cosine;
  int64_t a, b;
  bool operator>(const Alike& other) const {
    return cosine != other.cosine ? cosine > other.cosine : a != other.a ? a < other.a : b < other.b;
  }
};

void print_most_alike(const Embedded& all, int64_t top) {
  const Tensor x = unit_rows(all.vectors);
  const int64_t n = x.size(0);
  std::vector<Alike> best;
  const auto keep_best = [&] {
    const auto kept = std::min<int64_t>(top, std::ssize(best));
    std::partial_sort(best.begin(), best.begin() + kept, best.end(), std::greater<>());
    best.resize(static_cast<size_t>(kept));
  };
  for (int64_t begin = 0; begin < n; begin += kRowsAtOnce) {
    const int64_t end = std::min(n, begin + kRowsAtOnce);
    const std::vector<float> cosines = matmul(slice(x, 0, begin, end), transpose(x, 0, 1)).to_vector<float>();
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        const Alike pair{cosines[static_cast<size_t>((i - begin) * n + j)], i, j};
        if (std::ssize(best) < top || pair > best[static_cast<size_t>(top) - 1]) best.push_back(pair);
      }
      keep_best();
    }
  }
  std::cout << "Most alike of " << n << " sentences\n cosine  sentences\n";
  for (const Alike& each : best)
    std::cout << std::setw(7) << rounded(each.cosine) << "  " << shown(all.sentences[static_cast<size_t>(each.a)], 40) << " | "
              << shown(all.sentences[static_cast<size_t>(each.b)], 40) << '\n';
}

void print_one(const Embedded& all) {
  const std::vector<float> numbers = all.vectors.to_vector<float>();
  std::cout << numbers.size() << " numbers:";
  for (size_t i = 0; i < std::min<size_t>(numbers.size(), 6); ++i) std::cout << ' ' << rounded(numbers[i]);
  std::cout << (numbers.size() > 6 ? " ...\n" : "\n") << "--json or --npy give them all; two sentences or more are compared\n";
}

void run_embed(const EmbedFlags& options) {
  check<UsageError>(!(options.normalize && options.plain), "embed: found --normalize and --no-normalize, expected one of them");
  check<UsageError>(options.npy.empty() || (!options.inputs.pairs && !options.similar), "embed: --npy holds vectors, found ",
                    options.similar ? "--similar" : "--pairs", " too; expected one of the two");
  if (options.inputs.pairs) return print_pairs(options);
  if (options.json && !options.similar && options.npy.empty())
    return each_part(options, [](const Embedded& part) {
      const std::vector<float> numbers = part.vectors.to_vector<float>();
      const int64_t D = part.vectors.size(1);
      for (int64_t i = 0; i < part.vectors.size(0); ++i)
        print_json_line({{"text", part.sentences[static_cast<size_t>(i)]},
                         {"embedding", std::vector<float>(numbers.begin() + i * D, numbers.begin() + (i + 1) * D)}});
    });
  Embedded all;
  Tensors parts;
  each_part(options, [&](Embedded& part) {
    std::move(part.sentences.begin(), part.sentences.end(), std::back_inserter(all.sentences));
    parts.push_back(part.vectors);
  });
  all.vectors = concat(parts, 0);
  if (!options.npy.empty()) {
    write_npy(options.npy, all.vectors);
    const Json told{{"sentences", all.vectors.size(0)}, {"size", all.vectors.size(1)}, {"file", options.npy}};
    if (options.json) return print_json_line(told);
    std::cout << all.vectors.size(0) << " vectors of " << all.vectors.size(1) << " numbers in " << options.npy << '\n';
  } else if (options.json || (all.vectors.size(0) > 1 && all.vectors.size(0) <= kMatrixAtMost)) {
    print_matrix(all, options.json);
  } else if (all.vectors.size(0) == 1) {
    print_one(all);
  } else {
    print_most_alike(all, options.top);
  }
}

const Command embed_command("embed", "Sentences as vectors, and how alike they are", [](Flags& flags) {
  auto options = std::make_shared<EmbedFlags>();
  flags.option("model", options->model, "Folder of a model or of a run").value("MODEL").required();
  add_sentence_flags(flags, options->inputs, true);
  flags.option("--pooling", options->pooling, "mean, cls or max of the tokens; as the model's folder says unless given, or else mean")
      .value("KIND")
      .must_be(one_of({"mean", "cls", "max"}));
  flags.flag("--normalize", options->normalize, "Vectors of length 1, as they are unless the folder's modules.json says no");
  flags.flag("--no-normalize", options->plain, "Vectors as long as they come");
  flags.option("--max-length", options->max_length, "Cut sentences to so many tokens; 0: what the model can read")
      .value("N")
      .must_be(non_negative());
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.flag("--json", options->json, "One JSON object a line, with the vector of a sentence or the cosine of a pair");
  flags.option("--npy", options->npy, "Write all vectors into a file for NumPy, a row each").value("FILE");
  flags.flag("--similar", options->similar, "Print cosines: all of them, or of the pairs most alike; with --json always all");
  flags.option("--top", options->top, "How many pairs, where there are too many cosines for a table").value("K").must_be(positive());
  flags.footer(
      "Examples:\n  heed embed minilm 'someone is eating food' 'a man is having lunch' 'the sky is blue'\n"
      "  heed embed minilm --pairs --file pairs.tsv\n  heed embed minilm --file corpus.txt --npy corpus.npy\n"
      "  heed embed minilm --json < corpus.txt > corpus.jsonl");
  return [options] {
    options->model = named_model(options->model);
    run_embed(*options);
  };
});

}  // namespace
}  // namespace heed::cli
