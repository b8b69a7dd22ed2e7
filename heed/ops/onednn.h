// Shared by all uses of oneDNN primitives.
#pragma once

#include <mutex>
#include <new>
#include <string>

#include <oneapi/dnnl/dnnl.hpp>

#include "heed/core/check.h"

namespace heed {

inline const dnnl::engine& dnnl_engine() {
  static const auto* const instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: threads may outlive statics
  return *instance;
}

inline const dnnl::stream& dnnl_stream() {
  thread_local const dnnl::stream own(dnnl_engine());
  return own;
}

// For primitives whose scratch memory is passed to every run, so that runs do not share it.
inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr out;
  out.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return out;
}

// Locked while a primitive is created: the thread sanitizer reports a data race in the primitive cache of oneDNN 2.6.
inline std::mutex& dnnl_making() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

// Converts an error of oneDNN. what: the op and what it was to compute
[[noreturn]] inline void fail_with(const dnnl::error& error, const std::string& what) {
  if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
  fail(what, ": ", error.message);
}

}  // namespace heed
