// heed data look: what it says about paths that hold no data.
#include <algorithm>

#include "heed/cli/data.h"
#include "heed/core/nearest.h"
#include "heed/data/image_sources.h"
#include "heed/io/file_kind.h"
#include "heed/io/image_files.h"
#include "heed/io/paths.h"
#include "heed/train/model_folder.h"

namespace heed::cli {
namespace {

constexpr const char* kUnderstood =
    "; heed data look reads images (one folder per class, or CIFAR or MNIST files), tables (.tsv, .csv, .jsonl) of texts with labels, "
    "translations, captions or questions, questions in SQuAD format (.json), a text file or a folder of .txt files, and synthetic data";

bool may_hold_images(const Path& folder) {
  if (detail::is_cifar(folder) || detail::is_idx(folder)) return true;
  const std::filesystem::directory_iterator entries(folder);
  return std::any_of(begin(entries), end(entries),
                     [](const auto& each) { return each.is_directory() || is_image_name(each.path().string()); });
}

}  // namespace

bool is_plain_text(const std::string& where) {
  const std::string kind = is_plain_file(where) ? kind_of_file(where) : "none";
  return kind.empty() || kind == "gzip data" || kind.find("text") != kind.npos;  // UTF-16 text has an error of its own
}

void check_no_model(const std::string& where) {
  const bool model = path_exists(Path(where) / "config.json") && train_table_of(where) == where;
  check<FileError>(!model, where, ": found a model, expected data; heed inspect ", where, " shows the model");
  check<FileError>(!is_run(where), where, ": found a run, expected data; heed runs ", where, " shows the run, heed eval ", where,
                   " evaluates it on its own data");
}

void check_holds_images(const std::string& where) {
  if (where == "shapes" || where.starts_with("shapes:")) return;
  const std::vector<std::string> synthetic = {"shapes", "scenes", "opinions", "entailment", "numbers", "facts"};
  check<FileError>(path_exists(where), where, ": there is no such file or folder", did_you_mean(where, synthetic), kUnderstood);
  const std::string kind = is_folder(where) ? "" : kind_of_file(where);
  check<FileError>(is_folder(where), where, ": found ", kind.empty() ? "a file" : kind, ", expected a folder of images", kUnderstood);
  check<FileError>(may_hold_images(where), where, ": found no images, no .txt files and no train.tsv, train.csv or train.jsonl",
                   kUnderstood);
}

}  // namespace heed::cli
