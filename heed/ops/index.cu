// Looking up by index. An index outside its bounds, which check_indices reports later than it is used, reads as zero and adds to nothing.
#include "heed/ops/index.h"

#include "heed/cuda/failure.cuh"
#include "heed/cuda/row.cuh"
#include "heed/cuda/sort.cuh"
#include "heed/cuda/strides.cuh"

namespace heed::cuda {
namespace {

static_assert(SortedSums::kTile == kSortTile && SortedSums::kDigits == kDigits);

constexpr unsigned long long kNone = ~0ull;
__device__ unsigned long long first_bad = kNone;  // of the check that runs now
__device__ unsigned blocks_done = 0;

// The last block to finish reports the first bad index, unless an earlier check has failed.
__global__ void find_bad_index(CheckIndices a, int64_t count, IndexFailure* failure) {
  unsigned long long mine = kNone;
  for_grid(count, [&mine, index = a.index, bound = a.bound](int64_t i) {
    if (index[i] < 0 || index[i] >= bound) mine = min(mine, static_cast<unsigned long long>(i));
  });
  if (mine != kNone) atomicMin(&first_bad, mine);
  __threadfence();
  __syncthreads();
  if (threadIdx.x > 0 || atomicAdd(&blocks_done, 1u) + 1 < gridDim.x) return;
  blocks_done = 0;
  const unsigned long long place = atomicExch(&first_bad, kNone);
  if (place == kNone || *const_cast<const char* const volatile*>(&failure->op)) return;
  failure->index = a.index[place];
  failure->bound = a.bound;
  failure->place = static_cast<int64_t>(place);
  failure->rank = a.rank;
  for (int axis = 0; axis < a.rank; ++axis) failure->shape[axis] = a.shape[axis];
  __threadfence_system();
  failure->op = a.op;
}

// Units of `Unit` bytes. x: (outer, size, units of a row), y: (outer, rows, units of a row)
template <class Unit>
__global__ void select_units(const Unit* __restrict__ x, const int64_t* __restrict__ index, Unit* __restrict__ y, Divider units,
                             Divider rows, int64_t size, int64_t row_units, int64_t count) {
  for_grid(count, [&](int64_t i) {
    int64_t outer = i;
    const int64_t unit = units.split(outer), k = rows.split(outer), from = index[k];
    y[i] = from >= 0 && from < size ? x[(outer * size + from) * row_units + unit] : Unit();
  });
}

template <class Unit>
void select_sized(const SelectRows& a) {
  const int64_t units = a.inner * a.element_bytes / static_cast<int64_t>(sizeof(Unit)), count = a.outer * a.rows * units;
  start(select_units<Unit>, block_count(count, 256, 8), 256, 0, static_cast<const Unit*>(a.x), a.index, static_cast<Unit*>(a.y),
        Divider(units), Divider(a.rows), a.size, units, count);
}

// Sums of rows by sorted positions. Equal keys are adjacent. The sum of a run within one chunk is written immediately;
// parts of a run that spans several chunks are stored in `ends` and added by sum_ends.
struct RowSums {
  SortedPositions sorted;
  float *dx, *ends;  // (outer, size, inner), (outer, chunks, 2, inner): the run from the chunk before, and that into the next
  int64_t outer, size, inner, rows, chunk, chunks, strips;
};

template <int width, class T>
__device__ Floats<width> load_row(const T* from) {
  const auto group = *reinterpret_cast<const Group<T, width>*>(from);
  Floats<width> all;
#pragma unroll
  for (int k = 0; k < width; ++k) all.values[k] = load(&group.values[k]);
  return all;
}
template <int width>
__device__ void store_row(float* to, const Floats<width>& x) {
  Group<float, width> group;
#pragma unroll
  for (int k = 0; k < width; ++k) group.values[k] = x.values[k];
  *reinterpret_cast<Group<float, width>*>(to) = group;
}
template <int width>
__device__ void add_row(Floats<width>& sum, const Floats<width>& x) {
#pragma unroll
  for (int k = 0; k < width; ++k) sum.values[k] += x.values[k];
}

// Calls visit(outer index, chunk, column) for this thread's share; a thread has `width` columns of a chunk.
template <int width, class Visit>
__device__ void for_chunks(const RowSums& a, const Visit& visit) {
  const int64_t units = a.outer * a.strips * a.chunks, step = int64_t{gridDim.x} * blockDim.y;
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.y + threadIdx.y; unit < units; unit += step) {
    const int64_t rest = unit / a.chunks, column = (rest % a.strips * blockDim.x + threadIdx.x) * width;
    if (column < a.inner) visit(rest / a.strips, unit % a.chunks, column);
  }
}

template <int width, class T>
__global__ void sum_chunks(const T* __restrict__ g, RowSums a) {
  constexpr int some = 8;  // rows in flight
  const uint32_t *const keys = a.sorted.keys, *const positions = a.sorted.positions;
  for_chunks<width>(a, [&](int64_t outer, int64_t chunk, int64_t column) {
    const int64_t begin = chunk * a.chunk, end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;
    const T* const from = g + outer * a.rows * a.inner + column;
    float* const ends = a.ends + (outer * a.chunks + chunk) * 2 * a.inner + column;
    uint32_t key = keys[begin];
    bool starts_here = begin == 0 || keys[begin - 1] != key;
    Floats<width> sum{};
    const auto write = [&](bool ends_here) {
      if (key >= a.size) return;
      store_row(starts_here && ends_here ? a.dx + (outer * a.size + key) * a.inner + column : ends + (starts_here ? a.inner : 0), sum);
    };
    for (int64_t first = begin; first < end; first += some) {
      uint32_t next[some];
      Floats<width> row[some];
#pragma unroll
      for (int k = 0; k < some; ++k) {
        const int64_t i = first + k < end ? first + k : end - 1;
        next[k] = keys[i];
        row[k] = load_row<width>(from + positions[i] * a.inner);
      }
#pragma unroll
      for (int k = 0; k < some; ++k) {
        if (first + k >= end) break;
        if (next[k] != key) {
          write(true);
          key = next[k];
          starts_here = true;
          sum = {};
        }
        add_row(sum, row[k]);
      }
    }
    write(end == a.rows || keys[end] != key);
  });
}

// A run that continues in following chunks is summed by the chunk in which it starts.
template <int width>
__global__ void sum_ends(RowSums a) {
  const uint32_t* const keys = a.sorted.keys;
  for_chunks<width>(a, [&](int64_t outer, int64_t chunk, int64_t column) {
    const int64_t begin = chunk * a.chunk, end = begin + a.chunk;
    if (end >= a.rows) return;
    const uint32_t key = keys[end];
    const bool comes_from_before = keys[begin] == key && begin > 0 && keys[begin - 1] == key;
    if (keys[end - 1] != key || comes_from_before || key >= a.size) return;
    int64_t low = end, high = a.rows;  // the run ends after low and at or before high
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (keys[middle] == key ? low : high) = middle;
    }
    const float* const ends = a.ends + outer * a.chunks * 2 * a.inner + column;
    Floats<width> sum = load_row<width>(ends + (2 * chunk + 1) * a.inner);
#pragma unroll 8
    for (int64_t c = chunk + 1; c <= low / a.chunk; ++c) add_row(sum, load_row<width>(ends + 2 * c * a.inner));
    store_row(a.dx + (outer * a.size + key) * a.inner + column, sum);
  });
}

