// heed predict for images: files, and folders with all their subfolders.
#include <algorithm>
#include <iostream>

#include "heed/cli/display_text.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/parts_file.h"
#include "heed/cli/predict.h"
#include "heed/core/parallel.h"
#include "heed/io/image.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/io/utf8.h"
#include "heed/models/architecture.h"
#include "heed/models/caption.h"
#include "heed/models/embed.h"
#include "heed/models/finite.h"
#include "heed/models/image_processor.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

constexpr size_t kBatch = 16;

// Appends a file, or all images of a folder sorted by name. Other files of the folder are listed on standard error.
void append_images(const Path& path, std::vector<Path>& out) {
  if (!is_folder(path)) return out.push_back(path);
  const FolderImages found = find_images(path);
  const std::string note = skipped_files_note(found.skipped_files);
  check<FileError>(!found.images.empty(), printable(path.string()),
                   ": found no images in the folder, expected files with .png, .jpg, .jpeg, .webp or .bmp", note.empty() ? "" : "; ", note);
  if (!note.empty()) std::cerr << "heed: " << note << '\n';
  out.insert(out.end(), found.images.begin(), found.images.end());
}

// JSON is UTF-8; file names may be any bytes.
std::string json_name(const Path& path) {
  const std::string name = path.string();
  return find_bad_utf8(name) == std::string::npos ? name : printable(name);
}

const char* skip_advice(std::span<const Path> paths) { return paths.size() > 1 ? "; --skip-bad skips such images" : ""; }

struct ReadResult {
  Tensor pixels;  // (3, height, width); undefined if it could not be read
  std::string error_text;
};

std::vector<ReadResult> read_all(const ImageProcessor& processor, std::span<const Path> paths) {
  std::vector<ReadResult> out(paths.size());
  parallel_tasks(std::ssize(paths), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    try {
      out[i].pixels = processor(read_image(paths[i]));
    } catch (const FileError& error) {
      out[i].error_text = printable(error.what());
    }
  });
  return out;
}

int64_t batches_of(std::span<const Path> paths) { return static_cast<int64_t>((paths.size() + kBatch - 1) / kBatch); }
std::span<const Path> batch_of(std::span<const Path> paths, int64_t batch) {
  const size_t begin = static_cast<size_t>(batch) * kBatch;
  return paths.subspan(begin, std::min(kBatch, paths.size() - begin));
}

class ImagePredictor {
 public:
  // texts: (labels, D), the vectors of the labels that images are compared with; undefined: the model has labels of its own
  ImagePredictor(const PredictOptions& options, const Model& model, Labels labels, Tensor texts = {})
      : options_(options), model_(model), labels_(std::move(labels)), texts_(std::move(texts)), processor_(options.model) {
    if (options.agreement)
      f32_model_.emplace(
          load(options.model, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = Weights::packed}));
  }

  void operator()(std::span<const Path> paths) {
    const auto batch = [&](int64_t part) { return batch_of(paths, part); };
    split_work(
        world(), batches_of(paths),
        [&](int64_t part) {
          const std::vector<uint8_t> bytes = Json::to_cbor(results(batch(part)));
          return std::string(bytes.begin(), bytes.end());
        },
        [&](int64_t part, const std::string& bytes) { print_all(batch(part), Json::from_cbor(bytes)); });
  }

  void finish() const {
    if (f32_model_) agreement_.print();
    std::cout.flush();
    check(bad_ == 0, "predict: ", bad_, " of ", bad_ + good_, " images could not be read and were skipped");
  }

 private:
  // {"images": of each a message, or its labels as [id, score], ...}, and "agreement" if two models are compared
  Json results(std::span<const Path> paths) {
    const std::vector<ReadResult> read = read_all(processor_, paths);
    Tensors good;
    std::vector<Path> good_paths;
    for (size_t i = 0; i < read.size(); ++i) {
      if (!read[i].error_text.empty()) continue;
      good.push_back(read[i].pixels);
      good_paths.push_back(paths[i]);
      check<FileError>(good.back().shape() == good.front().shape(), printable(paths[i].string()), ": preprocessed to ", good.back().shape(),
                       ", previous images to ", good.front().shape(), ", expected equal shapes");
    }
    Json out{{"images", Json::array()}};
    std::vector<std::vector<Label>> predictions;
    const bool stops = good.size() < read.size() && !options_.skip_bad;
    if (!good.empty() && !stops) predictions = labelled(good, good_paths, out);
    auto next = predictions.begin();
    for (const ReadResult& each : read) {
      Json labels = Json::array();
      if (each.error_text.empty() && !stops)
        for (const Label& label : *next++) labels.push_back({label.id, label.score});
      out["images"].push_back(each.error_text.empty() ? labels : Json(each.error_text));
    }
    return out;
  }

  std::vector<std::vector<Label>> labelled(const Tensors& images, const std::vector<Path>& names, Json& out) {
    const NoGrad no_grad;
    TensorMap inputs{{"pixel_values", stack(images, 0)}};
    check_image_size(model_, options_.model, inputs.at("pixel_values"));
    if (texts_.defined()) inputs["text_embeds"] = texts_;
    const std::string output = texts_.defined() ? "logits_per_image" : "logits";
    const Tensor logits = model_(inputs).at(output);
    try {
      check_finite(model_, logits);
    } catch (const NonfiniteOutput& error) {
      fail<FileError>(names[static_cast<size_t>(error.item)].string(), ": ", error.what());
    }
    if (f32_model_) {
      Agreement agreement;
      const auto int8 = labels_(logits), expected = labels_((*f32_model_)(inputs).at(output));
      for (size_t i = 0; i < int8.size(); ++i) agreement.add(int8[i], expected[i]);
      out["agreement"] = agreement.json();
    }
    return labels_(logits, options_.top > 0 ? options_.top : 5);
  }

  void print_all(std::span<const Path> paths, const Json& found) {
    const Json& images = found.at("images");
    for (const Json& image : images)
      check<FileError>(options_.skip_bad || !image.is_string(), image.is_string() ? image.get<std::string>() : "", skip_advice(paths));
    if (found.contains("agreement")) agreement_.add(found.at("agreement"));
    counter_.add(std::ssize(paths));
    counter_.clear();
    if (!options_.json && !table_) table_.emplace("label", labels_.names(), labels_.kind(), "image");
    for (size_t i = 0; i < paths.size(); ++i) print(paths[i], images.at(i));
  }

  void print(const Path& path, const Json& image) {
    ++(image.is_string() ? bad_ : good_);
    if (image.is_string()) {
      std::cout.flush();
      std::cerr << "heed: skipped: " << image.get<std::string>() << '\n';
      if (options_.json) print_json_line({{"file", json_name(path)}, {"error", image}});
      return;
    }
    std::vector<Label> labels;
    for (const Json& label : image) {
      const auto id = label.at(0).get<int64_t>();
      labels.push_back({labels_.names()[static_cast<size_t>(id)], id, label.at(1).get<float>()});
    }
    if (table_)
      table_->add(labels, printable(path.string()));
    else
      print_json_line({{"file", json_name(path)}, {"labels", to_json(labels)}});
  }

  const PredictOptions& options_;
  const Model& model_;
  const Labels labels_;
  const Tensor texts_;
  const ImageProcessor processor_;
  std::optional<LabelTable> table_ = {};
  std::optional<Model> f32_model_ = {};  // to compare with
  Agreement agreement_ = {};
  SentenceCounter counter_ = {};
  int64_t good_ = 0, bad_ = 0;
};

