// Key-value caches whose memory is taken page by page, when a page is first written.
#pragma once

#include <cstdint>

#include "heed/attention/cache.h"

namespace heed {

int64_t page_bytes();

// A cache of one item with room for that many tokens, so that it grows to them without copies. On the CPU it reserves address space; pages
// take memory when tokens are written, and all are freed with the cache. So the keys of a head are contiguous, and kernels need no table of
// blocks: the page table of the processor does its work. keys, values: (1, G, n, D) and (1, G, n, E), the first tokens; n may be 0
KeyValueCache reserved_cache(const Tensor& keys, const Tensor& values, int64_t tokens);

namespace detail {
// Storage for a cache whose first append runs in this thread inside reserved_cache(): (B, G, tokens, width); else undefined.
Tensor reserved_storage(const Tensor& x);
}  // namespace detail

}  // namespace heed
