// The loop of sparse_reshape on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../common/index_math.h"
#include "columns.h"
#include "reshape_lanes.h"
#include "simd.h"

namespace tso {

// Division of n in [0, 2^31) as Divider does it, with 32-bit operands, of which
// a vector holds twice as many: the quotient is n * magic >> shift.
struct NarrowDivider {
  static constexpr uint32_t kPower = uint32_t{1} << 31;

  uint32_t divisor;
  uint32_t magic;  // kPower exactly if the divisor is a power of two
  int shift;
};

inline NarrowDivider make_narrow_divider(int64_t divisor) {
  const uint64_t d = static_cast<uint64_t>(divisor);
  const int log = bits(d - 1);
  const uint64_t magic = ((uint64_t{1} << (31 + log)) + d - 1) / d;
  return {static_cast<uint32_t>(d), static_cast<uint32_t>(magic), 31 + log};
}

// Reads coordinates of a group of input dimensions and writes those of the
// target dimensions that hold the same elements.
struct ReshapeStep {
  struct In {
    int64_t dim;
    int64_t size;
  };
  struct Out {
    int64_t dim;
    Divider divider;
  };
  std::vector<In> in;
  std::vector<Out> out;
  bool narrow = false;                  // fewer than 2^31 elements
  std::vector<NarrowDivider> dividers;  // of out, if narrow

  // Once in and out are filled.
  void choose_width() {
    int64_t elements = 1;
    for (const In& dim : in) {
      elements *= dim.size;
    }
    narrow = elements <= int64_t{1} << 31 && in.size() + out.size() > 2;
    for (size_t d = 0; narrow && d < out.size(); ++d) {
      dividers.push_back(make_narrow_divider(out[d].divider.divisor));
    }
  }
};

struct ReshapeKernel {
  IndexView indices{};
  int64_t* out = nullptr;  // one row of nnz per target dimension
  int64_t nnz = 0;
  std::vector<ReshapeStep> steps;
  std::vector<ReshapeStep::In> ones;  // input dimensions of size 1
  std::vector<int64_t> zero_dims;     // target dimensions of size 1

  // Writes the target coordinates of entries [begin, end). The sign bit of the
  // result is set if any coordinate read lies outside its size; what is
  // written is then unspecified.
  int64_t run(int64_t begin, int64_t end) const {
    int64_t bad = 0;
    call_simd([&] { bad = run_blocks(begin, end); });
    return bad;
  }

 private:
  int64_t run_blocks(int64_t begin, int64_t end) const {
    int64_t bad = 0;
    for (int64_t at = begin; at < end; at += kColumnBlock) {
      const int64_t count = std::min(kColumnBlock, end - at);
      for (const ReshapeStep& step : steps) {
        bad |= step.narrow ? run_narrow_step(step, at, count)
                           : run_step(step, at, count);
      }
      for (const ReshapeStep::In& one : ones) {
        int64_t scratch[kColumnBlock];
        bad |= check(read(one.dim, at, count, scratch), count, one.size);
      }
      for (int64_t dim : zero_dims) {
        std::fill_n(out + dim * nnz + at, count, int64_t{0});
      }
    }
    return bad;
  }

  const int64_t* read(
      int64_t dim, int64_t at, int64_t count, int64_t* scratch) const {
    return column(indices, dim, at, count, scratch);
  }

  static int64_t check(const int64_t* in, int64_t count, int64_t size) {
    int64_t bad = 0;
    for (int64_t i = 0; i < count; ++i) {
      bad |= range_sign(in[i], size);
    }
    return bad;
  }

