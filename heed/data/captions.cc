// Captions of image files, from tables.
#include "heed/data/captions.h"

#include <algorithm>
#include <map>
#include <memory>

#include "heed/data/image_sources.h"
#include "heed/data/text_parts.h"
#include "heed/io/paths.h"
#include "heed/io/printable.h"

namespace heed {
namespace {

const Names kImageNames = {"image", "file_name", "filename", "file", "image_path", "image_file", "path", "img", "image_name", "image_id"};
const Names kCaptionNames = {"caption", "text", "title", "description", "comment", "sentence", "caption_text", "raw_caption"};

bool are_scenes(const std::string& where) { return where == "scenes" || where.starts_with("scenes:"); }

// The first table of these names in the folder; empty: none.
std::string table_in(const Path& folder, const Names& names) {
  for (const std::string& name : names)
    for (const char* ending : {".csv", ".tsv", ".jsonl", ".csv.gz", ".tsv.gz", ".jsonl.gz"})
      if (const Path file = folder / (name + ending); path_exists(file)) return file.string();
  return {};
}

const Names& part_names(DataPart part) {
  static const Names train{"train"}, test{"test"};
  return part == DataPart::train ? train : part == DataPart::test ? test : kValidationNames;
}

// The table of a part; empty if there is none.
std::string caption_table_of(const std::string& where, DataPart part) {
  if (is_table_file(where)) return part == DataPart::train ? where : sibling_table(where, part_names(part));
  if (!is_folder(where)) return {};
  for (const std::string& name : part_names(part))
    if (const std::string file = table_in(Path(where) / name, {"metadata", "captions"}); !file.empty()) return file;
  if (const std::string file = table_in(where, part_names(part)); !file.empty() || part != DataPart::train) return file;
  return table_in(where, {"metadata", "captions"});
}

// A first row with a known name is a header, or any if a setting names a column.
bool has_caption_header(const Table& table, const CaptionColumns& columns) {
  const ColumnNames names(table.rows.front().cells);
  const auto is_name = [](const std::string& word) { return !word.empty() && !is_column_number(word); };
  return is_name(columns.image) || is_name(columns.caption) || names.find_first(kImageNames) != kNoColumn ||
         names.find_first(kCaptionNames) != kNoColumn;
}

std::pair<int, int> columns_in(const Table& table, const CaptionColumns& columns) {
  int image = requested_column(table, "image_column", columns.image), caption = requested_column(table, "caption_column", columns.caption);
  ColumnNames names(table.columns);
  for (const int column : {image, caption}) names.exclude(column);
  if (image == kNoColumn) image = names.find_first(kImageNames);
  names.exclude(image);
  if (caption == kNoColumn) caption = names.find_first(kCaptionNames);
  const bool two = table.columns.empty() && table.rows.front().cells.size() == 2;  // without header: the image first
  if (two && image == kNoColumn && caption == kNoColumn) return {0, 1};
  return {image, caption};
}

Table parsed(const std::string& file, const std::string& text, const CaptionColumns& columns) {
  Table table = parse_table(file, text, table_kind(file));
  check<FileError>(!table.rows.empty(), file, ": found no rows, expected an image and a caption in each");
  if (table.columns.empty() && has_caption_header(table, columns)) take_header(table);
  return table;
}

}  // namespace

CaptionedImages read_captions(const std::string& where, DataPart part, const CaptionColumns& columns, const Path& images,
                              bool allow_missing) {
  if (are_scenes(where)) return synthetic_scenes(detail::synthetic_options<ScenesOptions>(where, part));
  const std::string file = caption_table_of(where, part);
  check<FileError>(
      !file.empty() || part != DataPart::train, where,
      ": found no table of images and captions, expected a .csv, .tsv or .jsonl file, a folder with train.csv, metadata.csv or "
      "captions.csv, or scenes");
  if (file.empty()) return {};
  const std::string text = read_text_or_gzip(file);
  const Table table = parsed(file, text, columns);
  const auto [image, caption] = columns_in(table, columns);
  check<FileError>(image != kNoColumn && caption != kNoColumn && image != caption, file, ": found no column of ",
                   image == kNoColumn ? "images; choose it with image_column=NAME" : "captions; choose it with caption_column=NAME");
  ChosenColumns chosen;
  record_column(table, "image_column", image, &chosen);
  record_column(table, "caption_column", caption, &chosen);
  const Path folder = images.empty() ? Path(file).parent_path() : images;
  const auto files = std::make_shared<std::vector<Path>>();
  std::map<std::string, int64_t> numbers;  // of images by path: a file may be named in two ways
  CaptionedImages out{.images = {.source = printable(where), .files = true}, .columns = columns_text(file, chosen)};
  for (const TableRow& row : table.rows) {
    const std::string &name = row.cells[static_cast<size_t>(image)], &said = row.cells[static_cast<size_t>(caption)];
    check<FileError>(!name.empty() && !said.empty(), table.at(row), ": found no ", name.empty() ? "image" : "caption",
                     ", expected one in every row; fill it in or delete the row");
    const Path path = folder / name;
    const auto [at, is_new] = numbers.try_emplace(path.lexically_normal().string(), std::ssize(*files));
    if (is_new) files->push_back(path);
    out.image_of.push_back(at->second);
    out.captions.push_back(said);
  }
  std::vector<std::string> missing;
  for (const Path& each : *files)
    if (!allow_missing && !path_exists(each)) missing.push_back(printable(each.string()));
  check<FileError>(missing.empty(), file, ": ", missing.size(), " of ", files->size(), " images have no file:", listed_lines(missing),
                   "\n  image_folder=FOLDER names the folder of the images");
  out.images.labels.resize(files->size());
  out.images.image = [files](int64_t i) { return read_image(files->at(static_cast<size_t>(i))); };
  out.images.size = [files](int64_t i) { return read_image_size(files->at(static_cast<size_t>(i))); };
  out.images.file = [files](int64_t i) { return files->at(static_cast<size_t>(i)); };
  out.images.name = [files](int64_t i) { return printable(files->at(static_cast<size_t>(i)).string()); };
  return out;
}

bool is_captioned(const std::string& where) {
  if (are_scenes(where)) return !path_exists(where);
  const std::string file = caption_table_of(where, DataPart::train);
  if (file.empty() || !is_plain_file(file)) return false;
  const std::string text = read_text_or_gzip(file);
  Table table = parse_table(file, text, table_kind(file));
  if (table.rows.size() < 2 && table.columns.empty()) return false;
  if (table.columns.empty() && has_caption_header(table, {})) take_header(table);
  if (table.columns.empty()) return false;
  const auto [image, caption] = columns_in(table, {});
  const bool is_labelled = ColumnNames(table.columns).find_first(kLabelNames) != kNoColumn;  // texts from files, with labels
  return image != kNoColumn && caption != kNoColumn &&
         (!is_labelled || plain_name(table.columns[static_cast<size_t>(caption)]) == "caption");
}

CaptionedImages chosen_images(const CaptionedImages& data, const std::vector<int64_t>& images) {
  std::vector<int64_t> place(static_cast<size_t>(data.images.count()), -1);
  for (size_t i = 0; i < images.size(); ++i) place.at(static_cast<size_t>(images[i])) = static_cast<int64_t>(i);
  CaptionedImages out{.images = chosen(data.images, images), .columns = data.columns};
  for (size_t c = 0; c < data.captions.size(); ++c)
    if (const int64_t image = place[static_cast<size_t>(data.image_of[c])]; image >= 0) {
      out.image_of.push_back(image);
      out.captions.push_back(data.captions[c]);
    }
  return out;
}

}  // namespace heed
