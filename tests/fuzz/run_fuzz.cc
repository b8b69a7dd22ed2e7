// Any texts as the files of a run: refused, or a `heed report` page.
#include "heed/train/report.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  constexpr const char* files[] = {"config.toml", "metrics.jsonl", "speed.csv", "evaluation.json", "costs.json", "samples.json", "log.txt"};
  fuzz::write_files(fuzz::text_of(data, size), files);
  try {
    report_page(std::span(&fuzz::folder(), 1));
  } catch (const FileError&) {
  }
}
