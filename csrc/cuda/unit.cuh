// Values move in units of 1 to 16 bytes, whatever their dtype: the largest that
// divides a row and every address.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/element.h"
#include "cuda/launch.cuh"

namespace tso {

constexpr int kMaxUnit = 16;

template <int kBytes>
struct UnitOf;
template <>
struct UnitOf<1> {
  using Type = uint8_t;
};
template <>
struct UnitOf<2> {
  using Type = uint16_t;
};
template <>
struct UnitOf<4> {
  using Type = uint32_t;
};
template <>
struct UnitOf<8> {
  using Type = uint2;
};
template <>
struct UnitOf<16> {
  using Type = uint4;
};
template <int kBytes>
using Unit = typename UnitOf<kBytes>::Type;

// kCount values of T, loaded and stored at once.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

// Collects addresses and sizes in bytes; unit() divides them all.
class Alignment {
 public:
  Alignment& add(const void* address) {
    bits_ |= reinterpret_cast<uintptr_t>(address);
    return *this;
  }
  Alignment& add(int64_t bytes) {
    bits_ |= static_cast<uintptr_t>(bytes);
    return *this;
  }
  int unit() const {
    return static_cast<int>(bits_ & (~bits_ + 1));
  }

 private:
  uintptr_t bits_ = kMaxUnit;
};

// Calls f with Width<unit>, for a unit of 1 to 16 bytes.
template <typename F>
void dispatch_unit(int unit, F&& f) {
  switch (unit) {
    case 1:
      return f(Width<1>{});
    case 2:
      return f(Width<2>{});
    case 4:
      return f(Width<4>{});
    case 8:
      return f(Width<8>{});
    default:
      return f(Width<16>{});
  }
}

template <typename T>
__device__ __forceinline__ void copy_units(
    T* __restrict__ to, const T* __restrict__ from, int64_t count) {
  for (int64_t first = threadIdx.x; first < count; first += kTile) {
    T held[kItems] = {};
    for (int k = 0; k < kItems; ++k) {
      const int64_t i = first + k * kThreads;
      if (i < count) {
        held[k] = from[i];
      }
    }
    for (int k = 0; k < kItems; ++k) {
      const int64_t i = first + k * kThreads;
      if (i < count) {
        to[i] = held[k];
      }
    }
  }
}

// Copies with all threads of the block. Requires both addresses and the size
// to be multiples of kUnit. Moves 16 bytes at a time where both addresses lie
// alike between multiples of 16.
template <int kUnit>
__device__ __forceinline__ void copy_run(
    char* __restrict__ to, const char* __restrict__ from, int64_t bytes) {
  using Small = Unit<kUnit>;
  using Large = Unit<kMaxUnit>;
  const auto address = reinterpret_cast<uintptr_t>(to);
  const bool alike =
      ((address ^ reinterpret_cast<uintptr_t>(from)) % kMaxUnit) == 0;
  int64_t head = alike ? static_cast<int64_t>((0 - address) % kMaxUnit) : bytes;
  head = head < bytes ? head : bytes;
  const int64_t body = (bytes - head) / kMaxUnit * kMaxUnit;
  const int64_t tail = head + body;
  copy_units(
      reinterpret_cast<Small*>(to), reinterpret_cast<const Small*>(from),
      head / kUnit);
  copy_units(
      reinterpret_cast<Large*>(to + head),
      reinterpret_cast<const Large*>(from + head), body / kMaxUnit);
  copy_units(
      reinterpret_cast<Small*>(to + tail),
      reinterpret_cast<const Small*>(from + tail), (bytes - tail) / kUnit);
}

}  // namespace tso
