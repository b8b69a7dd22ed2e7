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
#include "heed/core/work_count.h"
#include "heed/ops/bf16_gemm.h"
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

thread_local bool Bf16Layers::active_ = false;

namespace {

using Memory = dnnl::memory;
using Type = dnnl::memory::data_type;

constexpr int64_t kPadded = 64;  // numbers that are summed over: where they vary from batch to batch they are filled up with zeros

// An operand as it lies in memory, dense and rounded, with `padding` more rows of zeros. rows, columns: in memory
Tensor rounded(const Matrix& from, int64_t rows, int64_t columns, int64_t padding) {
  const Tensor out = Tensor::empty({rows + padding, columns}, DType::bf16);
  Bf16* to = raw<Bf16>(out);
  parallel_for(rows, std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(columns, 1)), [&](int64_t begin, int64_t end) {
    if (from.stride == columns)
      return HWY_DYNAMIC_DISPATCH(round_row)(from.data + begin * columns, to + begin * columns, (end - begin) * columns);
    for (int64_t row = begin; row < end; ++row) HWY_DYNAMIC_DISPATCH(round_row)(from.data + row * from.stride, to + row * columns, columns);
  });
  std::fill_n(to + rows * columns, padding * columns, Bf16{0});
  return out;
}

// What a product of one part of the rows is made from.
struct Shape2d {
  int64_t rows, N, K, a_stride, b_stride, c_stride;
  bool a_turned, b_turned;
  auto operator<=>(const Shape2d&) const = default;
};

struct Made {
  dnnl::matmul primitive;
  Memory::desc a, b, c, scratch;
};

// Primitives are kept: making one takes as long as running it some hundred times.
const Made& made_for(const Shape2d& s) {
  static auto* const all = new std::map<Shape2d, Made>();  // never destroyed: threads may outlive statics
  const std::lock_guard lock(dnnl_making());
  const auto found = all->find(s);
  if (found != all->end()) return found->second;
  const auto strides = [](int64_t stride, bool transposed) { return transposed ? Memory::dims{1, stride} : Memory::dims{stride, 1}; };
  const Memory::desc a({s.rows, s.K}, Type::bf16, strides(s.a_stride, s.a_turned));
  const Memory::desc b({s.K, s.N}, Type::bf16, strides(s.b_stride, s.b_turned));
  const Memory::desc c({s.rows, s.N}, Type::f32, strides(s.c_stride, false));
  const dnnl::matmul::primitive_desc description({a, b, c}, user_scratchpad(), dnnl_engine());
  return all->insert({s, {dnnl::matmul(description), a, b, c, description.scratchpad_desc()}}).first->second;
}

void run(const Made& made, Bf16* a, Bf16* b, float* c) {
  thread_local std::vector<std::byte> scratch;
  scratch.resize(std::max(scratch.size(), made.scratch.get_size()));
  const auto at = [](const Memory::desc& layout, void* data) { return Memory(layout, dnnl_engine(), data); };
  made.primitive.execute(dnnl_stream(), {{DNNL_ARG_SRC, at(made.a, a)},
                                         {DNNL_ARG_WEIGHTS, at(made.b, b)},
                                         {DNNL_ARG_DST, at(made.c, c)},
                                         {DNNL_ARG_SCRATCHPAD, at(made.scratch, scratch.data())}});
}

// Parts of the rows, by their number alone. What does not fill a part is cut into powers of two: few primitives serve any number.
std::vector<Tile> parts_of(int64_t M, int64_t N) {
  const int64_t whole = M >= 1024 ? 256 : M >= 256 ? 128 : 64;
  std::vector<Tile> out;
  for (int64_t row = 0; row < M;) {
    const int64_t rows = M - row >= whole ? whole : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(M - row)));
    out.push_back({.row = row, .rows = rows, .column = 0, .columns = N});
    row += rows;
  }
  return out;
}

// The same numbers on machines without the instructions.
void multiply_rounded(const Products& p, const Matrix& a, const Matrix& b, const Matrix& c, const Tensor& left, const Tensor& right) {
  const Tensor wide_left = converted(left, DType::f32), wide_right = converted(right, DType::f32);
  const Matrix x{raw<float>(wide_left), wide_left.size(1), a.transposed}, y{raw<float>(wide_right), wide_right.size(1), b.transposed};
  gemm({.M = p.M,
        .N = p.N,
        .K = p.K,
        .operands =
            [&](int64_t, Matrix& first, Matrix& second, Matrix& out) {
              first = x;
              second = y;
              out = c;
            },
        .bias = p.bias,
        .after = p.after});
}

}  // namespace

bool has_bf16() {
  apply_instruction_set();
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (isa & wanted) == wanted;
}

void gemm_bf16(const Products& p) {
  check(p.batch == 1 && !p.add, "bf16: ", p.batch, " products", p.add ? " that are added" : "", ", expected one that is not");
  if (p.M == 0 || p.N == 0) return;
  Matrix a{}, b{}, c{};
  p.operands(0, a, b, c);
  const bool padded = a.transposed && !b.transposed && has_bf16();
  const int64_t K = padded ? (p.K + kPadded - 1) / kPadded * kPadded : p.K;
  const Tensor left = rounded(a, a.transposed ? p.K : p.M, a.transposed ? p.M : p.K, a.transposed ? K - p.K : 0);
  const Tensor right = rounded(b, b.transposed ? p.N : p.K, b.transposed ? p.K : p.N, b.transposed ? 0 : K - p.K);
  if (p.K == 0 || !has_bf16()) return multiply_rounded(p, a, b, c, left, right);
  count_work(p.M * p.N * p.K);
  const std::vector<Tile> parts = parts_of(p.M, p.N);
  const Epilogue after = bias_and_after(p);
  try {
    parallel_tasks(std::ssize(parts), [&](int64_t task) {
      const Tile& part = parts[static_cast<size_t>(task)];
      const Made& made = made_for({.rows = part.rows,
                                   .N = p.N,
                                   .K = K,
                                   .a_stride = left.size(1),
                                   .b_stride = right.size(1),
                                   .c_stride = c.stride,
                                   .a_turned = a.transposed,
                                   .b_turned = b.transposed});
      run(made, raw<Bf16>(left) + part.row * (a.transposed ? 1 : left.size(1)), raw<Bf16>(right), c.data + part.row * c.stride);
      if (after) after(0, part);
    });
  } catch (const dnnl::error& error) {
    const std::string K_text = std::to_string(p.K);
    fail_with(error, "bf16: oneDNN's product of (" + std::to_string(p.M) + ", " + K_text + ") by (" + K_text + ", " + std::to_string(p.N) +
                         ") failed");
  }
}

void gemm_bf16(int64_t M, int64_t N, int64_t K, Matrix a, Matrix b, Matrix c) {
  gemm_bf16({.M = M, .N = N, .K = K, .operands = [&](int64_t, Matrix& x, Matrix& y, Matrix& z) {
               x = a;
               y = b;
               z = c;
             }});
}

}  // namespace heed
#endif
