// Two files of lines that say the same in two languages.
#include "heed/data/text_parts.h"

namespace heed {

std::vector<Translation> read_parallel(const Path& source, const Path& target) {
  const std::vector<std::string> from = lines_of(read_packed_text(source)), to = lines_of(read_packed_text(target));
  check<FileError>(from.size() == to.size(), source.string(), " has ", from.size(), " lines, ", target.string(), " has ", to.size(),
                   ", expected as many: line i of one is line i of the other");
  std::vector<Translation> pairs;
  for (size_t i = 0; i < from.size(); ++i) {
    const std::string_view a = trimmed(from[i]), b = trimmed(to[i]);
    if (!a.empty() && !b.empty()) pairs.push_back({std::string(a), std::string(b)});
  }
  check<FileError>(!pairs.empty(), source.string(), ": found no line with text in both files among ", from.size(),
                   ", expected at least one; the other file is ", target.string());
  return pairs;
}

}  // namespace heed