  int64_t run_step(const ReshapeStep& step, int64_t at, int64_t count) const {
    int64_t scratch[kColumnBlock];
    int64_t keys[kColumnBlock];
    const int64_t* key = read(step.in[0].dim, at, count, scratch);
    int64_t bad = 0;
    if (step.in.size() == 1 && step.out.size() == 1) {
      int64_t* target = out + step.out[0].dim * nnz + at;
      for (int64_t i = 0; i < count; ++i) {
        bad |= range_sign(key[i], step.in[0].size);
        target[i] = key[i];
      }
      return bad;
    }
    bad |= check(key, count, step.in[0].size);
    for (size_t d = 1; d < step.in.size(); ++d) {
      int64_t buffer[kColumnBlock];
      const int64_t size = step.in[d].size;
      const int64_t* in = read(step.in[d].dim, at, count, buffer);
      for (int64_t i = 0; i < count; ++i) {
        bad |= range_sign(in[i], size);
        keys[i] = multiply_add(key[i], size, in[i]);
      }
      key = keys;
    }
    for (size_t d = step.out.size() - 1; d > 0; --d) {
      split(
          key, keys, out + step.out[d].dim * nnz + at, count,
          step.out[d].divider);
      key = keys;
    }
    std::memcpy(out + step.out[0].dim * nnz + at, key, sizeof(int64_t) * count);
    return bad;
  }

#ifdef TSO_RESHAPE_LANES
  // Steps through the first `count` entries, a multiple of Lanes::kEntries, and
  // all dimensions at once: keys stay in registers.
  [[gnu::target("avx2")]] int64_t run_lanes(
      const ReshapeStep& step, int64_t at, int64_t count) const {
    // Local, so that the stores cannot change them.
    const ReshapeStep::In* const in = step.in.data();
    const ReshapeStep::Out* const target = step.out.data();
    const NarrowDivider* const dividers = step.dividers.data();
    const size_t in_rank = step.in.size();
    const size_t last = step.out.size() - 1;
    const int64_t in_stride = indices.dim_stride;
    const int64_t out_stride = nnz;
    const int64_t* from = indices.data + at;
    int64_t* to = out + at;
    Lanes::Vector signs = {};
    for (int64_t i = 0; i < count; i += Lanes::kEntries) {
      Lanes key;
      key.load(from + in[0].dim * in_stride + i);
      key.check(in[0].size, signs);
      for (size_t d = 1; d < in_rank; ++d) {
        Lanes next;
        next.load(from + in[d].dim * in_stride + i);
        next.check(in[d].size, signs);
        key.append(in[d].size, next);
      }
      for (size_t d = last; d > 0; --d) {
        key.split(
            dividers[d].divisor, dividers[d].magic, dividers[d].shift,
            to + target[d].dim * out_stride + i);
      }
      key.store(to + target[0].dim * out_stride + i);
    }
    return static_cast<int64_t>(signs[0] | signs[1] | signs[2] | signs[3]);
  }
#endif

  int64_t run_narrow_step(
      const ReshapeStep& step, int64_t at, int64_t count) const {
    int64_t bad = 0;
#ifdef TSO_RESHAPE_LANES
    if (indices.row_stride == 1 && has_avx2()) {
      const int64_t whole = count / Lanes::kEntries * Lanes::kEntries;
      bad |= run_lanes(step, at, whole);
      at += whole;
      count -= whole;
    }
#endif
    uint32_t keys[kColumnBlock];
    for (size_t d = 0; d < step.in.size(); ++d) {
      int64_t scratch[kColumnBlock];
      const int64_t size = step.in[d].size;
      const int64_t* in = read(step.in[d].dim, at, count, scratch);
      const uint32_t multiplier = d > 0 ? static_cast<uint32_t>(size) : 0;
      if (d == 0) {
        for (int64_t i = 0; i < count; ++i) {
          bad |= range_sign(in[i], size);
          keys[i] = static_cast<uint32_t>(in[i]);
        }
      } else {
        for (int64_t i = 0; i < count; ++i) {
          bad |= range_sign(in[i], size);
          keys[i] = keys[i] * multiplier + static_cast<uint32_t>(in[i]);
        }
      }
    }
    for (size_t d = step.out.size() - 1; d > 0; --d) {
      split_narrow(
          keys, out + step.out[d].dim * nnz + at, count, step.dividers[d]);
    }
    int64_t* target = out + step.out[0].dim * nnz + at;
    for (int64_t i = 0; i < count; ++i) {
      target[i] = static_cast<int64_t>(keys[i]);
    }
    return bad;
  }

  // Turns keys into their quotients.
  static void split_narrow(
      uint32_t* keys,
      int64_t* remainders,
      int64_t count,
      const NarrowDivider& divider) {
    const uint32_t divisor = divider.divisor;
    if (divider.magic == NarrowDivider::kPower) {
      const int shift = divider.shift - 31;
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t key = keys[i];
        remainders[i] = static_cast<int64_t>(key & (divisor - 1));
        keys[i] = key >> shift;
      }
      return;
    }
    const uint32_t magic = divider.magic;
    const int shift = divider.shift - 32;  // of the upper half of the product
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t key = keys[i];
      const uint32_t high =
          static_cast<uint32_t>((uint64_t{key} * uint64_t{magic}) >> 32);
      const uint32_t quotient = high >> shift;
      remainders[i] = static_cast<int64_t>(key - quotient * divisor);
      keys[i] = quotient;
    }
  }

  // quotients may be the keys themselves.
  static void split(
      const int64_t* keys,
      int64_t* quotients,
      int64_t* remainders,
      int64_t count,
      const Divider& divider) {
    if (divider.magic == 0) {
      const int64_t mask = divider.divisor - 1;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t key = keys[i];
        remainders[i] = key & mask;
        quotients[i] =
            static_cast<int64_t>(static_cast<uint64_t>(key) >> divider.shift);
      }
      return;
    }
    const uint64_t magic = divider.magic;
    const int shift = divider.shift;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t key = keys[i];
      const int64_t quotient = static_cast<int64_t>(
          multiply_high(static_cast<uint64_t>(key), magic) >> shift);
      remainders[i] = multiply_add(quotient, -divider.divisor, key);
      quotients[i] = quotient;
    }
  }
};

}  // namespace tso
