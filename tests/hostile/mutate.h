// Random mutations of valid files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed::test {

// Random numbers, the same on every machine.
class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : state_(seed) {}
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

Format format_of(const std::string& name);  // by extension

// One to three format-aware or byte-level changes: each kind finds different bugs. what: appended descriptions.
std::string mutated(const std::string& bytes, Format format, RandomSource& rng, std::string& what);

std::string gz(const std::string& bytes);
std::string gunzip(const std::string& bytes);  // data that is not gzip is returned unchanged

}  // namespace heed::test
