// Helpers for file tests: temporary folders, files from bytes, expected errors.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/io/file.h"
#include "tests/sanitized.h"

namespace heed::test {

// HEED_TEST_FIXTURES: another place, for tests that run where the sources are not.
inline const Path kFixtures = [] {
  const char* const folder = std::getenv("HEED_TEST_FIXTURES");
  return folder ? Path(folder) : Path(HEED_SOURCE_DIR) / "tests/fixtures";
}();
inline Path fixture(const std::string& name) { return kFixtures / name; }

// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "heed-test-XXXXXX").string();
    check(mkdtemp(name.data()) != nullptr, "folder: cannot be created");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Path operator/(const std::string& name) const { return path_ / name; }
  const Path& path() const { return path_; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& file : std::filesystem::directory_iterator(path_)) out.push_back(file.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  Path path_;
};

inline void put(const Path& path, std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }

inline std::string get(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::shared_ptr<const MappedFile> mapped_bytes(std::string_view bytes) {
  return MappedFile::in_memory("held", std::as_bytes(std::span(bytes)));
}

// The bytes of the elements, row-major: a stricter comparison than equal values.
inline std::vector<std::byte> bytes_in(const Tensor& x) {
  std::vector<std::byte> out(static_cast<size_t>(x.count()) * bytes_of(x.dtype()));
  x.copy_to_host(out, x.dtype());
  return out;
}

inline void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(bytes_in(a) == bytes_in(b));
}

// 0, 1, 2, ... or false, true, false, ... in any dtype.
inline Tensor counted(const Shape& shape, DType dtype) {
  const Tensor out = Tensor::empty(shape, dtype, kCpu);
  std::vector<std::byte> bytes(static_cast<size_t>(out.count()) * bytes_of(dtype));
  with_type(dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < out.count(); ++i) {
      const T value = convert<T>(static_cast<float>(dtype == DType::boolean ? i % 2 : i % 100));
      std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return Tensor::from_bytes(bytes, shape, dtype, kCpu);
}

inline void expect_refused(const std::function<void()>& act, const std::string& fragment) {
  try {
    act();
    ADD_FAILURE() << "nothing was refused, expected: " << fragment;
  } catch (const FileError& error) {
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << "found: " << error.what() << "\nexpected: " << fragment;
  }
}

// From /proc: resident memory now (VmRSS) or its peak since reset_high_water (VmHWM), in bytes.
inline int64_t process_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == field + ":") {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes * 1024;
    }
  return 0;
}
inline bool reset_high_water() { return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << 5 << std::flush); }

}  // namespace heed::test
