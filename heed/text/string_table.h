// A hash table from strings to numbers for many short lookups: one byte arena, open addressing, no erase.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/api.h"

namespace HEED_API heed {
namespace text {

inline uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = 0x9E3779B97F4A7C15u ^ bytes.size();
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  };
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
  }
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  mix(rest);
  mix(0);
  return hash;
}

class StringTable {
 public:
  StringTable() { clear(); }

  size_t size() const { return count_; }
  void clear() {
    slots_.assign(64, {});
    bytes_.clear();
    count_ = 0;
  }
  // The value of a string, or -1.
  int32_t find(std::string_view key) const { return slots_[slot_of(key, hash_bytes(key))].value; }

  // False if the string is already present; nothing changes. Values are not negative.
  bool insert(std::string_view key, int32_t value) {
    if (2 * count_ >= slots_.size()) grow();
    const uint64_t hash = hash_bytes(key);
    Slot& slot = slots_[slot_of(key, hash)];
    if (slot.value >= 0) return false;
    slot = {static_cast<uint32_t>(hash >> 32), value, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(key.size())};
    bytes_.append(key);
    ++count_;
    return true;
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t value = -1;
    uint32_t begin = 0, size = 0;
  };

  size_t slot_of(std::string_view key, uint64_t hash) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    size_t i = hash & (slots_.size() - 1);
    while (slots_[i].value >= 0) {
      const Slot& slot = slots_[i];
      if (slot.hash == tag && slot.size == key.size() && std::memcmp(bytes_.data() + slot.begin, key.data(), key.size()) == 0) break;
      i = (i + 1) & (slots_.size() - 1);
    }
    return i;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.value >= 0) {
        const std::string_view key(bytes_.data() + slot.begin, slot.size);
        slots_[slot_of(key, hash_bytes(key))] = slot;
      }
  }

  std::vector<Slot> slots_;
  std::string bytes_;
  size_t count_ = 0;
};

}  // namespace text
}  // namespace heed
