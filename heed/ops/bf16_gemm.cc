#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heed/ops/bf16_gemm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "heed/core/lanes.h"

#include <bit>
#include <compare>
#include <map>
#include <mutex>

#include "heed/core/copy.h"
#include "heed/core/isa.h"
#include "heed/core/parallel.h"
#include "heed/core/raw.h"
#include "heed/ops/bf16_gemm.h"
#include "heed/ops/epilogue.h"
#include "heed/ops/onednn.h"

HWY_BEFORE_NAMESPACE();
namespace heed {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// To nearest, ties to even; a NaN stays one. As to_bf16, many at a time.
void round_row(const float* from, Bf16* to, int64_t count) {
  const hn::ScalableTag<uint32_t> wide;
  const hn::Rebind<int32_t, decltype(wide)> as_signed;
  const hn::Rebind<uint16_t, decltype(wide)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(wide, reinterpret_cast<const uint32_t*>(from + i));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(wide, 0x7fff)), odd);
    const auto is_nan = hn::Gt(hn::And(bits, hn::Set(wide, 0x7fffffff)), hn::Set(wide, 0x7f800000));
    const auto kept = hn::IfThenElse(is_nan, hn::Or(bits, hn::Set(wide, 0x400000)), rounded);
    hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(as_signed, hn::ShiftRight<16>(kept))), narrow, reinterpret_cast<uint16_t*>(to + i));
  }
  for (; i < count; ++i) to[i] = to_bf16(from[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace heed
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed {

HWY_EXPORT(round_row);

namespace {

using Memory = dnnl::memory;
using Type = dnnl::memory::data_type;

// The summed axis is padded with zeros to a multiple of this where it is the number of tokens, which varies from batch to batch:
// primitives are created per shape, and creating one takes as long as running it a few hundred times.
constexpr int64_t kPadded = 64;

// An operand as stored, in bf16.
struct Bf16Matrix {
  Tensor copy = {};  // undefined: the operand is used in place
  Bf16* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

// rows, columns: as stored. padding: rows of zeros to append
Bf16Matrix bf16_matrix(const GemmOperand& x, const void* packed, int64_t offset, int64_t rows, int64_t columns, int64_t padding) {
  if (packed) return {.data = static_cast<Bf16*>(const_cast<void*>(packed)), .stride = columns, .transposed = x.transposed};
  if (x.dtype == DType::bf16 && padding == 0)
    return {.data = static_cast<Bf16*>(x.data) + offset, .stride = x.stride, .transposed = x.transposed};
  Bf16Matrix out{.copy = Tensor::empty({rows + padding, columns}, DType::bf16, kCpu), .stride = columns, .transposed = x.transposed};
  out.data = raw<Bf16>(out.copy);
  if (x.dtype == DType::bf16) {
    const Bf16* from = static_cast<Bf16*>(x.data) + offset;
    parallel_for(rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) std::copy_n(from + row * x.stride, columns, out.data + row * columns);
    });
  } else {
    round_matrix({static_cast<float*>(x.data) + offset, x.stride}, rows, columns, out.data);
  }
  std::fill_n(out.data + rows * columns, padding * columns, Bf16{0});
  return out;
}

// The operands of a product of some rows.
struct Shape2d {
  int64_t rows, N, K, a_stride, b_stride, c_stride;
  bool a_transposed, b_transposed, add;
  auto operator<=>(const Shape2d&) const = default;
};

struct Primitive {
  dnnl::matmul matmul;
  Memory::desc a, b, c, scratch;
};

const Primitive& primitive_for(const Shape2d& s) {
  static auto* const cache = new std::map<Shape2d, Primitive>();  // never destroyed: threads may outlive statics
  const std::lock_guard lock(dnnl_making());
  const auto found = cache->find(s);
  if (found != cache->end()) return found->second;
  const auto strides = [](int64_t stride, bool transposed) { return transposed ? Memory::dims{1, stride} : Memory::dims{stride, 1}; };
  const Memory::desc a({s.rows, s.K}, Type::bf16, strides(s.a_stride, s.a_transposed));
  const Memory::desc b({s.K, s.N}, Type::bf16, strides(s.b_stride, s.b_transposed));
  const Memory::desc c({s.rows, s.N}, Type::f32, strides(s.c_stride, false));
  dnnl::primitive_attr attributes = user_scratchpad();
  if (s.add) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc description({a, b, c}, attributes, dnnl_engine());
  return cache->insert({s, {dnnl::matmul(description), a, b, c, description.scratchpad_desc()}}).first->second;
}

void run(const Primitive& primitive, Bf16* a, Bf16* b, float* c) {
  thread_local std::vector<std::byte> scratch;
  scratch.resize(std::max(scratch.size(), primitive.scratch.get_size()));
  const auto at = [](const Memory::desc& layout, void* data) { return Memory(layout, dnnl_engine(), data); };
  primitive.matmul.execute(dnnl_stream(), {{DNNL_ARG_SRC, at(primitive.a, a)},
                                           {DNNL_ARG_WEIGHTS, at(primitive.b, b)},
                                           {DNNL_ARG_DST, at(primitive.c, c)},
                                           {DNNL_ARG_SCRATCHPAD, at(primitive.scratch, scratch.data())}});
}

// Parts of the rows, depending on the shape alone. What does not fill a part is split into powers of two, so that few primitives serve any
// number of rows. Sums of a bf16 result wait in a buffer that should stay in the second-level cache.
std::vector<Tile> parts_of(int64_t M, int64_t N, bool buffered) {
  int64_t whole = M >= 1024 ? 256 : M >= 256 ? 128 : 64;
  while (buffered && whole > 16 && whole * N > (1 << 17)) whole /= 2;
  std::vector<Tile> out;
  for (int64_t row = 0; row < M;) {
    const int64_t rows = M - row >= whole ? whole : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(M - row)));
    out.push_back({.row = row, .rows = rows, .column = 0, .columns = N});
    row += rows;
  }
  return out;
}

void* element(void* data, int64_t index, DType dtype) {
  return data ? static_cast<std::byte*>(data) + index * static_cast<int64_t>(bytes_of(dtype)) : nullptr;
}

// Bias and activation of some rows of item number `item`, whose sums are f32.
void finish_rows(const Gemm& g, int64_t offset, const Tile& part, const float* sums, int64_t sums_stride) {
  const int64_t at = offset + part.row * g.c.stride;
  apply_epilogue({.sums = sums,
                  .sums_stride = sums_stride,
                  .z = element(g.z, at, g.c.dtype),
                  .y = element(g.c.data, at, g.c.dtype),
                  .stride = g.c.stride,
                  .bias = g.bias,
                  .activation = g.activation,
                  .rows = part.rows,
                  .columns = part.columns,
                  .dtype = g.c.dtype});
}

// The f32 sums of some rows that a product will be added to.
void load_sums(const Gemm& g, int64_t offset, const Tile& part, float* sums) {
  const Bf16* const c = static_cast<const Bf16*>(g.c.data) + offset + part.row * g.c.stride;
  for (int64_t row = 0; row < part.rows; ++row)
    for (int64_t i = 0; i < g.N; ++i) sums[row * g.N + i] = to_float(c[row * g.c.stride + i]);
}

// The same numbers on machines without bf16 instructions.
void multiply_in_f32(const Gemm& g, const Bf16Matrix& a, const Bf16Matrix& b, int64_t offset) {
  const auto widened = [](const Bf16Matrix& x, int64_t rows, int64_t columns) {
    const Tensor out = Tensor::empty({rows, columns}, DType::f32, kCpu);
    float* to = raw<float>(out);
    parallel_for(rows, rows_per_task(columns), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t i = 0; i < columns; ++i) to[row * columns + i] = to_float(x.data[row * x.stride + i]);
    });
    return out;
  };
  const int64_t a_columns = a.transposed ? g.M : g.K, b_columns = b.transposed ? g.K : g.N;
  const Tensor left = widened(a, a.transposed ? g.K : g.M, a_columns), right = widened(b, b.transposed ? g.N : g.K, b_columns);
  const bool direct = g.c.dtype == DType::f32;
  const Tensor sums = direct ? Tensor() : Tensor::empty({g.M, g.N}, DType::f32, kCpu);
  const Matrix c = direct ? Matrix{static_cast<float*>(g.c.data) + offset, g.c.stride} : Matrix{raw<float>(sums), g.N};
  if (!direct && g.add) load_sums(g, offset, {0, g.M, 0, g.N}, c.data);
  cpu::gemm(g.M, g.N, g.K, {raw<float>(left), a_columns, a.transposed}, {raw<float>(right), b_columns, b.transposed}, c, g.add);
  if (!direct || g.bias || g.activation != Activation::none) finish_rows(g, offset, {0, g.M, 0, g.N}, c.data, c.stride);
}

