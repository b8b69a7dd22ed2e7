// Shared by the parts of the library: which call fails.
#pragma once

#include <dlfcn.h>

namespace heed_faults {

enum Kind { kNone, kOpen, kRead, kWrite, kSync, kRename, kMap, kMalloc, kTruncate, kClose, kMakeFolder, kUnlink, kList, kStat, kThread };

bool fails(Kind kind);             // counts a call
bool fails(Kind kind, int error);  // the same, with errno set
bool is_next(Kind kind);           // whether the next call fails
bool below_root(const char* path);

// The original function.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace heed_faults
