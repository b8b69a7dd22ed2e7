// Where a tensor's data lives. The kinds are known when heed is built.
#pragma once

#include <cstdint>

namespace heed {

struct Device {
  enum class Kind : uint8_t { cpu, cuda };
  Kind kind = Kind::cpu;
  int8_t index = 0;

  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{};

}  // namespace heed
