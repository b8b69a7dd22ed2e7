// heed predict for images: files, and folders with all their subfolders.
#include <algorithm>
#include <iostream>

#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/predict.h"
#include "heed/core/parallel.h"
#include "heed/io/image.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"
#include "heed/io/utf8.h"
#include "heed/models/architecture.h"
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
    const std::vector<ReadResult> read = read_all(processor_, paths);
    Tensors good;
    std::vector<Path> good_paths;
    for (size_t i = 0; i < read.size(); ++i) {
      check<FileError>(read[i].error_text.empty() || options_.skip_bad, read[i].error_text);
      if (!read[i].error_text.empty()) continue;
      good.push_back(read[i].pixels);
      good_paths.push_back(paths[i]);
      check<FileError>(good.back().shape() == good.front().shape(), printable(paths[i].string()), ": preprocessed to ", good.back().shape(),
                       ", previous images to ", good.front().shape(), ", expected equal shapes");
    }
    const std::vector<std::vector<Label>> predictions = good.empty() ? std::vector<std::vector<Label>>() : labelled(good, good_paths);
    counter_.add(std::ssize(paths));
    counter_.clear();
    if (!options_.json && !table_) table_.emplace("label", labels_.names(), labels_.kind(), "image");
    size_t next = 0;
    for (size_t i = 0; i < read.size(); ++i) print(paths[i], read[i], read[i].error_text.empty() ? &predictions[next++] : nullptr);
  }

  void finish() const {
    if (f32_model_) agreement_.print();
    std::cout.flush();
    check(bad_ == 0, "predict: ", bad_, " of ", bad_ + good_, " images could not be read and were skipped");
  }

 private:
  std::vector<std::vector<Label>> labelled(const Tensors& images, const std::vector<Path>& names) {
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
      const auto int8 = labels_(logits), expected = labels_((*f32_model_)(inputs).at(output));
      for (size_t i = 0; i < int8.size(); ++i) agreement_.add(int8[i], expected[i]);
    }
    return labels_(logits, options_.top > 0 ? options_.top : 5);
  }

  void print(const Path& path, const ReadResult& read, const std::vector<Label>* prediction) {
    ++(prediction ? good_ : bad_);
    if (!prediction) {
      std::cout.flush();
      std::cerr << "heed: skipped: " << read.error_text << '\n';
      if (options_.json) print_json_line({{"file", json_name(path)}, {"error", read.error_text}});
    } else if (table_) {
      table_->add(*prediction, printable(path.string()));
    } else {
      print_json_line({{"file", json_name(path)}, {"labels", to_json(*prediction)}});
    }
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

void predict_files(const PredictOptions& options, ImagePredictor& predict) {
  SentenceOptions files = options.inputs;
  files.are_paths = true;
  SentenceReader reader(files, "predict");
  for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next()) {
    std::vector<Path> paths;
    for (const Sentence& each : some) append_images(each.text, paths);
    for (size_t begin = 0; begin < paths.size(); begin += kBatch)
      predict(std::span(paths).subspan(begin, std::min(kBatch, paths.size() - begin)));
  }
  predict.finish();
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
}

void predict_images_by_texts(const PredictOptions& options, Model loaded) {
  check<UsageError>(!options.inputs.pairs && options.max_length == 0, "predict: ", loaded.architecture(),
                    " takes images, found --pairs or --max-length, which are for sentences");
  const TextModel model = with_tokenizer(std::move(loaded), options.model);
  std::vector<Sentence> texts;
  for (const std::string& label : options.labels) texts.push_back({label});
  ImagePredictor predict(options, model.model, Labels(options.labels), embed(model, texts));
  predict_files(options, predict);
}

}  // namespace heed::cli
