// What device code may call: indices, barriers, warp primitives, atomics and
// bit operations.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "scheduler.h"

inline const uint3& threadIdx = cuda_on_host::position.thread;
inline const uint3& blockIdx = cuda_on_host::position.block;
inline const dim3& blockDim = cuda_on_host::position.block_dim;
inline const dim3& gridDim = cuda_on_host::position.grid_dim;
constexpr int warpSize = 32;

using std::max;
using std::min;

namespace cuda_on_host {

template <typename T, typename... Ts>
concept OneOf = (std::same_as<T, Ts> || ...);

// What the overloads of CUDA's shuffles take, but for 2-byte floats.
template <typename T>
concept Shuffled = OneOf<
    T,
    int,
    unsigned,
    long,
    unsigned long,
    long long,
    unsigned long long,
    float,
    double>;

inline unsigned lane() {
  return position.thread_number % 32;
}

template <typename T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline void meet_block(
    uint64_t value, const char* what, const char* file, int line) {
  meet(Scope::kBlock, ~0u, value, what, file, line);
}

inline void meet_warp(
    unsigned lanes,
    uint64_t value,
    const char* what,
    const char* file,
    int line) {
  if ((lanes >> lane() & 1) == 0) {
    fail(
        std::string(what) + ": lane " + std::to_string(lane()) +
            " is not in its own mask",
        file, line);
  }
  meet(Scope::kWarp, lanes, value, what, file, line);
}

// A lane outside the mask, or that does not exist, has brought poison.
template <typename T>
T shuffle(
    unsigned lanes,
    T value,
    int source,
    const char* what,
    const char* file,
    int line) {
  meet_warp(lanes, to_bits(value), what, file, line);
  return from_bits<T>(brought_by(static_cast<unsigned>(source)));
}

inline unsigned lanes_that_brought(uint64_t bits, unsigned mask) {
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i) {
    result |= brought_by(i) == bits ? 1u << i : 0;
  }
  return result & mask;
}

inline unsigned block_size() {
  return blockDim.x * blockDim.y * blockDim.z;
}

}  // namespace cuda_on_host

// Where the call stands, for the messages and to tell one call from another.
#define CUDA_ON_HOST_PLACE \
  const char *file = __builtin_FILE(), int line = __builtin_LINE()

// ---- Barriers ----

inline void __syncthreads(CUDA_ON_HOST_PLACE) {
  cuda_on_host::meet_block(0, "__syncthreads", file, line);
}

inline int __syncthreads_count(int predicate, CUDA_ON_HOST_PLACE) {
  cuda_on_host::meet_block(predicate != 0, "__syncthreads_count", file, line);
  int count = 0;
  for (unsigned i = 0; i < cuda_on_host::block_size(); ++i) {
    count += static_cast<int>(cuda_on_host::brought_by(i));
  }
  return count;
}

inline int __syncthreads_or(int predicate, CUDA_ON_HOST_PLACE) {
  return __syncthreads_count(predicate, file, line) > 0;
}

inline int __syncthreads_and(int predicate, CUDA_ON_HOST_PLACE) {
  return __syncthreads_count(predicate == 0, file, line) == 0;
}

inline void __syncwarp(unsigned mask = ~0u, CUDA_ON_HOST_PLACE) {
  cuda_on_host::meet_warp(mask, 0, "__syncwarp", file, line);
}

// ---- Warp primitives ----

inline unsigned __ballot_sync(
    unsigned mask, int predicate, CUDA_ON_HOST_PLACE) {
  cuda_on_host::meet_warp(mask, predicate != 0, "__ballot_sync", file, line);
  return cuda_on_host::lanes_that_brought(1, mask);
}

template <cuda_on_host::Shuffled T>
T __shfl_sync(
    unsigned mask, T value, int source, int width = 32, CUDA_ON_HOST_PLACE) {
  const int lane = static_cast<int>(cuda_on_host::lane());
  const int first = lane & ~(width - 1);
  return cuda_on_host::shuffle(
      mask, value, first | (source & (width - 1)), "__shfl_sync", file, line);
}

template <cuda_on_host::Shuffled T>
T __shfl_up_sync(
    unsigned mask,
    T value,
    unsigned delta,
    int width = 32,
    CUDA_ON_HOST_PLACE) {
  const int lane = static_cast<int>(cuda_on_host::lane());
  const int source = lane - static_cast<int>(delta);
  return cuda_on_host::shuffle(
      mask, value, source < (lane & ~(width - 1)) ? lane : source,
      "__shfl_up_sync", file, line);
}

template <cuda_on_host::Shuffled T>
T __shfl_down_sync(
    unsigned mask,
    T value,
    unsigned delta,
    int width = 32,
    CUDA_ON_HOST_PLACE) {
  const int lane = static_cast<int>(cuda_on_host::lane());
  const int source = lane + static_cast<int>(delta);
  return cuda_on_host::shuffle(
      mask, value, source > (lane | (width - 1)) ? lane : source,
      "__shfl_down_sync", file, line);
}

template <cuda_on_host::Shuffled T>
T __shfl_xor_sync(
    unsigned mask, T value, int lane_mask, int width = 32, CUDA_ON_HOST_PLACE) {
  const int lane = static_cast<int>(cuda_on_host::lane());
  const int source = lane ^ lane_mask;
  return cuda_on_host::shuffle(
      mask, value, source > (lane | (width - 1)) ? lane : source,
      "__shfl_xor_sync", file, line);
}

#undef CUDA_ON_HOST_PLACE

// ---- Atomics: on CUDA's own types only, so that int64_t (a long) is refused
// as nvcc refuses it, and on integers only, which keeps results the same ----

namespace cuda_on_host {

template <typename T, typename F>
T update(T* address, F&& f) {
  maybe_yield();
  std::atomic_ref<T> reference(*address);
  T old = reference.load(std::memory_order_relaxed);
  while (!reference.compare_exchange_weak(
      old, f(old), std::memory_order_relaxed)) {}
  maybe_yield();
  return old;
}

template <typename T>
concept Word = OneOf<T, int, unsigned, unsigned long long>;
template <typename T>
concept WordOrLongLong = Word<T> || std::same_as<T, long long>;

}  // namespace cuda_on_host

template <cuda_on_host::Word T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::update(address, [&](T old) {
    return static_cast<T>(
        static_cast<unsigned long long>(old) +
        static_cast<unsigned long long>(value));
  });
}

template <cuda_on_host::Word T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::update(address, [&](T) { return value; });
}

template <cuda_on_host::Word T>
T atomicCAS(
    T* address,
    std::type_identity_t<T> expected,
    std::type_identity_t<T> value) {
  return cuda_on_host::update(
      address, [&](T old) { return old == expected ? value : old; });
}

template <cuda_on_host::WordOrLongLong T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::update(
      address, [&](T old) { return old < value ? value : old; });
}

template <cuda_on_host::WordOrLongLong T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::update(
      address, [&](T old) { return value < old ? value : old; });
}

// ---- Memory and bits ----

template <typename T>
T __ldg(const T* address) {
  return *address;
}
// Loads past the first-level cache, where atomics write: the load to look with
// before an atomic.
template <typename T>
T __ldcg(const T* address) {
  if constexpr (cuda_on_host::WordOrLongLong<T>) {
    cuda_on_host::maybe_yield();
    const T value = std::atomic_ref<T>(*const_cast<T*>(address))
                        .load(std::memory_order_relaxed);
    cuda_on_host::maybe_yield();
    return value;
  } else {
    return *address;
  }
}

inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline unsigned long long __umul64hi(
    unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(
      (static_cast<unsigned __int128>(a) * b) >> 64);
}
