// Storage is (B, G, capacity, width), so that appending writes after the last token of every head and moves nothing.
#include "heed/attention/cache.h"

#include <algorithm>

#include "heed/attention/reserved_memory.h"
#include "heed/core/copy.h"

namespace heed {
namespace {

// Tokens [begin, begin + tokens) of what is stored.
Tensor tokens_of(const Tensor& stored, int64_t begin, int64_t tokens) {
  return stored.view({stored.size(0), stored.size(1), tokens, stored.size(3)}, stored.strides(), begin * stored.strides()[2]);
}

// The same tokens with a larger capacity.
Tensor grown(const Tensor& stored, int64_t length, int64_t capacity) {
  const Tensor larger = Tensor::empty({stored.size(0), stored.size(1), capacity, stored.size(3)}, stored.dtype(), stored.device());
  copy_into(tokens_of(stored, 0, length), tokens_of(larger, 0, length));
  return larger;
}

// In place where every item that others become keeps its index, and no other tensor shares the storage: only the others are
// copied.
Tensor reordered(const Tensor& stored, int64_t length, std::span<const int64_t> items) {
  Shape one = stored.shape(), shape = one;
  one[0] = 1;
  shape[0] = static_cast<int64_t>(items.size());
  const bool sources_stay = shape[0] == stored.size(0) &&
                            std::all_of(items.begin(), items.end(), [&](int64_t item) { return items[static_cast<size_t>(item)] == item; });
  const bool in_place = sources_stay && stored.owns_data_alone();
  const Tensor result = in_place ? stored : Tensor::empty(shape, stored.dtype(), stored.device());
  const auto item = [&](const Tensor& x, int64_t b) { return tokens_of(x.view(one, x.strides(), b * x.strides()[0]), 0, length); };
  for (int64_t i = 0; i < shape[0]; ++i) {
    const int64_t from = items[static_cast<size_t>(i)];
    if (!in_place || from != i) copy_into(item(stored, from), item(result, i));
  }
  return result;
}

// For the tokens of x and those that follow. x: (B, G, n, width)
Tensor first_storage(const Tensor& x) {
  const Tensor reserved = detail::reserved_storage(x);
  return reserved.defined() ? reserved : Tensor::empty({x.size(0), x.size(1), 0, x.size(3)}, DType::f32, x.device());
}

void check_append(const Tensor& stored, const Tensor& x, const char* what) {
  check(x.rank() == 4, "cache: ", what, " have shape ", x.shape(), ", expected (B, G, n, width)");
  if (!stored.defined()) return;
  const bool fits = x.size(0) == stored.size(0) && x.size(1) == stored.size(1) && x.size(3) == stored.size(3);
  check(fits, "cache: ", what, " have shape ", x.shape(), ", expected (", stored.size(0), ", ", stored.size(1), ", n, ", stored.size(3),
        ")");
}

}  // namespace

void KeyValueCache::append(const Tensor& k, const Tensor& v) {
  check_append(keys_, k, "keys");
  check_append(values_, v, "values");
  const int64_t more = k.size(2);
  check(v.size(0) == k.size(0) && v.size(1) == k.size(1) && v.size(2) == more, "cache: keys ", k.shape(), " and values ", v.shape(),
        " differ in items, heads or tokens");
  if (!keys_.defined()) {
    keys_ = first_storage(k);
    values_ = first_storage(v);
  }
  if (length_ + more > keys_.size(2)) {
    const int64_t capacity = std::max({length_ + more, 2 * keys_.size(2), int64_t{64}});
    keys_ = grown(keys_, length_, capacity);
    values_ = grown(values_, length_, capacity);
  }
  copy_into(k.detach(), tokens_of(keys_, length_, more));
  copy_into(v.detach(), tokens_of(values_, length_, more));
  length_ += more;
}

Tensor KeyValueCache::view(const Tensor& stored) const {
  check(stored.defined(), "cache: it is empty, expected one append before");
  return tokens_of(stored, 0, length_);
}

void KeyValueCache::reorder(std::span<const int64_t> items) {
  check(keys_.defined(), "cache: it is empty, expected one append before");
  for (int64_t item : items) check(item >= 0 && item < keys_.size(0), "cache: item ", item, " of ", keys_.size(0));
  keys_ = reordered(keys_, length_, items);
  values_ = reordered(values_, length_, items);
}

void KeyValueCache::truncate(int64_t length) {
  check(length >= 0 && length <= length_, "cache: truncated to ", length, " tokens, it has ", length_);
  length_ = length;
}

Tensor attention(const Tensor& q, const KeyValueCache& cache, AttentionOptions options) {
  const int64_t queries = q.rank() == 4 ? q.size(2) : 0;
  check(queries <= cache.length(), "attention: ", queries, " queries, the cache has ", cache.length(), " tokens");
  options.first_query = cache.length() - queries;
  return attention(q, cache.keys(), cache.values(), options);
}

}  // namespace heed
