// Index arithmetic shared by the CPU and CUDA kernels: plain pointers and
// integers, nothing of torch. Everything is 64-bit; sums and products of
// untrusted coordinates use unsigned arithmetic, which wraps instead of being
// undefined.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define TSO_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TSO_HOST_DEVICE inline
#endif

namespace tso {

// Most sparse dimensions (and dimensions of a dense tensor) a kernel takes.
constexpr int kMaxRank = 64;

// A matrix of coordinates with any strides: coordinate `dim` of entry `entry`.
// row_stride == 1 is torch's layout (one row per dimension).
struct IndexView {
  const int64_t* data;
  int64_t row_stride;
  int64_t dim_stride;

  TSO_HOST_DEVICE int64_t at(int64_t entry, int64_t dim) const {
    return data[entry * row_stride + dim * dim_stride];
  }
};

// True where coordinate lies outside [0, size), negatives included.
TSO_HOST_DEVICE bool out_of_range(int64_t coordinate, int64_t size) {
  return static_cast<uint64_t>(coordinate) >= static_cast<uint64_t>(size);
}

// The sign bit is set exactly where out_of_range is true. Or-ing these over a
// block checks it with additions alone, which the compiler vectorises.
TSO_HOST_DEVICE int64_t range_sign(int64_t coordinate, int64_t size) {
  return coordinate | static_cast<int64_t>(
                          static_cast<uint64_t>(size) - 1 -
                          static_cast<uint64_t>(coordinate));
}

// a * b + c, wrapping.
TSO_HOST_DEVICE int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(
      static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
      static_cast<uint64_t>(c));
}

// Upper half of the 128-bit product.
TSO_HOST_DEVICE uint64_t multiply_high(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
#endif
}

// How many bits it takes to write a number.
inline int bits(uint64_t number) {
  int result = 0;
  for (; number != 0; number >>= 1) {
    ++result;
  }
  return result;
}

// Division of n in [0, 2^63) by a fixed d in [1, 2^63) without a divide:
// with l = ceil(log2(d)) and m = ceil(2^(63 + l) / d) < 2^64, the quotient is
// floor(n * m / 2^(63 + l)) (Granlund and Montgomery). d = 2^l only shifts.
struct Divider {
  int64_t divisor;
  uint64_t magic;  // 0: the divisor is a power of two
  int shift;

  TSO_HOST_DEVICE int64_t quotient(int64_t n) const {
    const uint64_t u = static_cast<uint64_t>(n);
    return static_cast<int64_t>((magic ? multiply_high(u, magic) : u) >> shift);
  }
};

inline Divider make_divider(int64_t divisor) {
  const int log = bits(static_cast<uint64_t>(divisor) - 1);
  if ((uint64_t{1} << log) == static_cast<uint64_t>(divisor)) {
    return {divisor, 0, log};
  }
  const unsigned __int128 power = static_cast<unsigned __int128>(1)
                                  << (63 + log);
  const uint64_t d = static_cast<uint64_t>(divisor);
  return {divisor, static_cast<uint64_t>((power + d - 1) / d), log - 1};
}

// Product of sizes, which are not negative; 0 if any is 0. False when it
// reaches 2^63.
inline bool volume(const int64_t* sizes, int64_t count, int64_t* result) {
  *result = 1;
  for (int64_t i = 0; i < count; ++i) {
    if (sizes[i] == 0) {
      *result = 0;
      return true;
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if (__builtin_mul_overflow(*result, sizes[i], result)) {
      return false;
    }
  }
  return true;
}

// Row-major strides of a shape whose volume is known to fit.
inline void row_major_strides(
    const int64_t* sizes, int64_t count, int64_t* strides) {
  int64_t stride = 1;
  for (int64_t i = count - 1; i >= 0; --i) {
    strides[i] = stride;
    stride = multiply_add(stride, sizes[i] > 0 ? sizes[i] : 1, 0);
  }
}

}  // namespace tso
