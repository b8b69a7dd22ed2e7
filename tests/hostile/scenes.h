// Folders with all types of files that heed reads, and the commands that read them.
#pragma once

#include <filesystem>
#include <functional>

#include "tests/supervised.h"

namespace heed::test {

// "@name" in a command is the path of that name in the folder. Output goes below @out.
struct Scene {
  std::string name;
  std::vector<std::string> files;  // to mutate, relative to the folder
  std::vector<Words> commands;
};

using Run = std::function<void(const Words& words)>;  // runs the program, which must succeed

// Fills folder/NAME for every scene, from the fixtures and from tiny training runs.
std::vector<Scene> make_scenes(const std::filesystem::path& folder, const std::filesystem::path& fixtures, const Run& run);

bool reads(const Words& command, const std::string& file);  // whether it names the file or a parent folder
Words in_folder(const Words& command, const std::filesystem::path& folder);

}  // namespace heed::test