void multiply(const Gemm& g, int64_t a_offset, int64_t b_offset, int64_t offset) {
  const bool native = has_bf16() && g.K > 0, padded = native && g.a.transposed && !g.b.transposed && !g.packed_b;
  const int64_t K = padded ? (g.K + kPadded - 1) / kPadded * kPadded : g.K;
  const Bf16Matrix a =
      bf16_matrix(g.a, nullptr, a_offset, g.a.transposed ? g.K : g.M, g.a.transposed ? g.M : g.K, g.a.transposed ? K - g.K : 0);
  const Bf16Matrix b =
      bf16_matrix(g.b, g.packed_b, b_offset, g.b.transposed ? g.N : g.K, g.b.transposed ? g.K : g.N, g.b.transposed ? 0 : K - g.K);
  if (!native) return multiply_in_f32(g, a, b, offset);
  const bool direct = g.c.dtype == DType::f32;
  const std::vector<Tile> parts = parts_of(g.M, g.N, !direct);
  parallel_tasks(std::ssize(parts), [&](int64_t task) {
    const Tile& part = parts[static_cast<size_t>(task)];
    const int64_t stride = direct ? g.c.stride : g.N;
    thread_local std::vector<float> buffer;
    if (!direct) buffer.resize(std::max(buffer.size(), static_cast<size_t>(part.rows * g.N)));
    float* sums = direct ? static_cast<float*>(g.c.data) + offset + part.row * stride : buffer.data();
    if (!direct && g.add) load_sums(g, offset, part, sums);
    const Primitive& primitive = primitive_for({.rows = part.rows,
                                                .N = g.N,
                                                .K = K,
                                                .a_stride = a.stride,
                                                .b_stride = b.stride,
                                                .c_stride = stride,
                                                .a_transposed = a.transposed,
                                                .b_transposed = b.transposed,
                                                .add = g.add});
    run(primitive, a.data + part.row * (a.transposed ? 1 : a.stride), b.data, sums);
    if (!direct || g.bias || g.activation != Activation::none) finish_rows(g, offset, part, sums, stride);
  });
}

}  // namespace

bool has_bf16() {
  static const bool found = [] {
    apply_instruction_set();
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & wanted) == wanted;
  }();
  return found;
}

void round_matrix(const Matrix& from, int64_t rows, int64_t columns, Bf16* to) {
  parallel_for(rows, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(columns, 1)), [&](int64_t begin, int64_t end) {
    if (from.stride == columns)
      return HWY_DYNAMIC_DISPATCH(round_row)(from.data + begin * columns, to + begin * columns, (end - begin) * columns);
    for (int64_t row = begin; row < end; ++row) HWY_DYNAMIC_DISPATCH(round_row)(from.data + row * from.stride, to + row * columns, columns);
  });
}

void gemm_bf16(const Gemm& g) {
  try {
    for (int64_t item = 0; item < g.batch(); ++item)
      multiply(g, g.item_offset(g.a, item), g.item_offset(g.b, item), g.item_offset(g.c, item));
  } catch (const dnnl::error& error) {
    const std::string K_text = std::to_string(g.K);
    fail_with(error, "bf16: oneDNN's product of (" + std::to_string(g.M) + ", " + K_text + ") by (" + K_text + ", " + std::to_string(g.N) +
                         ") failed");
  }
}

}  // namespace heed
#endif
