// A hash table from 64-bit keys to small values, e.g. token pair -> merge, (trie node, byte) -> child node.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::text {

template <class Value>
class NumberTable {
 public:
  NumberTable() : slots_(64) {}

  const Value* find(uint64_t key) const {
    const Slot& slot = slots_[slot_of(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  // Inserts a default value for a new key. UINT64_MAX is not a valid key.
  Value& operator[](uint64_t key) {
    if (2 * count_ >= slots_.size()) grow();
    Slot& slot = slots_[slot_of(key)];
    if (slot.key != key) {
      slot.key = key;
      ++count_;
    }
    return slot.value;
  }
  size_t size() const { return count_; }

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Value value{};
  };

  size_t slot_of(uint64_t key) const {
    size_t i = (key * 0x9E3779B97F4A7C15u ^ key >> 29) * 0xD6E8FEB86659FD93u >> 20 & (slots_.size() - 1);
    while (slots_[i].key != key && slots_[i].key != UINT64_MAX) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != UINT64_MAX) slots_[slot_of(slot.key)] = slot;
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace heed::text
