// Vectors of keys in sparse_reshape, for processors with AVX2.
#pragma once

#include <cstdint>
#include <cstring>

#include "simd.h"

// Tried with GCC alone, whose name for the multiplication this is.
#if TSO_SIMD_CLONES && !defined(__clang__)
#define TSO_RESHAPE_LANES 1
#endif

#ifdef TSO_RESHAPE_LANES
namespace tso {

// Sixteen keys below 2^32, in lanes of 64 bits. The upper halves of the factors
// are zero, which the compiler does not know, and coordinates need no widening,
// as they would from lanes of 32 bits: 1.2 to 1.7 times as fast.
struct Lanes {
  using Vector = uint64_t __attribute__((vector_size(32)));
  using Halves = int __attribute__((vector_size(32)));

  static constexpr int kVectors = 4;
  static constexpr int64_t kEntries = 16;

  Vector v[kVectors];

  [[gnu::target("avx2")]] static Vector splat(uint64_t x) {
    return Vector{x, x, x, x};
  }
  // Of the lower halves of the lanes.
  [[gnu::target("avx2")]] static Vector product(
      const Vector& a, const Vector& b) {
    return reinterpret_cast<Vector>(__builtin_ia32_pmuludq256(
        reinterpret_cast<Halves>(a), reinterpret_cast<Halves>(b)));
  }
  [[gnu::target("avx2")]] void load(const int64_t* from) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      std::memcpy(&v[i], from + 4 * i, sizeof(Vector));
    }
  }
  [[gnu::target("avx2")]] void store(int64_t* to) const {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      std::memcpy(to + 4 * i, &v[i], sizeof(Vector));
    }
  }
  // Or-s what range_sign tells of each into signs.
  [[gnu::target("avx2")]] void check(int64_t size, Vector& signs) const {
    const Vector last = splat(static_cast<uint64_t>(size) - 1);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      signs |= v[i] | (last - v[i]);
    }
  }
  // Becomes itself * size + x.
  [[gnu::target("avx2")]] void append(int64_t size, const Lanes& x) {
    const Vector factor = splat(static_cast<uint64_t>(size));
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      v[i] = product(v[i], factor) + x.v[i];
    }
  }
  // Becomes its quotient by the divisor; stores the remainder.
  [[gnu::target("avx2")]] void split(
      uint64_t divisor, uint64_t magic, int shift, int64_t* remainder) {
    const Vector by = splat(divisor);
    const Vector factor = splat(magic);
    Lanes rest;
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const Vector quotient = product(v[i], factor) >> shift;
      rest.v[i] = v[i] - product(quotient, by);
      v[i] = quotient;
    }
    rest.store(remainder);
  }
};

}  // namespace tso
#endif
