// The device-wide algorithms of CUB that csrc/cuda calls, with CUB's interface
// and promises and no more than these: what CUB leaves undefined comes out as
// poison here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cuda_runtime.h"

namespace cub {

template <typename T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;

  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}

  T* Current() {
    return d_buffers[selector];
  }
  T* Alternate() {
    return d_buffers[selector ^ 1];
  }
};

namespace on_host {

// The first of two calls asks for the size of the workspace, the second brings
// it. Returns true when the algorithm is to run.
inline bool take_workspace(
    void* workspace, size_t& bytes, uint64_t items, cudaError_t& error) {
  const size_t needed = 1 + 3 * items;
  error = cudaSuccess;
  if (workspace == nullptr) {
    bytes = needed;
    return false;
  }
  if (bytes < needed) {
    error = cuda_on_host_last_error = cudaErrorInvalidValue;
    return false;
  }
  ++cuda_on_host::counts.device_wide;
  cuda_on_host::poison(workspace, bytes);
  return true;
}

template <typename T>
bool overlap(const DoubleBuffer<T>& buffer, uint64_t items) {
  const auto a = reinterpret_cast<uintptr_t>(buffer.d_buffers[0]);
  const auto b = reinterpret_cast<uintptr_t>(buffer.d_buffers[1]);
  return a < b + items * sizeof(T) && b < a + items * sizeof(T);
}

// Bits [begin, end) of a key.
template <typename Key>
uint64_t radix(Key key, int begin, int end) {
  static_assert(std::is_unsigned_v<Key>, "CUB orders others by more than bits");
  const uint64_t bits = static_cast<uint64_t>(key) >> begin;
  const int count = end - begin;
  return count == 64 ? bits : bits & ((uint64_t{1} << count) - 1);
}

// Puts what order[i] says in place i. The result may come to lie in either
// buffer; the other is then undefined.
template <typename T>
void gather(
    DoubleBuffer<T>& buffer, const std::vector<uint64_t>& order, bool swap) {
  const std::vector<T> copy(buffer.Current(), buffer.Current() + order.size());
  buffer.selector ^= swap ? 1 : 0;
  for (size_t i = 0; i < order.size(); ++i) {
    buffer.Current()[i] = copy[order[i]];
  }
  cuda_on_host::poison(buffer.Alternate(), order.size() * sizeof(T));
}

}  // namespace on_host

struct DeviceRadixSort {
  // Stable; only bits [begin_bit, end_bit) count.
  template <typename Key, typename Value, typename Items>
  static cudaError_t SortPairs(
      void* workspace,
      size_t& bytes,
      DoubleBuffer<Key>& keys,
      DoubleBuffer<Value>& values,
      Items items,
      int begin_bit = 0,
      int end_bit = 8 * sizeof(Key),
      cudaStream_t = nullptr) {
    const auto n = static_cast<uint64_t>(items);
    cudaError_t error;
    if (!on_host::take_workspace(workspace, bytes, n, error)) {
      return error;
    }
    if (begin_bit < 0 || end_bit < begin_bit ||
        end_bit > static_cast<int>(8 * sizeof(Key)) ||
        on_host::overlap(keys, n) || on_host::overlap(values, n)) {
      return cuda_on_host_last_error = cudaErrorInvalidValue;
    }
    std::vector<uint64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    const Key* const key = keys.Current();
    if (begin_bit < end_bit) {
      std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
        return on_host::radix(key[a], begin_bit, end_bit) <
               on_host::radix(key[b], begin_bit, end_bit);
      });
    }
    const bool swap = cuda_on_host::pick(2) == 1;
    on_host::gather(keys, order, swap);
    on_host::gather(values, order, swap);
    return cudaSuccess;
  }
};

}  // namespace cub
