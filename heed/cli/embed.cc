// heed embed: sentence embeddings as JSON or .npy, or the cosine similarities of sentences.
#include "heed/models/embed.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include "heed/cli/display_text.h"
#include "heed/cli/int8_flag.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/parts_file.h"
#include "heed/cli/print_json.h"
#include "heed/cli/sentence_reader.h"
#include "heed/dist/group.h"
#include "heed/io/npy.h"
#include "heed/models/finite.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

constexpr int64_t kMaxMatrix = 12;   // sentences: more columns do not fit a terminal
constexpr int64_t kChunkRows = 256;  // of a large cosine matrix, which is never materialized

struct EmbedFlags {
  std::string model, npy, pooling, parts;
  SentenceOptions inputs;
  bool int8 = false, nonfinite = false, json = false, similar = false, normalize = false, plain = false;
  int64_t top = 20, max_length = 0;
};

struct Embedded {
  std::vector<std::string> sentences;  // pairs are stored as two consecutive sentences
  Tensor vectors;                      // (sentences, D)
};

EmbedOptions embed_options_for(const EmbedFlags& options) {
  EmbedOptions out = embed_options(options.model);
  if (!options.pooling.empty()) out.pooling = sentence_pooling_named(options.pooling);
  if (options.normalize || options.plain) out.normalize = options.normalize;
  if (options.max_length > 0) out.max_length = options.max_length;
  return out;
}

// Embeds the input in chunks of some thousand sentences and calls use(chunk) for each.
template <class Use>
void each_part(const EmbedFlags& options, const Use& use) {
  const TextModel model = load_embedder(options.model, weights_for(options.int8), nonfinite_warning(options.nonfinite));
  const EmbedOptions embedding = embed_options_for(options);
  SentenceReader reader(options.inputs, "embed");
  SentenceCounter counter;
  int64_t cut = 0;
  for (std::vector<Sentence> read = reader.next(); !read.empty(); read = reader.next()) {
    std::vector<Sentence> sentences;  // pairs are compared, not encoded together
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
  print_truncated(cut, embedding.max_length > 0 ? std::min(embedding.max_length, model.max_tokens) : model.max_tokens);
}

// x: (n, D) -> the same with rows of length 1
Tensor unit_rows(const Tensor& x) { return x / scale(sqrt(sum(x * x, {1}, true)), 1, 1e-12f); }

std::string rounded_cosine(float cosine) {
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
        std::cout << std::setw(7) << rounded_cosine(cosines[i]) << "  " << display_text(a, 40) << " | " << display_text(b, 40) << '\n';
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
    for (size_t j = 0; j < n; ++j) std::cout << std::setw(9) << rounded_cosine(cosines[i * n + j]);
    std::cout << "  " << display_text(all.sentences[i]) << '\n';
  }
}

struct SimilarPair {
  float cosine;
  int64_t a, b;
  bool operator>(const SimilarPair& other) const {
    return cosine != other.cosine ? cosine > other.cosine : a != other.a ? a < other.a : b < other.b;
  }
};

void print_most_similar(const Embedded& all, int64_t top) {
  const Tensor x = unit_rows(all.vectors);
  const int64_t n = x.size(0);
  std::vector<SimilarPair> best;
  const auto keep_best = [&] {
    const auto kept = std::min<int64_t>(top, std::ssize(best));
    std::partial_sort(best.begin(), best.begin() + kept, best.end(), std::greater<>());
    best.resize(static_cast<size_t>(kept));
  };
  for (int64_t begin = 0; begin < n; begin += kChunkRows) {
    const int64_t end = std::min(n, begin + kChunkRows);
    const std::vector<float> cosines = matmul(slice(x, 0, begin, end), transpose(x, 0, 1)).to_vector<float>();
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = i + 1; j < n; ++j) {
        const SimilarPair pair{cosines[static_cast<size_t>((i - begin) * n + j)], i, j};
        if (std::ssize(best) < top || pair > best[static_cast<size_t>(top) - 1]) best.push_back(pair);
      }
      keep_best();
    }
  }
  std::cout << "Most similar of " << n << " sentences\n cosine  sentences\n";
  for (const SimilarPair& each : best)
    std::cout << std::setw(7) << rounded_cosine(each.cosine) << "  " << display_text(all.sentences[static_cast<size_t>(each.a)], 40)
              << " | " << display_text(all.sentences[static_cast<size_t>(each.b)], 40) << '\n';
}

void print_one(const Embedded& all) {
  const std::vector<float> numbers = all.vectors.to_vector<float>();
  std::cout << numbers.size() << " numbers:";
  for (size_t i = 0; i < std::min<size_t>(numbers.size(), 6); ++i) std::cout << ' ' << rounded_cosine(numbers[i]);
  std::cout << (numbers.size() > 6 ? " ...\n" : "\n") << "--json or --npy give all of them; two or more sentences are compared\n";
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
    if (world().is_first()) write_npy(options.npy, all.vectors);
    const Json summary{{"sentences", all.vectors.size(0)}, {"size", all.vectors.size(1)}, {"file", options.npy}};
    if (options.json) return print_json_line(summary);
    std::cout << all.vectors.size(0) << " vectors of " << all.vectors.size(1) << " numbers in " << options.npy << '\n';
  } else if (options.json || (all.vectors.size(0) > 1 && all.vectors.size(0) <= kMaxMatrix)) {
    print_matrix(all, options.json);
  } else if (all.vectors.size(0) == 1) {
    print_one(all);
  } else {
    print_most_similar(all, options.top);
  }
}

const Command embed_command("embed", "Sentence embeddings and their cosine similarities", [](Flags& flags) {
  auto options = std::make_shared<EmbedFlags>();
  flags.option("model", options->model, "Folder of a model or of a run").value("MODEL").required();
  add_sentence_flags(flags, options->inputs, true);
  flags.option("--pooling", options->pooling, "mean, cls or max over tokens; by default as configured in the model's folder, else mean")
      .value("KIND")
      .must_be(one_of({"mean", "cls", "max"}));
  flags.flag("--normalize", options->normalize,
             "Normalize vectors to length 1; the default unless the folder's modules.json says otherwise");
  flags.flag("--no-normalize", options->plain, "Do not normalize vectors");
  flags.option("--max-length", options->max_length, "Truncate sentences to N tokens; 0: the model's maximum")
      .value("N")
      .must_be(non_negative());
  add_parts_flag(flags, options->parts);
  add_int8_flag(flags, options->int8);
  add_nonfinite_flag(flags, options->nonfinite);
  flags.flag("--json", options->json, "One JSON object per line, with the vector of a sentence or the cosine of a pair");
  flags.option("--npy", options->npy, "Write all vectors to a NumPy file, one row each").value("FILE");
  flags.flag("--similar", options->similar, "Print cosines: all, or of the most similar pairs; with --json always all");
  flags.option("--top", options->top, "Number of pairs, if there are too many cosines for a table").value("K").must_be(positive());
  flags.footer(
      "Examples:\n  heed embed minilm 'someone is eating food' 'a man is having lunch' 'the sky is blue'\n"
      "  heed embed minilm --pairs --file pairs.tsv\n  heed embed minilm --file corpus.txt --npy corpus.npy\n"
      "  heed embed minilm --json < corpus.txt > corpus.jsonl");
  return [options] {
    options->model = resolve_model(options->model);
    const std::unique_ptr<PartsFile> parts = parts_file(options->parts, options->model);
    run_embed(*options);
    if (parts) parts->remove();
  };
});

}  // namespace
}  // namespace heed::cli
