// Folders with every kind of file that heed reads, and the commands that read them.
#pragma once

#include <filesystem>
#include <functional>

#include "tests/supervised.h"

namespace heed::test {

// A word "@name" of a command is the path of that name in the folder. What a command writes goes below @out.
struct Scene {
  std::string name;
  std::vector<std::string> files;  // that are changed, from the folder
  std::vector<Words> commands;
};

using Run = std::function<void(const Words& words)>;  // of the program; it must end well

// Fills folder/NAME for every scene, from the fixtures and from tiny trainings.
std::vector<Scene> make_scenes(const std::filesystem::path& folder, const std::filesystem::path& fixtures, const Run& run);

bool reads(const Words& command, const std::string& file);  // whether it names the file or a folder above it
Words in_folder(const Words& command, const std::filesystem::path& folder);

}  // namespace heed::test