// predict(paths) for some paths at a time.
template <class Predict>
void predict_files(const PredictOptions& options, Predict&& predict) {
  SentenceOptions files = options.inputs;
  files.are_paths = true;
  SentenceReader reader(files, "predict");
  for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next()) {
    std::vector<Path> paths;
    for (const Sentence& each : some) append_images(each.text, paths);
    if (FinishedParts* const finished = FinishedParts::current()) finished->check_same("images", contents_of(paths));
    predict(paths);
  }
}

}  // namespace

void predict_images(const PredictOptions& options, const Model& model) {
  const std::string config = (Path(options.model) / "config.json").string();
  check<UsageError>(!options.inputs.pairs && options.max_length == 0, "predict: ", model.architecture(),
                    " takes images, found --pairs or --max-length, which are for sentences");
  check<FileError>(model.traits().task == ModelTask::image_classification, config, ": ", model.architecture(),
                   " has no labels to predict, expected a classification model");
  ImagePredictor predict(options, model, Labels(model, config));
  predict_files(options, predict);
  predict.finish();
}

void predict_captions(const PredictOptions& options, const Model& model) {
  check<UsageError>(!options.inputs.pairs && options.max_length == 0 && options.top == 0 && !options.agreement,
                    "predict: ", model.architecture(),
                    " writes captions of images, found --pairs, --max-length, --top or --agreement, which do not apply");
  const NoGrad no_grad;
  const ImageProcessor processor(options.model);
  const Tokenizer tokenizer = Tokenizer::open(options.model);
  const GenerationOptions generation = caption_options(model);
  int64_t bad = 0, all = 0;
  const auto predict = [&](std::span<const Path> paths) {
    const std::vector<ReadResult> read = read_all(processor, paths);
    Tensors good;
    for (const ReadResult& each : read) {
      check<FileError>(each.error_text.empty() || options.skip_bad, each.error_text, skip_advice(paths));
      if (each.error_text.empty()) good.push_back(each.pixels);
    }
    std::vector<Translated> captions;
    if (!good.empty()) {
      const Tensor pixels = stack(good, 0);
      check_image_size(model, options.model, pixels);
      captions = write_captions(model, tokenizer, pixels, generation);
    }
    for (size_t i = 0, next = 0; i < read.size(); ++i, ++all) {
      const bool readable = read[i].error_text.empty();
      if (!readable) std::cerr << "heed: skipped: " << read[i].error_text << '\n', ++bad;
      const std::string& text = readable ? captions[next++].text : read[i].error_text;
      if (options.json)
        print_json_line({{"file", json_name(paths[i])}, {readable ? "caption" : "error", text}});
      else if (readable)
        std::cout << printable(paths[i].string()) << ": " << display_text(text, 1000) << '\n';
    }
  };
  predict_files(options, [&](std::span<const Path> paths) {
    for (int64_t batch = 0; batch < batches_of(paths); ++batch) predict(batch_of(paths, batch));
  });
  std::cout.flush();
  check(bad == 0, "predict: ", bad, " of ", all, " images could not be read and were skipped");
}

void predict_images_by_texts(const PredictOptions& options, Model loaded) {
  check<UsageError>(!options.inputs.pairs && options.max_length == 0, "predict: ", loaded.architecture(),
                    " takes images, found --pairs or --max-length, which are for sentences");
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  std::vector<Sentence> texts;
  for (const std::string& label : options.labels) texts.push_back({label});
  ImagePredictor predict(options, model.model, Labels(options.labels), embed(model, texts));
  predict_files(options, predict);
  predict.finish();
}

}  // namespace heed::cli
