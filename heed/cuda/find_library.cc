#include "heed/cuda/find_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "heed/core/check.h"

namespace heed::cuda {
namespace {

namespace fs = std::filesystem;

// The folders below a Python prefix where NVIDIA's packages put the library.
void add_packages(const fs::path& prefix, const LibraryNames& names, std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* const packages : {"site-packages", "dist-packages"})
      for (const std::string& folder : names.packages) folders.push_back(entry.path() / packages / folder);
  }
}

std::vector<fs::path> library_folders(const LibraryNames& names) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path(); !program.empty())
    folders.insert(folders.end(), {program, program / "lib", program.parent_path() / "lib"});
  folders.push_back("/usr/local/cuda/lib64");
  if (const char* const environment = std::getenv("VIRTUAL_ENV")) add_packages(environment, names, folders);
  std::istringstream path(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    const fs::path python = fs::path(folder) / "python3";
    if (folder.empty() || !fs::exists(python, ignored)) continue;
    add_packages(fs::path(folder).parent_path(), names, folders);
    if (const fs::path real = fs::canonical(python, ignored); !real.empty()) add_packages(real.parent_path().parent_path(), names, folders);
  }
  return folders;
}

}  // namespace

void* open_library(const LibraryNames& names, std::string& found) {
  const auto open = [&](const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) found = name;
    return handle;
  };
  if (const char* const wanted = std::getenv(names.variable); wanted && *wanted) {
    if (std::string(wanted) == "none") return nullptr;
    void* const handle = open(wanted);
    check(handle, names.title, ": ", names.variable, " names ", wanted, ", which cannot be loaded: ", dlerror());
    return handle;
  }
  for (const std::string& name : names.names)
    if (void* const handle = open(name)) return handle;
  std::error_code ignored;
  for (const fs::path& folder : library_folders(names))
    for (const std::string& name : names.names)
      if (fs::exists(folder / name, ignored))
        if (void* const handle = open((folder / name).string())) return handle;
  return nullptr;
}

}  // namespace heed::cuda
