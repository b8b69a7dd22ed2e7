#include "heed/cli/two_columns.h"

#include <sstream>

namespace heed::cli {

void put_row(std::ostream& out, const std::string& left, const std::string& text, size_t column) {
  constexpr size_t widest = 118;
  std::string start = "  " + left;
  const auto put_line = [&](const std::string& line) {
    if (start.size() >= column) {
      out << start << '\n';
      start.clear();
    }
    start.resize(column, ' ');
    out << start << line << '\n';
    start.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line); put_line(line))
    while (line.size() > widest - column) {
      const size_t space = line.rfind(' ', widest - column);
      put_line(line.substr(0, space));
      line = line.substr(space + 1);
    }
}

}  // namespace heed::cli
