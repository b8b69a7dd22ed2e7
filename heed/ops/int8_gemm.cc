#include "heed/ops/int8_gemm.h"

#include "heed/core/check.h"
#include "heed/ops/onednn.h"

namespace heed {
namespace {

using Memory = dnnl::memory;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

Memory at(const Memory::desc& layout, const void* data) { return {layout, dnnl_engine(), const_cast<void*>(data)}; }

}  // namespace

float max_int8_weight() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [&](dnnl::cpu_isa wanted) { return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted); };
  return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni) ? 127 : 63;
}

Int8Matrix::Int8Matrix(const int8_t* rows, int64_t columns, int64_t K) : columns_(columns), K_(K) {
  const std::lock_guard making(dnnl_making());
  try {
    // The layout is the same for any number of rows of x; 64 of them ask for it.
    const Memory::desc any({K, columns}, Type::s8, Tag::any), x({64, K}, Type::s8, Tag::ab), y({64, columns}, Type::f32, Tag::ab);
    layout_ = dnnl::matmul::primitive_desc({x, any, y}, dnnl_engine()).weights_desc();
    packed_.resize(layout_.get_size());
    Memory from = at({{K, columns}, Type::s8, Tag::ba}, rows), to = at(layout_, packed_.data());
    dnnl::reorder(from, to).execute(dnnl_stream(), from, to);
  } catch (const dnnl::error& error) {
    fail_with(error, "linear: oneDNN has no product of bytes for a weight of (" + std::to_string(columns) + ", " + std::to_string(K) + ")");
  }
}

const Int8Matrix::Made& Int8Matrix::made_for(int64_t rows) const {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(rows);
  if (found != made_.end()) return found->second;
  const std::lock_guard making(dnnl_making());
  const Memory::desc x({rows, K_}, Type::s8, Tag::ab), y({rows, columns_}, Type::f32, Tag::ab);
  const dnnl::matmul::primitive_desc description({x, layout_, y}, user_scratchpad(), dnnl_engine());
  return made_.insert({rows, {dnnl::matmul(description), x, y, description.scratchpad_desc()}}).first->second;
}

void Int8Matrix::multiply(const int8_t* x, int64_t rows, float* y) const {
  try {
    const Made& made = made_for(rows);
    thread_local std::vector<std::byte> scratch;
    scratch.resize(std::max(scratch.size(), made.scratch.get_size()));
    made.primitive.execute(dnnl_stream(), {{DNNL_ARG_SRC, at(made.x, x)},
                                           {DNNL_ARG_WEIGHTS, at(layout_, packed_.data())},
                                           {DNNL_ARG_DST, at(made.y, y)},
                                           {DNNL_ARG_SCRATCHPAD, at(made.scratch, scratch.data())}});
  } catch (const dnnl::error& error) {
    const std::string K = std::to_string(K_);
    fail_with(error, "linear: oneDNN's product of bytes (" + std::to_string(rows) + ", " + K + ") by (" + std::to_string(columns_) + ", " +
                         K + ") failed");
  }
}

}  // namespace heed
