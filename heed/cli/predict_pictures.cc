// heed predict for pictures: files, and folders with all that lies below them.
#include <algorithm>
#include <iostream>

#include "heed/cli/nonfinite_flag.h"
#include "heed/cli/predict.h"
#include "heed/core/parallel.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/io/picture.h"
#include "heed/io/printable.h"
#include "heed/io/utf8.h"
#include "heed/models/finite.h"
#include "heed/models/pictures.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

constexpr size_t kPicturesAtOnce = 16;

// A file is itself; a folder is its images, by name. What else is in the folder is named on standard error.
void append_images(const Path& path, std::vector<Path>& out) {
  if (!is_folder(path)) return out.push_back(path);
  const FolderImages found = find_images(path);
  const std::string note = passed_over_note(found.passed_over);
  check<FileError>(!found.images.empty(), printable(path.string()),
                   ": found no images in the folder, expected files with .png, .jpg, .jpeg, .webp or .bmp", note.empty() ? "" : "; ", note);
  if (!note.empty()) std::cerr << "heed: " << note << '\n';
  out.insert(out.end(), found.images.begin(), found.images.end());
}

// JSON is UTF-8; names of files may be anything.
std::string json_name(const Path& path) {
  const std::string name = path.string();
  return find_bad_utf8(name) == std::string::npos ? name : printable(name);
}

struct Read {
  Tensor pixels;      // (3, height, width); undefined where it could not be read
  std::string fault;  // why
};

std::vector<Read> read_all(const PictureReader& reader, std::span<const Path> paths) {
  std::vector<Read> out(paths.size());
  parallel_tasks(std::ssize(paths), [&](int64_t task) {
    const auto i = static_cast<size_t>(task);
    try {
      out[i].pixels = reader(read_picture(paths[i]));
    } catch (const FileError& error) {
      out[i].fault = printable(error.what());
    }
  });
  return out;
}

class PicturePredictor {
 public:
  PicturePredictor(const PredictOptions& options, const Model& model)
      : options_(options), model_(model), labels_(model, (Path(options.model) / "config.json").string()), reader_(options.model) {
    if (options.agreement)
      floats_.emplace(
          load(options.model, {.names = {.allow_nonfinite = nonfinite_warning(options.nonfinite)}, .weights = Weights::packed}));
  }

  void operator()(std::span<const Path> paths) {
    const std::vector<Read> read = read_all(reader_, paths);
    Tensors good;
    std::vector<Path> good_paths;
    for (size_t i = 0; i < read.size(); ++i) {
      check<FileError>(read[i].fault.empty() || options_.skip_bad, read[i].fault);
      if (!read[i].fault.empty()) continue;
      good.push_back(read[i].pixels);
      good_paths.push_back(paths[i]);
      check<FileError>(good.back().shape() == good.front().shape(), printable(paths[i].string()), ": the model would see it as ",
                       good.back().shape(), ", the ones before as ", good.front().shape(), ", expected all alike");
    }
    const std::vector<std::vector<Label>> answers = good.empty() ? std::vector<std::vector<Label>>() : labelled(good, good_paths);
    counter_.add(std::ssize(paths));
    counter_.clear();
    if (!options_.json && !table_) table_.emplace("label", labels_.names(), labels_.kind(), "picture");
    size_t next = 0;
    for (size_t i = 0; i < read.size(); ++i) print(paths[i], read[i], read[i].fault.empty() ? &answers[next++] : nullptr);
  }

  void finish() const {
    if (floats_) agreement_.tell();
    std::cout.flush();
    check(bad_ == 0, "predict: ", bad_, " of ", bad_ + good_, " images could not be read and were left out");
  }

 private:
  std::vector<std::vector<Label>> labelled(const Tensors& pictures, const std::vector<Path>& names) {
    const NoGrad quiet;
    const Named inputs{{"pixel_values", stack(pictures, 0)}};
    check_image_size(model_, options_.model, inputs.at("pixel_values"));
    const Tensor logits = model_(inputs).at("logits");
    try {
      check_finite(model_, logits);
    } catch (const NonfiniteOutput& error) {
      fail<FileError>(names[static_cast<size_t>(error.item)].string(), ": ", error.what());
    }
    if (floats_) {
      const auto bytes = labels_(logits), expected = labels_((*floats_)(inputs).at("logits"));
      for (size_t i = 0; i < bytes.size(); ++i) agreement_.add(bytes[i], expected[i]);
    }
    return labels_(logits, options_.top > 0 ? options_.top : 5);
  }

  void print(const Path& path, const Read& read, const std::vector<Label>* answer) {
    ++(answer ? good_ : bad_);
    if (!answer) {
      std::cout.flush();
      std::cerr << "heed: left out: " << read.fault << '\n';
      if (options_.json) print_json_line({{"file", json_name(path)}, {"error", read.fault}});
    } else if (table_) {
      table_->add(*answer, printable(path.string()));
    } else {
      print_json_line({{"file", json_name(path)}, {"labels", to_json(*answer)}});
    }
  }

  const PredictOptions& options_;
  const Model& model_;
  const Labels labels_;
  const PictureReader reader_;
  std::optional<LabelTable> table_ = {};
  std::optional<Model> floats_ = {};  // to compare with
  Agreement agreement_ = {};
  SentenceCounter counter_ = {};
  int64_t good_ = 0, bad_ = 0;
};

}  // namespace

void predict_pictures(const PredictOptions& options, const Model& model) {
  check<UsageError>(!options.inputs.pairs && options.max_length == 0, "predict: ", model.architecture(),
                    " takes pictures, found --pairs or --max-length, which are for sentences");
  check<FileError>(model.architecture().find("ForImageClassification") != std::string::npos, (Path(options.model) / "config.json").string(),
                   ": ", model.architecture(), " has no labels to predict, expected a model for classification");
  PicturePredictor predict(options, model);
  SentenceOptions files = options.inputs;
  files.are_paths = true;
  SentenceReader reader(files, "predict");
  for (std::vector<Sentence> some = reader.next(); !some.empty(); some = reader.next()) {
    std::vector<Path> paths;
    for (const Sentence& each : some) append_images(each.text, paths);
    for (size_t begin = 0; begin < paths.size(); begin += kPicturesAtOnce)
      predict(std::span(paths).subspan(begin, std::min(kPicturesAtOnce, paths.size() - begin)));
  }
  predict.finish();
}

}  // namespace heed::cli
