// The loop of sparse_reshape on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../common/index_math.h"
#include "columns.h"

namespace tso {

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
    for (int64_t at = begin; at < end; at += kColumnBlock) {
      const int64_t count = std::min(kColumnBlock, end - at);
      for (const ReshapeStep& step : steps) {
        bad |= run_step(step, at, count);
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

 private:
  const int64_t* read(
      int64_t dim, int64_t at, int64_t count, int64_t* scratch) const {
    return column(indices, nullptr, dim, at, count, scratch);
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
      split(key, keys, out + step.out[d].dim * nnz + at, count,
            step.out[d].divider);
      key = keys;
    }
    std::memcpy(
        out + step.out[0].dim * nnz + at, key, sizeof(int64_t) * count);
    return bad;
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
        quotients[i] = static_cast<int64_t>(
            static_cast<uint64_t>(key) >> divider.shift);
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
