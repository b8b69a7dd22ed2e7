// What every use of oneDNN's primitives shares.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace heed {

inline const dnnl::engine& dnnl_engine() {
  static const auto* const instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: threads may outlive statics
  return *instance;
}

inline const dnnl::stream& dnnl_stream() {
  thread_local const dnnl::stream own(dnnl_engine());
  return own;
}

}  // namespace heed
