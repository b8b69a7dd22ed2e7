// Files as nobody should write them: a good one, changed by chance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed::test {

// Numbers by chance, the same ones on every machine.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t next();
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(next() % count); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  uint64_t state_;
};

enum class Format { binary, text, lines, json, json_lines, toml, safetensors, gz };

Format format_of(const std::string& name);  // by the ending of a file's name

// One to three changes that know the format, or that do not: both find other faults. what: takes a name for each.
std::string mutated(const std::string& bytes, Format format, Chance& chance, std::string& what);

std::string gz(const std::string& bytes);      // packed
std::string gunzip(const std::string& bytes);  // what is no gz stays as it is

}  // namespace heed::test