// dx is zero where no row is added.
template <class T>
void sum_rows(const T* g, const int64_t* index, float* dx, int64_t outer, int64_t size, int64_t inner, int64_t rows, void* workspace) {
  const SortedSums layout{outer, inner, rows};
  float* const ends = static_cast<float*>(workspace);
  const bool packs = inner % 4 == 0 && is_aligned(g) && is_aligned(dx);
  const int64_t units = packs ? inner / 4 : inner;
  unsigned columns = 1;  // threads side by side
  while (columns < 128 && columns < units) columns *= 2;
  const dim3 block(columns, 128 / columns);
  const RowSums sums{.sorted = sorted_positions(index, rows, size, reinterpret_cast<uint32_t*>(ends + layout.ends())),
                     .dx = dx,
                     .ends = ends,
                     .outer = outer,
                     .size = size,
                     .inner = inner,
                     .rows = rows,
                     .chunk = layout.chunk(),
                     .chunks = layout.chunks(),
                     .strips = divide_up<int64_t>(units, columns)};
  const unsigned blocks = block_count(outer * sums.strips * sums.chunks, block.y, 64);
  packs ? start(sum_chunks<4, T>, blocks, block, 0, g, sums) : start(sum_chunks<1, T>, blocks, block, 0, g, sums);
  packs ? start(sum_ends<4>, blocks, block, 0, sums) : start(sum_ends<1>, blocks, block, 0, sums);
}

// The widest unit, up to 16 bytes, in which rows of so many bytes can be moved.
template <class Visit>
void with_unit(int64_t row_bytes, const void* x, const void* y, const Visit& visit) {
  const auto fits = [&](int64_t bytes) {
    return row_bytes % bytes == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % static_cast<uintptr_t>(bytes) == 0;
  };
  if (fits(16)) return visit(uint4());
  if (fits(8)) return visit(uint64_t());
  if (fits(4)) return visit(uint32_t());
  if (fits(2)) return visit(uint16_t());
  visit(uint8_t());
}

}  // namespace

void check_indices(const CheckIndices& a) {
  const int64_t total = count(Shape(std::span(a.shape, static_cast<size_t>(a.rank))));
  if (total > 0) start(find_bad_index, block_count(total, 256 * 4, 8), 256, 0, a, total, index_failure());
}

void select_rows(const SelectRows& a) {
  if (a.outer * a.rows * a.inner == 0) return;
  with_unit(a.inner * a.element_bytes, a.x, a.y, [&]<class Unit>(Unit) { select_sized<Unit>(a); });
}

void select_rows_backward(const SelectRowsBackward& a) {
  const int64_t total = a.outer * a.size * a.inner;
  if (total == 0) return;
  check_cuda(cudaMemsetAsync(a.dx, 0, static_cast<size_t>(total) * sizeof(float), stream()), "memset");
  if (a.rows == 0) return;
  with_storage(a.dtype,
               [&]<class T>(T) { sum_rows(static_cast<const T*>(a.g), a.index, a.dx, a.outer, a.size, a.inner, a.rows, a.workspace); });
}

void select_short_rows_backward(const SelectShortRowsBackward& a) {
  if (a.outer * a.size * a.inner * a.rows == 0) return;
  with_storage(a.dtype,
               [&]<class T>(T) { sum_rows(static_cast<const T*>(a.g), a.index, a.dx, a.outer, a.size, a.inner, a.rows, a.workspace); });
}

}  // namespace heed::cuda
