// NVIDIA's libraries, which are loaded when they are first needed, so that heed is built and runs without them.
#pragma once

#include <dlfcn.h>

#include <string>
#include <vector>

#include "heed/core/check.h"

namespace heed::cuda {

struct LibraryNames {
  std::string title;                  // for messages
  const char* variable;               // the environment variable that names the file; "none": do not use the library
  std::vector<std::string> names;     // of the file, best first
  std::vector<std::string> packages;  // folders in Python's site-packages
};

// The handle of the library, or null. found: becomes the name that was opened. Looked for, in this order: the file that the variable names,
// where the loader looks, next to the program and in lib/ there, in /usr/local/cuda/lib64, and in the packages of the python3 on PATH,
// which PyTorch brings.
void* open_library(const LibraryNames& names, std::string& found);

// function becomes the library's function of that name, an error if there is none. what: names the library in the error
template <class Function>
void find_function(void* library, const std::string& what, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  check(function != nullptr, what, " has no ", name);
}

}  // namespace heed::cuda
