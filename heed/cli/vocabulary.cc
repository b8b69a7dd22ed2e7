// heed vocabulary train: trains a tokenizer vocabulary on text files.
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heed/cli/command.h"
#include "heed/cli/print_json.h"
#include "heed/cli/shell_word.h"
#include "heed/text/train_vocabulary.h"

namespace heed::cli {
namespace {

const std::map<std::string, VocabularyKind> kKinds = {{"wordpiece", VocabularyKind::wordpiece},
                                                      {"bpe", VocabularyKind::bpe},
                                                      {"words", VocabularyKind::words},
                                                      {"characters", VocabularyKind::characters}};

struct VocabularyFlags {
  std::vector<std::string> files;
  std::string out, kind = "wordpiece";
  TrainVocabularyOptions training;
  bool cased = false, json = false;
};

void run_training(VocabularyFlags options) {
  options.training.kind = kKinds.at(options.kind);
  options.training.lowercase = !options.cased;
  const std::vector<Path> files(options.files.begin(), options.files.end());
  const TrainedVocabulary trained = train_vocabulary(files, options.out, options.training);
  if (options.json) {
    print_json_line(
        {{"folder", options.out}, {"kind", options.kind}, {"tokens", trained.tokens}, {"words", trained.words}, {"bytes", trained.bytes}});
  } else {
    std::cout << options.out << ": " << trained.tokens << " tokens (" << options.kind << ") from " << trained.words
              << " different words in " << trained.bytes << " bytes\n\nNext: heed tokenize " << shell_word(options.out) << " 'some text'\n";
  }
}

const Command vocabulary_command("vocabulary", "Train a tokenizer vocabulary on text", [](Flags& flags) {
  auto options = std::make_shared<VocabularyFlags>();
  flags.footer("Examples:\n  heed vocabulary train corpus.txt -o my-vocabulary\n  heed vocabulary train --help");
  Flags train = flags.command("train", "Train a vocabulary on text files and write it to a folder");
  train.option("files", options->files, "Text files, UTF-8").value("FILE...").required();
  train.option(kOutputFlag, options->out, "Folder to write to").value("FOLDER").required();
  train.option("--kind", options->kind, "wordpiece, bpe, words or characters").value("KIND").must_be(key_of(kKinds));
  train.option("--size", options->training.size, "Maximum number of tokens").value("N").must_be(positive());
  train.option("--min-count", options->training.min_count, "Minimum frequency of a token").value("N").must_be(positive());
  train.flag("--cased", options->cased, "Keep upper case and accents; bpe always does");
  train.flag("--json", options->json, "Print the result as JSON");
  train.footer(
      "Examples:\n  heed vocabulary train corpus.txt -o my-vocabulary\n  heed vocabulary train *.txt --kind bpe --size 10000 -o "
      "my-bpe\n"
      "  heed vocabulary train names.txt --kind characters --cased -o my-characters");
  return [options] { run_training(*options); };
});

}  // namespace
}  // namespace heed::cli
