// What every fuzzer has in common: the time an input may take, and a folder for inputs that are several files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

// One input. Each *_fuzz.cc defines it. Anything but a good file or a FileError is a bug, and so is an input that takes over a second.
void fuzz_input(const uint8_t* data, size_t size);

namespace heed::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// A folder in memory, the same for all inputs of a process.
const std::filesystem::path& folder();
void write_file(const std::string& name, std::string_view bytes);

// Writes the files of an input to the folder and removes those it does not have. A line "=== NAME" begins the file of that name; names that
// are not in `known` are left out.
void write_files(std::string_view input, std::span<const char* const> known);

}  // namespace heed::fuzz
