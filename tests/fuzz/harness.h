// Shared by the fuzzers: the time limit, and a folder for inputs of several files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

// One input; defined by each *_fuzz.cc. Anything but success or a FileError is a bug, and so is an input that takes over a second.
void fuzz_input(const uint8_t* data, size_t size);

namespace heed::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// A folder in memory, the same for all inputs of a process.
const std::filesystem::path& folder();
void write_file(const std::string& name, std::string_view bytes);

// Writes the files of an input to the folder and removes missing ones. A line "=== NAME" starts the file of that name; names not in
// `known` are ignored.
void write_files(std::string_view input, std::span<const char* const> known);

}  // namespace heed::fuzz
