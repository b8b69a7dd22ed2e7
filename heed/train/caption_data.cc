#include "heed/train/caption_data.h"

#include "heed/core/parallel.h"
#include "heed/io/paths.h"
#include "heed/models/architecture.h"
#include "heed/train/data_fingerprint.h"

namespace heed {
namespace {

// Drops the captions of images that are missing in `images`, those that cannot be read. Image files are matched by path, others by name.
CaptionedImages with_images(const CaptionedImages& before, ImageData images) {
  const auto key = [](const ImageData& data, int64_t i) { return data.files ? data.file(i).string() : data.name(i); };
  std::map<std::string, int64_t> places;
  for (int64_t i = 0; i < images.count(); ++i) places.emplace(key(images, i), i);
  CaptionedImages out{.columns = before.columns};
  for (size_t c = 0; c < before.captions.size(); ++c)
    if (const auto place = places.find(key(before.images, before.image_of[c])); place != places.end()) {
      out.image_of.push_back(place->second);
      out.captions.push_back(before.captions[c]);
    }
  out.images = std::move(images);
  return out;
}

void decode_captioned(std::array<CaptionedImages*, 3> parts, const std::shared_ptr<const ImageProcessor>& reader,
                      const CaptionOptions& options, const JobOptions& chosen, std::vector<std::string>& notes) {
  std::array<ImageData, 3> images;
  for (size_t p = 0; p < parts.size(); ++p) images[p] = parts[p]->images;
  decode_parts({&images[0], &images[1], &images[2]}, reader, options.data, options.skip_bad, chosen, notes);
  for (size_t p = 0; p < parts.size(); ++p)
    if (parts[p]->images.count() > 0) *parts[p] = with_images(*parts[p], std::move(images[p]));
}

}  // namespace

void declare(Settings& settings, CaptionOptions& options) {
  settings.heading("Images and captions");
  settings.add("data", options.data,
               "A .csv, .tsv or .jsonl file of images and captions, also .gz, or a folder with one; scenes: synthetic",
               {.path = true, .synthetic = {"scenes"}});
  settings.add("image_folder", options.image_folder, "Folder of the image files; empty: that of the table", {.path = true});
  settings.add("image_column", options.columns.image, "Name or number of the column of image files; empty: detected");
  settings.add("caption_column", options.columns.caption, "Name or number of the caption column; empty: detected");
  declare(settings, options.image);
  settings.add("skip_bad", options.skip_bad, "Skip image files that cannot be read; false: they are an error");
  settings.add("limit", options.limit, "Train on this many images; 0: all", {.least = 0});
  settings.add("pad", options.pad, "Random crops after padding by this many pixels", {.least = 0, .most = 1000});
  settings.add("max_length", options.max_length, "Maximum tokens of a caption; longer ones are truncated; 0: the model's maximum",
               {.least = 0, .most = 1e6});
  declare(settings, options.vocabulary);
}

Json CaptionPart::fingerprint() const {
  Json out = fingerprint_of(data.images);
  DataFingerprint captions;
  for (size_t c = 0; c < data.captions.size(); ++c) {
    captions.add(std::to_string(data.image_of[c]));
    captions.add(data.captions[c]);
  }
  out["labels"] = captions.json()["checksum"];
  out.erase("classes");
  return out;
}

Tensor CaptionParts::pixels(const CaptionPart& part, std::span<const int64_t> captions) const {
  std::vector<Image> images(captions.size());
  parallel_tasks(std::ssize(captions), [&](int64_t b) {
    const int64_t caption = captions[static_cast<size_t>(b)];
    images[static_cast<size_t>(b)] = part.data.images.image(part.data.image_of[static_cast<size_t>(caption)]);
  });
  return reader->normalized(images);
}

Tensor CaptionParts::augmented_pixels(std::span<const int64_t> captions, uint64_t seed, int64_t epoch) const {
  std::vector<Image> images;
  for (const int64_t caption : captions)
    images.push_back(
        augmented(train.data.images.image(train.data.image_of[static_cast<size_t>(caption)]), augment, sample_key(seed, epoch, caption)));
  return reader->normalized(images);
}

std::vector<int64_t> CaptionParts::one_caption_each(const CaptionPart& part) {
  std::vector<int64_t> out;
  std::vector<bool> seen(static_cast<size_t>(part.data.images.count()));
  for (int64_t c = 0; c < part.count(); ++c) {
    const auto image = static_cast<size_t>(part.data.image_of[static_cast<size_t>(c)]);
    if (!seen[image]) out.push_back(c);
    seen[image] = true;
  }
  return out;
}

CaptionParts read_caption_parts(CaptionOptions& options, const JobOptions& chosen, Json& config) {
  const auto read = [&](DataPart part) {
    return read_captions(options.data, part, options.columns, options.image_folder, options.skip_bad);
  };
  CaptionedImages train = read(DataPart::train), validation = read(DataPart::validation), test = read(DataPart::test);
  if (const int64_t all = train.images.count(); options.limit > 0 && options.limit < all) {
    std::vector<int64_t> some;  // strided, as files are often sorted
    for (int64_t i = 0; i < options.limit; ++i) some.push_back(i * all / options.limit);
    train = chosen_images(train, some);
  }
  const Architecture& architecture = architecture_of(Config(config, "config.json"));
  const std::string key = architecture.family->image_keys;
  config[key] = image_config(architecture, Config(config, "config.json")).json();
  JobOptions below = chosen;
  below.model.model = chosen.model.model.is_object() ? chosen.model.model.value(key, Json::object()) : Json::object();
  ImageInputs inputs = choose_image_size(options.image, below, train.images, config[key]);
  if (const Path kept = Path(chosen.keep) / "preprocessor_config.json"; !chosen.keep.empty() && path_exists(kept))
    inputs.preprocessing = read_json(kept), inputs.complete = true;
  const ModelImages images = model_images(Config(config, "config.json"));
  const auto reader_for = [&](const Json& keys) {
    return std::make_shared<const ImageProcessor>(Config(keys, "preprocessor_config.json"), images);
  };
  const auto resizer = reader_for(inputs.preprocessing);
  CaptionParts out{.augment = {.pad = options.pad}};
  if (!train.columns.empty()) out.notes.push_back(train.columns);
  out.notes.push_back("images: " + resizer->description() + " pixels (width x height)" + (inputs.why.empty() ? "" : ", ") + inputs.why);
  decode_captioned({&train, &validation, &test}, resizer, options, chosen, out.notes);
  check<FileError>(train.count() > 0, options.data, ": found no readable images to train on");
  if (validation.count() == 0) {
    const Split parts = split(train.images.count(), std::max(chosen.train_options.validation, 1e-6f), chosen.train_options.seed);
    validation = chosen_images(train, parts.held_out);
    train = chosen_images(train, parts.kept);
    check<FileError>(train.count() > 0, options.data, ": found one image, which is held out for validation; expected more");
  }
  out.preprocessing = inputs.preprocessing;
  if (!inputs.complete) out.preprocessing.update(colour_keys(train.images, images.channels));
  out.reader = reader_for(out.preprocessing);
  out.train.data = std::move(train);
  out.validation.data = std::move(validation);
  out.test.data = std::move(test);
  return out;
}

void add_parts(Task& task, const CaptionParts& parts) {
  for (const auto& [name, part] :
       {std::pair("train", &parts.train), std::pair("validation", &parts.validation), std::pair("test", &parts.test)}) {
    task.counts.emplace_back(name, part->count());
    task.data[name] = part->fingerprint();
  }
}

void encode_captions(CaptionParts& parts, const Tokenizer& tokenizer, int64_t max_length) {
  for (CaptionPart* part : {&parts.train, &parts.validation, &parts.test})
    for (const Encoding& each : tokenizer.encode_all(part->data.captions, {.max_length = max_length}))
      part->tokens.emplace_back(each.ids.begin(), each.ids.end());
}

}  // namespace heed
