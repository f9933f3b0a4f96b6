// The ways of tensor_scatter_update and its gradients on the CPU, and which of
// them is taken.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "../common/scatter_plan.h"
#include "parallel.h"
#include "tensor_scatter_update_kernel.h"

namespace tso {

// Calls f(rows) with the index matrix in the type of its elements.
template <typename F>
void with_rows(const ScatterPlan& plan, const Tensor& indices, const F& f) {
  std::vector<int64_t> strides(plan.depth);
  row_major_strides(plan.sizes.data(), plan.depth, strides.data());
  with_index_matrix(
      indices, [&](auto* data, int64_t row_stride, int64_t dim_stride) {
        f(ScatterRows<
            std::remove_const_t<std::remove_pointer_t<decltype(data)>>>{
            data, row_stride, dim_stride, plan.depth, plan.sizes.data(),
            strides.data()});
      });
}

template <typename Index>
[[noreturn]] void fail_bad_row(
    const char* op,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    int64_t row) {
  std::vector<int64_t> coordinates(plan.depth);
  for (int64_t d = 0; d < plan.depth; ++d) {
    coordinates[d] = rows.data[row * rows.row_stride + d * rows.dim_stride];
  }
  fail_row(op, plan, coordinates, row);
}

// Throws for the first row out of bounds unless the policy ignores them.
template <typename Index>
void check_rows(
    const char* op, const ScatterPlan& plan, const ScatterRows<Index>& rows) {
  if (plan.policy == BadIndices::kIgnore) {
    return;
  }
  const int64_t bad = find_bad_row(rows, plan.rows);
  if (bad >= 0) {
    fail_bad_row(op, plan, rows, bad);
  }
}

// Work that one thread does alone: rows of a tensor that its cache holds, or so
// few that waking another takes longer.
constexpr int64_t kAloneBytes = int64_t{1} << 20;

// Whether rows are written one after the other, and not dealt out first. A row
// costs about as much as moving 64 bytes besides its own. A partition gains
// less where one thread does it all: 4 MB of scalars take 1.4 to 1.8 times as
// long with it.
inline bool in_order(const ScatterPlan& plan) {
  const int64_t near =
      torch::stable::get_num_threads() > 1 ? kAloneBytes : 8 * kAloneBytes;
  return plan.slices * plan.slice_bytes <= near ||
         plan.rows * (2 * plan.slice_bytes + 64) <= kAloneBytes;
}

// Calls f(partition) with rows made into entries by make(row, slice). `like`
// says where memory for them comes from.
template <typename Entry, typename Index, typename Make, typename F>
void with_partition(
    const Parallel& parallel,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const Meta& like,
    const Make& make,
    const F& f) {
  const Tensor scratch = allocate(
      like, aoti_torch_dtype_uint8(),
      {plan.rows * static_cast<int64_t>(sizeof(Entry))});
  f(partition_rows(
      parallel, rows, plan.rows, plan.slices, plan.slice_bytes,
      mutable_data<Entry>(scratch), make));
}

// The same with entries that name the row.
template <typename Index, typename F>
void with_numbered_rows(
    const Parallel& parallel,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const Meta& like,
    const F& f) {
  const auto call = [&](auto position) {
    using Position = decltype(position);
    with_partition<NumberedRow<Position>>(
        parallel, plan, rows, like,
        [](int64_t row, uint32_t slice) {
          return NumberedRow<Position>{static_cast<Position>(row), slice};
        },
        f);
  };
  if (plan.rows <= std::numeric_limits<uint32_t>::max()) {
    call(uint32_t{});
  } else {
    call(uint64_t{});
  }
}

// Calls f(block, scratch) for every block. Threads begin far from each other:
// the first one to touch a huge page clears it, and the second would wait.
template <typename F>
void each_block(const Parallel& parallel, int64_t blocks, const F& f) {
  const int64_t threads = parallel.threads;
  const int64_t share = (blocks + threads - 1) / threads;
  parallel.each_task<NamedSlices>(
      share * threads, [&](int64_t task, NamedSlices& named) {
        const int64_t block = task % threads * share + task / threads;
        if (block < blocks) {
          f(block, named);
        }
      });
}

inline void copy_bytes(const Parallel& parallel, const ScatterTarget& target) {
  parallel.each_range(
      target.slices * target.slice_bytes, [&](int64_t begin, int64_t end) {
        std::memcpy(target.out + begin, target.tensor + begin, end - begin);
      });
}

// Fewer slices than this for a thread are hardly shares of one size.
constexpr int64_t kLeastShare = 16;

// Writes what the target held before and the rows over it, the last one to
// name a slice on top. If the policy throws, nothing is written where the
// tensor was.
template <typename Index>
void update(
    const char* op,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const ScatterTarget& target,
    const Meta& like) {
  const auto check = [&](int64_t bad) {
    if (bad >= 0 && plan.policy != BadIndices::kIgnore) {
      fail_bad_row(op, plan, rows, bad);
    }
  };
  const int64_t tensor_bytes = plan.slices * plan.slice_bytes;
  if (plan.slice_bytes == 0 || in_order(plan)) {
    // A result that nobody has seen may be written first and thrown away.
    if (target.tensor == nullptr || plan.slice_bytes == 0) {
      check_rows(op, plan, rows);
    }
    const Parallel parallel = Parallel::for_bytes(
        target.tensor == nullptr || tensor_bytes <= kAloneBytes
            ? 0
            : 2 * tensor_bytes);
    dispatch_width(plan.slice_bytes, [&](auto width) {
      if (parallel.threads > 1 &&
          plan.slices >= kLeastShare * parallel.threads) {
        check(update_shares<width()>(parallel, rows, plan.rows, target));
        return;
      }
      if (target.tensor != nullptr) {
        copy_bytes(parallel, target);
      }
      check(
          update_rows<width()>(rows, plan.slice_bytes ? plan.rows : 0, target));
    });
    return;
  }
  const Parallel parallel = Parallel::for_bytes(
      (target.tensor != nullptr ? 2 * tensor_bytes : 0) +
      plan.rows * (2 * plan.slice_bytes + 16));
  dispatch_width(plan.slice_bytes, [&](auto width) {
    const auto write = [&](const auto& partition) {
      check(partition.first_bad);
      each_block(
          parallel, partition.blocks, [&](int64_t block, NamedSlices& named) {
            update_block<width()>(partition, block, target, named);
          });
    };
    if (target.updates == nullptr) {
      with_partition<NamedSlice>(
          parallel, plan, rows, like,
          [](int64_t, uint32_t slice) { return NamedSlice{slice}; }, write);
    } else if constexpr (carried(width())) {
      using Value = Carrier<width()>;
      using Entry = CarriedUpdate<Value>;
      with_partition<Entry>(
          parallel, plan, rows, like,
          [updates = target.updates](int64_t row, uint32_t slice) {
            Value value;
            Entry entry;
            std::memcpy(&value, updates + row * sizeof(value), sizeof(value));
            entry.value = value;
            entry.slice = slice;
            return entry;
          },
          write);
    } else {
      with_numbered_rows(parallel, plan, rows, like, write);
    }
  });
}

// Gives each row of `out` its slice of grad where it was the last to name it,
// and zeros otherwise. If `rest` has somewhere to go, writes there grad less
// the slices that rows name: the rows are dealt out once for both.
template <typename Index>
void take(
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const char* grad,
    char* out,
    const ScatterTarget& rest,
    const Meta& like) {
  const int64_t rest_bytes =
      rest.out != nullptr ? 2 * plan.slices * plan.slice_bytes : 0;
  const Parallel parallel =
      Parallel::for_bytes(rest_bytes + plan.rows * (2 * plan.slice_bytes + 16));
  dispatch_width(plan.slice_bytes, [&](auto width) {
    const auto take_blocks = [&](const auto& partition, const auto& take_one) {
      each_block(
          parallel, partition.blocks, [&](int64_t block, NamedSlices& named) {
            take_one(block, named);
            if (rest.out != nullptr) {
              clear_block<width()>(partition, block, rest);
            }
          });
    };
    if constexpr (carried(width())) {
      using Entry = CarriedUpdate<Carrier<width()>>;
      with_partition<Entry>(
          parallel, plan, rows, like,
          [](int64_t, uint32_t slice) { return Entry{0, slice}; },
          [&](const auto& partition) {
            take_blocks(partition, [&](int64_t block, NamedSlices& named) {
              carry_block<width()>(partition, block, grad, named);
            });
            parallel.each_thread([&](int64_t thread) {
              deliver_rows<width()>(partition, rows, plan.rows, thread, out);
            });
          });
    } else {
      with_numbered_rows(
          parallel, plan, rows, like, [&](const auto& partition) {
            if (partition.first_bad >= 0) {
              std::memset(out, 0, plan.rows * plan.slice_bytes);
            }
            take_blocks(partition, [&](int64_t block, NamedSlices& named) {
              take_block<width()>(
                  partition, block, grad, out, plan.slice_bytes, named);
            });
          });
    }
  });
}

// A bit for each slice is worth clearing for up to this many of them a row.
constexpr int64_t kSlicesPerRow = 512;

// The gradients of the updates and, if `rest` has somewhere to go, the tensor.
template <typename Index>
void transpose(
    const char* op,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const char* grad,
    char* out,
    const ScatterTarget& rest,
    const Meta& like) {
  const bool nothing = plan.rows == 0 || plan.slice_bytes == 0;
  if (!nothing &&
      !(in_order(plan) && plan.slices <= kSlicesPerRow * (plan.rows + 64))) {
    take(plan, rows, grad, out, rest, like);
    return;
  }
  if (!nothing) {
    dispatch_width(plan.slice_bytes, [&](auto width) {
      take_rows<width()>(
          rows, plan.rows, plan.slices, grad, out, plan.slice_bytes);
    });
  }
  if (rest.out != nullptr) {
    update(op, plan, rows, rest, like);
  }
}

}  // namespace tso
