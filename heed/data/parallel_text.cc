// Parallel text: line i of one file is the translation of line i of the other.
#include "heed/data/text_parts.h"

namespace heed {

std::vector<Translation> read_parallel(const Path& source, const Path& target) {
  const std::string source_text = read_text_or_gzip(source), target_text = read_text_or_gzip(target);
  TextLines from(source_text), to(target_text);
  std::vector<Translation> pairs;
  int64_t source_lines = 0, target_lines = 0;
  for (std::string_view a, b;;) {
    const bool more_source = from.next(a), more_target = to.next(b);
    if (!more_source && !more_target) break;
    source_lines += more_source ? 1 : 0;
    target_lines += more_target ? 1 : 0;
    if (!more_source || !more_target) continue;  // count the remaining lines for the error message
    const std::string_view source_line = trimmed(a), target_line = trimmed(b);
    if (!source_line.empty() && !target_line.empty()) pairs.push_back({std::string(source_line), std::string(target_line)});
  }
  check<FileError>(source_lines == target_lines, source.string(), " has ", source_lines, " lines, ", target.string(), " has ", target_lines,
                   ", expected the same number: line i of one is the translation of line i of the other");
  check<FileError>(!pairs.empty(), source.string(), ": found no line with text in both files among ", source_lines,
                   ", expected at least one; the other file is ", target.string());
  return pairs;
}

}  // namespace heed
