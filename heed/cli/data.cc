// heed data look: shows what is in a data set.
#include "heed/cli/data.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/command.h"
#include "heed/cli/data_captions.h"
#include "heed/cli/display_text.h"
#include "heed/cli/sentence_reader.h"
#include "heed/cli/shell_word.h"
#include "heed/core/parallel.h"
#include "heed/data/decoded.h"
#include "heed/io/json.h"
#include "heed/io/printable.h"
#include "heed/models/config.h"
#include "heed/models/image_processor.h"
#include "heed/text/unicode.h"
#include "heed/train/image_size.h"

namespace heed::cli {
namespace {

const std::vector<std::pair<std::string, DataPart>> kParts = {
    {"train", DataPart::train}, {"validation", DataPart::validation}, {"test", DataPart::test}};
constexpr int64_t kMaxMeasured = 1000;  // images per part whose sizes are measured
constexpr size_t kMaxClassWidth = 32;
constexpr int64_t kBar = 30;  // characters

struct DataFlags {
  std::string where, part, sheet;
  std::vector<std::string> settings = {};
  SheetOptions drawing = {};
  AugmentOptions augment = {};
  bool every = false;
  TextLookOptions text = {};
  DataSettings other = {};
};

struct Range {
  int64_t least, median, most;
};

Range range_of(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

struct PartSummary {
  std::string name = {};
  ImageData data = {};  // the readable images
  std::vector<std::string> bad = {};
  std::vector<ImageSize> sizes = {};  // of the measured images
  std::vector<int64_t> per_class = {};
  int64_t looked_at = 0;
  Range width = {}, height = {};
};

// Image files are all decoded, to find unreadable ones. Other formats are sampled.
PartSummary summarize_part(const std::string& where, const std::string& name, DataPart part, bool every) {
  PartSummary out{.name = name};
  SentenceCounter counter;
  DecodedImages decoded = decode_images(read_images(where, part), {.done = [&](int64_t more) { counter.add(more); }});
  out.data = std::move(decoded.data);
  out.bad = std::move(decoded.bad);
  out.sizes = std::move(decoded.sizes);
  out.per_class.resize(out.data.classes.size());
  for (const int64_t label : out.data.labels) ++out.per_class[static_cast<size_t>(label)];
  const int64_t count = out.data.count();
  out.looked_at = every || out.data.files ? count : std::min(count, kMaxMeasured);
  if (count == 0) return out;
  if (!out.data.files) {
    out.sizes.resize(static_cast<size_t>(out.looked_at));
    parallel_for(out.looked_at, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Image image = out.data.image(i * count / out.looked_at);
        out.sizes[static_cast<size_t>(i)] = {image.width, image.height};
      }
    });
  }
  std::vector<int64_t> widths, heights;
  for (const ImageSize& size : out.sizes) widths.push_back(size.width), heights.push_back(size.height);
  out.width = range_of(std::move(widths));
  out.height = range_of(std::move(heights));
  return out;
}

// The default preprocessing of heed train classify for these images.
struct TrainingInput {
  ImageSize size = {};
  std::string resize = ImageOptions().resize;
  std::shared_ptr<const ImageProcessor> processor = {};
};
TrainingInput training_input(const PartSummary& part) {
  TrainingInput out;
  out.size = default_image_size(part.data, part.sizes, preset_named(classify_kind().preset).config);
  out.processor = std::make_shared<ImageProcessor>(Config(resize_keys(out.size, out.resize, part.sizes), "preprocessor_config.json"));
  return out;
}

std::string size_text(const PartSummary& part) {
  if (part.looked_at == 0) return "";
  std::ostringstream text;
  text << part.width.median << " x " << part.height.median;
  const bool same = part.width.least == part.width.most && part.height.least == part.height.most;
  if (!same)
    text << " (median; " << part.width.least << " to " << part.width.most << " wide, " << part.height.least << " to " << part.height.most
         << " high" << (part.looked_at < part.data.count() ? ", of " + std::to_string(part.looked_at) + " measured" : "") << ")";
  return text.str();
}

// A bar with a resolution of an eighth of a character.
std::string bar(int64_t count, int64_t most) {
  static const std::vector<std::string> ends = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int64_t eighths = most == 0 ? 0 : (count * kBar * 8 + most - 1) / most;
  std::string out;
  for (int64_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + ends[static_cast<size_t>(eighths % 8)];
}

// The part used for bars and sheets: the first with images.
const PartSummary& shown_part(const std::vector<PartSummary>& parts) {
  for (const PartSummary& part : parts)
    if (part.data.count() > 0) return part;
  return parts.front();
}

void print_tables(const std::vector<PartSummary>& parts) {
  const PartSummary& main = shown_part(parts);
  std::cout << "part        images  size (width x height)\n";
  for (const PartSummary& part : parts)
    std::cout << padded(part.name, 10) << std::setw(10) << part.data.count() << (part.data.count() > 0 ? "  " : "") << size_text(part)
              << '\n';
  int64_t width = 5;
  for (const std::string& name : main.data.classes) width = std::max(width, text::count_chars(display_text(name, kMaxClassWidth)));
  std::cout << '\n' << padded("class", width);
  for (const PartSummary& part : parts) std::cout << std::setw(12) << part.name;
  std::cout << '\n';
  const int64_t most = main.per_class.empty() ? 0 : *std::max_element(main.per_class.begin(), main.per_class.end());
  for (size_t i = 0; i < main.data.classes.size(); ++i) {
    std::cout << padded(display_text(main.data.classes[i], kMaxClassWidth), width);
    for (const PartSummary& part : parts) std::cout << std::setw(12) << part.per_class[i];
    if (main.per_class[i] > 0) std::cout << "  " << bar(main.per_class[i], most);
    std::cout << '\n';
  }
  if (main.looked_at > 0)
    std::cout << "\nTraining input: " << training_input(main).processor->description()
              << " pixels; heed train classify image= and resize= change this\n";
  const auto is_validation = [](const PartSummary& part) { return part.name == "validation" && part.data.count() > 0; };
  if (std::none_of(parts.begin(), parts.end(), is_validation))
    std::cout << "Validation: heed train classify holds out a tenth of train; validation= changes the fraction\n";
  for (const PartSummary& part : parts)
    for (const std::string& note : part.data.notes) std::cout << '\n' << note << '\n';
}

Json to_json(const Range& range) { return {{"least", range.least}, {"median", range.median}, {"most", range.most}}; }

void print_json(const DataFlags& options, const std::vector<PartSummary>& parts) {
  Json out = {{"source", options.where}, {"classes", parts.front().data.classes}, {"parts", Json::object()}};
  for (const PartSummary& part : parts) {
    Json one = {{"images", part.data.count()}, {"per_class", part.per_class}, {"looked_at", part.looked_at}};
    if (part.looked_at > 0) one.update({{"width", to_json(part.width)}, {"height", to_json(part.height)}});
    if (!part.bad.empty()) one["bad"] = part.bad;
    if (!part.data.notes.empty()) one["notes"] = part.data.notes;
    out["parts"][part.name] = one;
  }
  if (const PartSummary& main = shown_part(parts); main.looked_at > 0) {
    const TrainingInput input = training_input(main);
    out["training"] = {{"width", input.size.width}, {"height", input.size.height}, {"resize", input.resize}};
  }
  if (!options.sheet.empty()) out["sheet"] = options.sheet;
  std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

bool is_augmenting(const AugmentOptions& options) {
  return options.pad > 0 || options.flip || options.resized_crop < 1 || options.colour > 0 || options.random_ops > 0 || options.erase > 0;
}

// Throws a FileError that lists all unreadable images.
void check_readable(const std::string& where, const std::vector<PartSummary>& parts) {
  std::vector<std::string> bad;
  int64_t all = 0;
  for (const PartSummary& part : parts) {
    bad.insert(bad.end(), part.bad.begin(), part.bad.end());
    all += part.data.count() + std::ssize(part.bad);
  }
  std::cout.flush();
  check<FileError>(bad.empty(), printable(where), ": ", bad.size(), " of ", all, " images cannot be read:", listed_lines(bad));
}

void look_at_images(DataFlags& options) {
  check_holds_images(options.where);
  check<UsageError>(options.sheet.empty() || options.sheet.ends_with(".png"), "data look: found -o ", options.sheet,
                    ", expected a name that ends in .png");
  if (is_augmenting(options.augment)) options.drawing.augment = options.augment;
  check<UsageError>(!options.drawing.augment || !options.sheet.empty(),
                    "data look: found augmentation flags without -o SHEET.png, expected both: only the sheet shows them");
  std::vector<PartSummary> parts;
  for (const auto& [name, part] : kParts)
    if (options.part.empty() || options.part == name) parts.push_back(summarize_part(options.where, name, part, options.every));
  const PartSummary& main = shown_part(parts);
  if (!options.sheet.empty()) {
    check<FileError>(main.data.count() > 0, options.where, ": found no images in part ", main.name, ", expected at least one for a sheet");
    const std::string title =
        options.where + ", " + main.name + ": " +
        (options.drawing.augment ? "one of each class, then augmented" : std::to_string(main.data.count()) + " images");
    ImageData drawn = main.data;
    if (options.drawing.augment)  // as in training: resized first, then augmented
      drawn.image = [read = drawn.image, processor = training_input(main).processor](int64_t i) { return processor->prepared(read(i)); };
    write_png(options.sheet, contact_sheet(drawn, title, options.drawing).pixels());
  }
  if (options.text.json) {
    print_json(options, parts);
    return check_readable(options.where, parts);
  }
  print_tables(parts);
  if (options.sheet.empty())
    std::cout << "\nTo see some images: heed data look " << shell_word(options.where) << " -o sheet.png\n";
  else
    std::cout << "\n"
              << options.sheet << ": " << (options.drawing.augment ? "one image of every class of " : "some of every class of ")
              << main.name << (options.drawing.augment ? ", then augmented\n" : "\n");
  check_readable(options.where, parts);
}

void run_look(DataFlags options) {
  take_data_settings("data look", options.settings, options.text.columns, options.text.languages, options.other);
  check_no_model(options.where);
  const auto& [captions, folder, questions] = options.other;
  if (!captions.image.empty() || !captions.caption.empty() || is_captioned(options.where))
    return look_at_captions(options.where, options.other, {options.text.lines, options.text.json, options.sheet, options.drawing});
  if (!questions.question.empty() || !questions.answer.empty() || is_question_file(options.where))
    return look_at_questions(options.where, options.other, options.text.lines, options.text.json);
  if (!is_text_data(options.where, options.text)) {
    check<UsageError>(
        !any_column_set(options.text.columns) && options.text.languages.source.empty() && options.text.languages.target.empty(),
        "data look: ", options.where, " holds no texts, found settings of columns or languages, expected none");
    return look_at_images(options);
  }
  check<UsageError>(options.sheet.empty() && options.part.empty() && !is_augmenting(options.augment), "data look: ", options.where,
                    " is a text, found flags for images (-o, --part or augmentation), expected none");
  look_at_text(options.where, options.text);
}

const Command data_command("data", "Show what is in a data set", [](Flags& flags) {
  auto options = std::make_shared<DataFlags>();
  flags.footer("Examples:\n  heed data look shapes\n  heed data look --help");
  Flags look = flags.command("look", "Counts, sizes and samples of a data set");
  std::vector<std::string> parts;
  for (const auto& [name, part] : kParts) parts.push_back(name);
  AugmentOptions& augment = options->augment;
  look.option(
          "path", options->where,
          "Data as for heed train: a folder or file of images or texts, or synthetic: shapes, scenes, opinions, entailment, numbers, facts")
      .value("PATH")
      .required();
  look.option("settings", options->settings, "Columns and languages as in heed train: text_column=review, source=en")
      .usage("[KEY=VALUE ...]")
      .many()
      .one_value();
  look.option("--part", options->part, "Only train, validation or test").value("PART").no_default().must_be(one_of(parts));
  look.option(kOutputFlag, options->sheet, "Images: write samples of every class to one PNG").value("SHEET.png").no_default();
  look.option("--each", options->drawing.each, "Images per class on the sheet").value("N").must_be(whole_within(1, 64));
  look.flag("--every", options->every, "CIFAR, IDX and shapes: measure every image, not a sample");
  look.option("--lines", options->text.lines, "Texts: number of samples to print").value("N").must_be(non_negative());
  look.flag("--json", options->text.json, "One JSON object");
  look.option("--pad", augment.pad, "Sheet: random crop of the image padded with N black pixels").value("N").must_be(whole_within(0, 4096));
  look.flag("--flip", augment.flip, "Sheet: mirror half of the images");
  look.option("--resized-crop", augment.resized_crop, "Sheet: random resized crop of at least this share of the area")
      .value("SHARE")
      .must_be(within(0.001, 1));
  look.option("--colour", augment.colour, "Sheet: scale brightness, contrast and saturation by 1 - C to 1 + C")
      .value("C")
      .must_be(within(0, 10));
  look.option("--random-ops", augment.random_ops, "Sheet: number of RandAugment operations").value("N").must_be(whole_within(0, 100));
  look.option("--random-strength", augment.random_strength, "Sheet: strength of the RandAugment operations")
      .value("S")
      .must_be(within(0, 1));
  look.option("--erase", augment.erase, "Sheet: probability of erasing a rectangle with noise").value("P").must_be(within(0, 1));
  look.option("--seed", options->drawing.seed, "Sheet: seed of the augmentation").value("N");
  look.footer(
      "A folder of images holds binary files of CIFAR-10 or CIFAR-100, IDX files like those of MNIST, or one folder per class of PNG,\n"
      "JPEG, WebP and BMP files, optionally below train/, validation/ (or val/) and test/. All files are decoded; unreadable ones are\n"
      "listed at the end, and the exit code is 3. shapes:500 generates 500 shapes.\n\nExamples:\n"
      "  heed data look shapes -o sheet.png\n  heed data look cifar-10-batches-bin --part test\n"
      "  heed data look /usr/share/datasets/fashion-mnist -o fashion.png --each 12\n"
      "  heed data look photos --json\n  heed data look shapes -o changed.png --pad 4 --flip --random-ops 2\n"
      "  heed data look reviews.tsv.gz text_column=review --lines 10\n  heed data look scenes --lines 10\n"
      "  heed data look multi30k source=en target=de");
  return [options] { run_look(*options); };
});

}  // namespace
}  // namespace heed::cli
