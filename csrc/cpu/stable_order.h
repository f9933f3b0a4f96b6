// The order that sorts entries by their key.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tso {

// The positions of the keys in increasing order, equal keys in theirs: a least
// significant digit first radix sort, every thread dealing out a share of each
// pass. Digits above the largest key are not looked at.
template <typename Parallel>
std::vector<int64_t> stable_order(
    const Parallel& parallel, std::vector<uint64_t> keys) {
  constexpr int kDigitBits = 8;
  constexpr int64_t kDigits = int64_t{1} << kDigitBits;
  const int64_t count = static_cast<int64_t>(keys.size());
  const int64_t threads = parallel.threads;
  const int64_t share = (count + threads - 1) / threads;
  uint64_t used = 0;
  std::vector<int64_t> order(count);
  for (int64_t i = 0; i < count; ++i) {
    used |= keys[i];
    order[i] = i;
  }
  std::vector<uint64_t> next_keys(count);
  std::vector<int64_t> next_order(count);
  std::vector<int64_t> positions(threads * kDigits);
  for (int shift = 0; shift < 64 && used >> shift; shift += kDigitBits) {
    const auto digit = [&](int64_t i) {
      return static_cast<int64_t>((keys[i] >> shift) & (kDigits - 1));
    };
    positions.assign(threads * kDigits, 0);
    parallel.each_thread([&](int64_t thread) {
      int64_t* counts = positions.data() + thread * kDigits;
      const int64_t end =
          share * (thread + 1) < count ? share * (thread + 1) : count;
      for (int64_t i = share * thread; i < end; ++i) {
        ++counts[digit(i)];
      }
    });
    int64_t position = 0;
    for (int64_t d = 0; d < kDigits; ++d) {
      for (int64_t thread = 0; thread < threads; ++thread) {
        int64_t& cell = positions[thread * kDigits + d];
        std::swap(cell, position);
        position += cell;
      }
    }
    parallel.each_thread([&](int64_t thread) {
      int64_t* next = positions.data() + thread * kDigits;
      const int64_t end =
          share * (thread + 1) < count ? share * (thread + 1) : count;
      for (int64_t i = share * thread; i < end; ++i) {
        const int64_t to = next[digit(i)]++;
        next_keys[to] = keys[i];
        next_order[to] = order[i];
      }
    });
    keys.swap(next_keys);
    order.swap(next_order);
  }
  return order;
}

}  // namespace tso
