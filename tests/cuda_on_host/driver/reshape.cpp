#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/sparse_reshape_kernel.cuh"
#include "driver/driver.h"

namespace driver {

namespace {

// The same product, as the sizes of some dimensions.
std::vector<int64_t> split(
    Random& random, const std::vector<int64_t>& factors) {
  std::vector<int64_t> order = factors;
  for (size_t i = 1; i < order.size(); ++i) {
    std::swap(order[i], order[random.between(0, static_cast<int64_t>(i) + 1)]);
  }
  std::vector<int64_t> sizes{order[0]};
  for (size_t i = 1; i < order.size(); ++i) {
    if (random.one_in(2)) {
      sizes.push_back(order[i]);
    } else {
      sizes.back() *= order[i];
    }
  }
  return sizes;
}

struct Shapes {
  std::vector<int64_t> input;
  std::vector<int64_t> target;
};

void append_ones(Random& random, std::vector<int64_t>& sizes) {
  while (random.one_in(4)) {
    sizes.push_back(1);
  }
}

// Groups of dimensions that hold the same elements on both sides, some of size
// 1 in between.
Shapes fill_shapes(Random& random, tso::ReshapeKernel& kernel) {
  Shapes shapes;
  int64_t volume = 1;
  int in = 0;
  int out = 0;
  const int64_t groups = random.between(0, 4);
  for (int64_t group = 0; group < groups; ++group) {
    append_ones(random, shapes.input);
    append_ones(random, shapes.target);
    std::vector<int64_t> factors;
    const int64_t count = random.between(1, 5);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t factor = random.any_of<int64_t>(
          {2, 3, 4, 7, 10, 1 << 16, (1 << 20) + 7, (int64_t{1} << 31) - 1});
      if (!__builtin_mul_overflow(volume, factor, &volume)) {
        factors.push_back(factor);
      } else {
        volume = INT64_MAX;
      }
    }
    if (factors.empty()) {
      break;
    }
    for (int64_t size : split(random, factors)) {
      kernel.in_sizes[in] = size;
      kernel.in_dims[in++] = static_cast<uint8_t>(shapes.input.size());
      shapes.input.push_back(size);
    }
    for (int64_t size : split(random, factors)) {
      kernel.out_dividers[out] = tso::make_divider(size);
      kernel.out_dims[out++] = static_cast<uint8_t>(shapes.target.size());
      shapes.target.push_back(size);
    }
    kernel.in_ends[kernel.steps] = static_cast<uint8_t>(in);
    kernel.out_ends[kernel.steps++] = static_cast<uint8_t>(out);
  }
  append_ones(random, shapes.target);
  for (size_t dim = 0; dim < shapes.target.size(); ++dim) {
    if (shapes.target[dim] == 1) {
      kernel.zero_dims[kernel.zeros++] = static_cast<uint8_t>(dim);
    }
  }
  return shapes;
}

}  // namespace

void check_reshape(Random& random, Size size) {
  tso::ReshapeKernel kernel;
  const Shapes shapes = fill_shapes(random, kernel);
  const auto rank = static_cast<int64_t>(shapes.input.size());
  const auto target_rank = static_cast<int64_t>(shapes.target.size());
  const int64_t nnz = random.between(0, some_count(random, size));

  // One row per dimension, one row per entry, or with gaps in both.
  const int64_t layout = random.between(0, 3);
  const int64_t row_stride = layout == 0 ? 1 : layout == 1 ? rank : 2;
  const int64_t dim_stride = layout == 0 ? nnz : layout == 1 ? 1 : 2 * nnz + 3;
  const int64_t last =
      nnz * rank == 0 ? 0
                      : (nnz - 1) * row_stride + (rank - 1) * dim_stride + 1;
  const Memory<int64_t> indices(last, random.any_of({0, 8}));
  const Memory<int64_t> out(nnz * target_rank, random.any_of({0, 8}));

  std::vector<int64_t> wanted(static_cast<size_t>(out.count()));
  for (int64_t entry = 0; entry < nnz; ++entry) {
    unsigned __int128 place = 0;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t coordinate = random.between(0, shapes.input[d]);
      indices[entry * row_stride + d * dim_stride] = coordinate;
      place = place * static_cast<uint64_t>(shapes.input[d]) +
              static_cast<uint64_t>(coordinate);
    }
    for (int64_t d = target_rank - 1; d >= 0; --d) {
      const auto divisor = static_cast<uint64_t>(shapes.target[d]);
      wanted[d * nnz + entry] = static_cast<int64_t>(place % divisor);
      place /= divisor;
    }
  }

  kernel.indices = {indices.data(), row_stride, dim_stride};
  kernel.out = out.data();
  kernel.nnz = nnz;
  tso::launch_sparse_reshape(kernel, nullptr);
  for (int64_t i = 0; i < out.count(); ++i) {
    check(
        out[i] == wanted[i], "dimension ", i / nnz, " of entry ", i % nnz,
        " of ", nnz, " is ", out[i], " instead of ", wanted[i]);
  }
}

}  // namespace driver
