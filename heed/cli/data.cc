// heed data look: what is in a data set, before anything learns from it.
#include "heed/cli/data.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "heed/cli/command.h"
#include "heed/cli/data_sheet.h"
#include "heed/cli/sentences.h"
#include "heed/core/parallel.h"
#include "heed/data/decoded.h"
#include "heed/io/json.h"
#include "heed/io/printable.h"
#include "heed/models/config.h"
#include "heed/models/pictures.h"
#include "heed/text/unicode.h"
#include "heed/train/image_size.h"

namespace heed::cli {
namespace {

const std::vector<std::pair<std::string, DataPart>> kParts = {
    {"train", DataPart::train}, {"validation", DataPart::validation}, {"test", DataPart::test}};
constexpr int64_t kLookedAt = 1000;  // pictures of a part whose sizes are measured
constexpr size_t kWidestClass = 32;
constexpr int64_t kBar = 30;  // characters

struct DataFlags {
  std::string where, part, sheet;
  std::vector<std::string> settings = {};
  SheetOptions drawing = {};
  AugmentOptions augment = {};
  bool every = false;
  TextLook text = {};
};

struct Range {
  int64_t least, median, most;
};

Range range_of(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

struct PartLook {
  std::string name = {};
  PictureData data = {};  // the images that can be read
  std::vector<std::string> bad = {};
  std::vector<PictureSize> sizes = {};  // of those that were looked at
  std::vector<int64_t> per_class = {};
  int64_t looked_at = 0;
  Range width = {}, height = {};
};

// Image files are all decoded, to find those that cannot be read. Of other data some are enough.
PartLook look_at(const std::string& where, const std::string& name, DataPart part, bool every) {
  PartLook out{.name = name};
  SentenceCounter counter;
  Decoded decoded = decode_all(read_pictures(where, part), {.done = [&](int64_t more) { counter.add(more); }});
  out.data = std::move(decoded.data);
  out.bad = std::move(decoded.bad);
  out.sizes = std::move(decoded.sizes);
  out.per_class.resize(out.data.classes.size());
  for (const int64_t label : out.data.labels) ++out.per_class[static_cast<size_t>(label)];
  const int64_t count = out.data.count();
  out.looked_at = every || out.data.files ? count : std::min(count, kLookedAt);
  if (count == 0) return out;
  if (!out.data.files) {
    out.sizes.resize(static_cast<size_t>(out.looked_at));
    parallel_for(out.looked_at, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Picture picture = out.data.picture(i * count / out.looked_at);
        out.sizes[static_cast<size_t>(i)] = {picture.width, picture.height};
      }
    });
  }
  std::vector<int64_t> widths, heights;
  for (const PictureSize& size : out.sizes) widths.push_back(size.width), heights.push_back(size.height);
  out.width = range_of(std::move(widths));
  out.height = range_of(std::move(heights));
  return out;
}

// What heed train classify does with these images unless it is given other settings.
struct TrainingLook {
  PictureSize size = {};
  std::string resize = ImageOptions().resize;
  std::shared_ptr<const PictureReader> reader = {};
};
TrainingLook training_look(const PartLook& part) {
  TrainingLook out;
  out.size = default_image_size(part.data, part.sizes, preset_named(classify_kind().preset).config);
  out.reader = std::make_shared<PictureReader>(Config(resize_keys(out.size, out.resize, part.sizes), "preprocessor_config.json"));
  return out;
}

std::string size_text(const PartLook& part) {
  if (part.looked_at == 0) return "";
  std::ostringstream text;
  text << part.width.median << " x " << part.height.median;
  const bool same = part.width.least == part.width.most && part.height.least == part.height.most;
  if (!same)
    text << " (median; " << part.width.least << " to " << part.width.most << " wide, " << part.height.least << " to " << part.height.most
         << " high" << (part.looked_at < part.data.count() ? ", of " + std::to_string(part.looked_at) + " looked at" : "") << ")";
  return text.str();
}

// In eighths of a character.
std::string bar(int64_t count, int64_t most) {
  static const std::vector<std::string> ends = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int64_t eighths = most == 0 ? 0 : (count * kBar * 8 + most - 1) / most;
  std::string out;
  for (int64_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + ends[static_cast<size_t>(eighths % 8)];
}

// The part that bars and sheets show: the first one that has pictures.
const PartLook& shown_part(const std::vector<PartLook>& parts) {
  for (const PartLook& part : parts)
    if (part.data.count() > 0) return part;
  return parts.front();
}

void print_tables(const std::vector<PartLook>& parts) {
  const PartLook& main = shown_part(parts);
  std::cout << "part        pictures  size (width x height)\n";
  for (const PartLook& part : parts)
    std::cout << padded(part.name, 10) << std::setw(10) << part.data.count() << (part.data.count() > 0 ? "  " : "") << size_text(part)
              << '\n';
  int64_t width = 5;
  for (const std::string& name : main.data.classes) width = std::max(width, text::count_chars(shown(name, kWidestClass)));
  std::cout << '\n' << padded("class", width);
  for (const PartLook& part : parts) std::cout << std::setw(12) << part.name;
  std::cout << '\n';
  const int64_t most = main.per_class.empty() ? 0 : *std::max_element(main.per_class.begin(), main.per_class.end());
  for (size_t i = 0; i < main.data.classes.size(); ++i) {
    std::cout << padded(shown(main.data.classes[i], kWidestClass), width);
    for (const PartLook& part : parts) std::cout << std::setw(12) << part.per_class[i];
    if (main.per_class[i] > 0) std::cout << "  " << bar(main.per_class[i], most);
    std::cout << '\n';
  }
  if (main.looked_at > 0)
    std::cout << "\nTraining sees: " << training_look(main).reader->description()
              << " pixels; heed train classify image= and resize= choose otherwise\n";
  for (const PartLook& part : parts)
    for (const std::string& note : part.data.notes) std::cout << '\n' << note << '\n';
}

Json to_json(const Range& range) { return {{"least", range.least}, {"median", range.median}, {"most", range.most}}; }

void print_json(const DataFlags& options, const std::vector<PartLook>& parts) {
  Json out = {{"source", options.where}, {"classes", parts.front().data.classes}, {"parts", Json::object()}};
  for (const PartLook& part : parts) {
    Json one = {{"pictures", part.data.count()}, {"per_class", part.per_class}, {"looked_at", part.looked_at}};
    if (part.looked_at > 0) one.update({{"width", to_json(part.width)}, {"height", to_json(part.height)}});
    if (!part.bad.empty()) one["bad"] = part.bad;
    if (!part.data.notes.empty()) one["notes"] = part.data.notes;
    out["parts"][part.name] = one;
  }
  if (const PartLook& main = shown_part(parts); main.looked_at > 0) {
    const TrainingLook seen = training_look(main);
    out["training"] = {{"width", seen.size.width}, {"height", seen.size.height}, {"resize", seen.resize}};
  }
  if (!options.sheet.empty()) out["sheet"] = options.sheet;
  std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

bool is_changing(const AugmentOptions& options) {
  return options.pad > 0 || options.flip || options.resized_crop < 1 || options.colour > 0 || options.random_ops > 0 || options.erase > 0;
}

// A FileError that lists all images that cannot be read.
void check_readable(const std::string& where, const std::vector<PartLook>& parts) {
  std::vector<std::string> bad;
  int64_t all = 0;
  for (const PartLook& part : parts) {
    bad.insert(bad.end(), part.bad.begin(), part.bad.end());
    all += part.data.count() + std::ssize(part.bad);
  }
  std::cout.flush();
  check<FileError>(bad.empty(), printable(where), ": ", bad.size(), " of ", all, " images cannot be read:", listed_lines(bad));
}

void look_at_pictures(DataFlags& options) {
  check<UsageError>(options.sheet.empty() || options.sheet.ends_with(".png"), "data look: found -o ", options.sheet,
                    ", expected a name that ends in .png");
  if (is_changing(options.augment)) options.drawing.augment = options.augment;
  check<UsageError>(!options.drawing.augment || !options.sheet.empty(),
                    "data look: found flags that change pictures, expected -o SHEET.png too: only the sheet shows them");
  std::vector<PartLook> parts;
  for (const auto& [name, part] : kParts)
    if (options.part.empty() || options.part == name) parts.push_back(look_at(options.where, name, part, options.every));
  const PartLook& main = shown_part(parts);
  if (!options.sheet.empty()) {
    check<FileError>(main.data.count() > 0, options.where, ": found no pictures in part ", main.name, ", expected some for a sheet");
    const std::string title =
        options.where + ", " + main.name + ": " +
        (options.drawing.augment ? "one of each class, then changed" : std::to_string(main.data.count()) + " pictures");
    PictureData drawn = main.data;
    if (options.drawing.augment)  // as training does: resized first, then changed
      drawn.picture = [read = drawn.picture, reader = training_look(main).reader](int64_t i) { return reader->prepared(read(i)); };
    write_png(options.sheet, contact_sheet(drawn, title, options.drawing).pixels());
  }
  if (options.text.json) {
    print_json(options, parts);
    return check_readable(options.where, parts);
  }
  print_tables(parts);
  if (options.sheet.empty())
    std::cout << "\nTo see some of them: heed data look " << options.where << " -o sheet.png\n";
  else
    std::cout << "\n"
              << options.sheet << ": " << (options.drawing.augment ? "one picture of every class of " : "some of every class of ")
              << main.name << (options.drawing.augment ? ", then changed\n" : "\n");
  check_readable(options.where, parts);
}

// text_column=review, source=en and the like, as heed train has them.
void take_settings(DataFlags& options) {
  take_column_words(options.settings, options.text.columns);
  for (const std::string& word : options.settings) {
    const bool source = word.starts_with("source="), target = word.starts_with("target=");
    check<UsageError>(
        source || target, "data look: found ", in_quotes(word),
        ", expected text_column=NAME, pair_column=NAME, label_column=NAME, source_column=NAME, target_column=NAME, source=LANGUAGE "
        "or target=LANGUAGE");
    (source ? options.text.languages.source : options.text.languages.target) = word.substr(7);
  }
}

void run_look(DataFlags options) {
  take_settings(options);
  if (!is_text_data(options.where, options.text)) {
    check<UsageError>(!names_any(options.text.columns) && options.text.languages.source.empty() && options.text.languages.target.empty(),
                      "data look: ", options.where, " holds no texts, found settings for columns or languages, expected none");
    return look_at_pictures(options);
  }
  check<UsageError>(options.sheet.empty() && options.part.empty() && !is_changing(options.augment), "data look: ", options.where,
                    " is a text, found flags for pictures (-o, --part and those that change pictures), expected none");
  look_at_text(options.where, options.text);
}

const Command data_command("data", "Look at data before a model learns from it", [](Flags& flags) {
  auto options = std::make_shared<DataFlags>();
  flags.footer("Examples:\n  heed data look shapes\n  heed data look --help");
  Flags look = flags.command("look", "How much there is of what, and some of it to see");
  std::vector<std::string> parts;
  for (const auto& [name, part] : kParts) parts.push_back(name);
  AugmentOptions& augment = options->augment;
  look.option("path", options->where,
              "What heed train takes: a folder or file of images or texts, or made by rule: shapes, opinions, entailment, numbers")
      .value("PATH")
      .required();
  look.option("settings", options->settings, "Columns and languages as in heed train: text_column=review, source=en")
      .shown("[KEY=VALUE ...]")
      .many()
      .one_value();
  look.option("--part", options->part, "Only train, validation or test").value("PART").no_default().must_be(one_of(parts));
  look.option("-o,--output", options->sheet, "Pictures: write some of every class onto one PNG").value("SHEET.png").no_default();
  look.option("--each", options->drawing.each, "Pictures of every class on the sheet").value("N").must_be(whole_within(1, 64));
  look.flag("--every", options->every, "CIFAR, IDX and shapes: measure every picture, not only some");
  look.option("--lines", options->text.lines, "Texts: how many of them to show").value("N").must_be(non_negative());
  look.flag("--json", options->text.json, "One JSON object");
  look.option("--pad", augment.pad, "Sheet: crop from the picture with so many black pixels around it")
      .value("N")
      .must_be(whole_within(0, 4096));
  look.flag("--flip", augment.flip, "Sheet: left and right, every second time");
  look.option("--resized-crop", augment.resized_crop, "Sheet: parts of at least this share of the area, made larger")
      .value("SHARE")
      .must_be(within(0.001, 1));
  look.option("--colour", augment.colour, "Sheet: brightness, contrast and saturation by 1 - C to 1 + C").value("C").must_be(within(0, 10));
  look.option("--random-ops", augment.random_ops, "Sheet: so many operations of RandAugment").value("N").must_be(whole_within(0, 100));
  look.option("--random-strength", augment.random_strength, "Sheet: how strong they are").value("S").must_be(within(0, 1));
  look.option("--erase", augment.erase, "Sheet: the probability that a rectangle becomes noise").value("P").must_be(within(0, 1));
  look.option("--seed", options->drawing.seed, "Sheet: of the changes").value("N");
  look.footer(
      "Folders of pictures hold CIFAR-10's or CIFAR-100's binary files, IDX files as MNIST's, or one folder of PNG, JPEG, WebP and BMP\n"
      "files for every class, which may lie below train/, validation/ (or val/) and test/. All files are decoded; those that cannot be "
      "read\n"
      "are listed at the end, and the exit code is 3. shapes:500 makes so many shapes.\n\nExamples:\n"
      "  heed data look shapes -o sheet.png\n  heed data look cifar-10-batches-bin --part test\n"
      "  heed data look /usr/share/datasets/fashion-mnist -o fashion.png --each 12\n"
      "  heed data look photos --json\n  heed data look shapes -o changed.png --pad 4 --flip --random-ops 2\n"
      "  heed data look reviews.tsv.gz text_column=review --lines 10\n  heed data look pairs.csv source_column=english "
      "target_column=german\n"
      "  heed data look multi30k source=en target=de");
  return [options] { run_look(*options); };
});

}  // namespace
}  // namespace heed::cli
