// heed_interop_scores HYPOTHESES REFERENCES, for interop/scores.py: prints the scores of two files of lines, then those of each line, as
// one JSON object per line.
#include <fstream>
#include <iostream>

#include "heed/train/scores.h"

namespace {

using namespace heed;

std::vector<std::string> lines_of(const char* path) {
  std::ifstream in(path, std::ios::binary);
  check<FileError>(in.is_open(), path, ": cannot be read");
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

void print_scores(std::span<const std::string> hypotheses, std::span<const std::string> references) {
  const BleuScore score = bleu(hypotheses, references);
  const Json line{
      {"bleu", score.bleu}, {"brevity", score.brevity}, {"precisions", score.precisions}, {"chrf", chrf(hypotheses, references)}};
  std::cout << line.dump() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  try {
    check<UsageError>(argc == 3, "scores: found ", argc - 1, " files, expected 2");
    const std::vector<std::string> hypotheses = lines_of(argv[1]), references = lines_of(argv[2]);
    print_scores(hypotheses, references);
    for (size_t i = 0; i < hypotheses.size(); ++i) print_scores({&hypotheses[i], 1}, {&references[i], 1});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
