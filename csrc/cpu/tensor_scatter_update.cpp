#include <limits>
#include <string>
#include <vector>

#include "../common/overlap.h"
#include "../common/scatter_plan.h"
#include "parallel.h"
#include "tensor_scatter_update_kernel.h"

namespace tso {
namespace {

// Up to this many rows are written in order by one thread.
constexpr int64_t kFewRows = 256;

// Calls f(rows) with the index matrix in the type of its elements.
template <typename F>
void with_rows(const ScatterPlan& plan, const Tensor& indices, const F& f) {
  const Meta meta(indices);
  std::vector<int64_t> strides(plan.depth);
  row_major_strides(plan.sizes.data(), plan.depth, strides.data());
  int64_t row_stride = 0;
  int64_t dim_stride = 0;
  const Tensor matrix = fold_rows(indices, meta, [&](int64_t row, int64_t dim) {
    row_stride = row;
    dim_stride = dim;
  });
  const auto call = [&](auto* data) {
    f(ScatterRows<std::remove_const_t<std::remove_pointer_t<decltype(data)>>>{
        data, row_stride, dim_stride, plan.depth, plan.sizes.data(),
        strides.data()});
  };
  if (meta.dtype == aoti_torch_dtype_int64()) {
    call(const_data<int64_t>(matrix));
  } else {
    call(const_data<int32_t>(matrix));
  }
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

// Calls f(partition), with positions as narrow as the rows allow.
template <typename Index, typename F>
void with_partition(
    const Parallel& parallel,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const F& f) {
  constexpr int64_t kNarrow = std::numeric_limits<uint32_t>::max();
  const int shift = scatter_block_shift(plan.slices, plan.slice_bytes);
  if (plan.rows <= kNarrow && (int64_t{1} << shift) <= kNarrow) {
    f(partition_rows<uint32_t>(parallel, rows, plan.rows, plan.slices, shift));
  } else {
    f(partition_rows<uint64_t>(parallel, rows, plan.rows, plan.slices, shift));
  }
}

void copy_bytes(const Parallel& parallel, const ScatterTarget& target) {
  parallel.each_range(
      target.slices * target.slice_bytes, [&](int64_t begin, int64_t end) {
        std::memcpy(target.out + begin, target.tensor + begin, end - begin);
      });
}

// Writes what the target held before and the rows over it, the last one to
// name a slice on top. Nothing is written if the policy throws.
template <typename Index>
void update(
    const char* op,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const ScatterTarget& target) {
  const int64_t tensor_bytes =
      target.tensor != nullptr ? 2 * target.slices * target.slice_bytes : 0;
  const Parallel parallel = Parallel::for_bytes(
      tensor_bytes + plan.rows * (2 * plan.slice_bytes + 16));
  if (plan.slice_bytes == 0 || plan.rows <= kFewRows) {
    check_rows(op, plan, rows);
    if (target.tensor != nullptr) {
      copy_bytes(parallel, target);
    }
    dispatch_width(plan.slice_bytes, [&](auto width) {
      update_rows<width()>(rows, plan.slice_bytes ? plan.rows : 0, target);
    });
    return;
  }
  with_partition(parallel, plan, rows, [&](const auto& partition) {
    if (partition.first_bad >= 0 && plan.policy != BadIndices::kIgnore) {
      fail_bad_row(op, plan, rows, partition.first_bad);
    }
    dispatch_width(plan.slice_bytes, [&](auto width) {
      parallel.each_task<NoScratch>(
          partition.blocks, [&](int64_t block, NoScratch&) {
            update_block<width()>(partition, block, target);
          });
    });
  });
}

Tensor tensor_scatter_update_cpu(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string& policy) {
  constexpr const char* kName = "tensor_scatter_update";
  const Meta meta(tensor);
  const Meta updates_meta(updates);
  const ScatterPlan plan =
      plan_scatter(kName, meta, Meta(indices), &updates_meta, policy);
  const Tensor rows_of_updates = contiguous(updates, updates_meta);
  const bool direct = meta.contiguous();
  const Tensor out = direct ? allocate(meta, meta.dtype, plan.sizes)
                            : torch::stable::contiguous(tensor);
  const ScatterTarget target{
      direct ? const_data<char>(tensor) : nullptr, mutable_data<char>(out),
      const_data<char>(rows_of_updates), plan.slices, plan.slice_bytes};
  with_rows(plan, indices, [&](const auto& rows) {
    update(kName, plan, rows, target);
  });
  return out;
}

void tensor_scatter_update_inplace_cpu(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string& policy) {
  constexpr const char* kName = "tensor_scatter_update_";
  const Meta meta(tensor);
  const Meta indices_meta(indices);
  const Meta updates_meta(updates);
  const ScatterPlan plan =
      plan_scatter(kName, meta, indices_meta, &updates_meta, policy);
  check_no_overlap(kName, meta);
  const Tensor own_indices =
      without_sharing(indices, indices_meta, tensor, meta);
  const Tensor own_updates = contiguous(
      without_sharing(updates, updates_meta, tensor, meta), updates_meta);
  with_rows(plan, own_indices, [&](const auto& rows) {
    if (meta.contiguous()) {
      update(
          kName, plan, rows,
          {nullptr, mutable_data<char>(tensor), const_data<char>(own_updates),
           plan.slices, plan.slice_bytes});
    } else {
      check_rows(kName, plan, rows);
      update_strided(
          rows, plan.rows, const_data<char>(own_updates), plan.slice_numel,
          {mutable_data<char>(tensor), meta.dim, meta.element_size(),
           meta.sizes, meta.strides});
    }
  });
}

Tensor tensor_scatter_update_grad_tensor_cpu(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grad_tensor";
  const Meta meta(grad);
  const ScatterPlan plan = plan_scatter(kName, meta, Meta(indices), nullptr);
  const bool direct = meta.contiguous();
  const Tensor out = direct ? allocate(meta, meta.dtype, plan.sizes)
                            : torch::stable::contiguous(grad);
  with_rows(plan, indices, [&](const auto& rows) {
    update(
        kName, plan, rows,
        {direct ? const_data<char>(grad) : nullptr, mutable_data<char>(out),
         nullptr, plan.slices, plan.slice_bytes});
  });
  return out;
}

Tensor tensor_scatter_update_grad_updates_cpu(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grad_updates";
  const Meta meta(grad);
  const Meta indices_meta(indices);
  const ScatterPlan plan = plan_scatter(kName, meta, indices_meta, nullptr);
  const Tensor source = contiguous(grad, meta);
  std::vector<int64_t> sizes(
      indices_meta.sizes, indices_meta.sizes + indices_meta.dim - 1);
  sizes.insert(sizes.end(), meta.sizes + plan.depth, meta.sizes + meta.dim);
  const Tensor out = allocate(meta, meta.dtype, sizes);
  if (plan.rows == 0 || plan.slice_bytes == 0) {
    return out;
  }
  const Parallel parallel =
      Parallel::for_bytes(plan.rows * (2 * plan.slice_bytes + 16));
  with_rows(plan, indices, [&](const auto& rows) {
    with_partition(parallel, plan, rows, [&](const auto& partition) {
      if (partition.first_bad >= 0) {
        std::memset(mutable_data(out), 0, plan.rows * plan.slice_bytes);
      }
      dispatch_width(plan.slice_bytes, [&](auto width) {
        parallel.each_task<std::vector<uint64_t>>(
            partition.blocks, [&](int64_t block, std::vector<uint64_t>& named) {
              take_block<width()>(
                  partition, block, const_data<char>(source),
                  mutable_data<char>(out), plan.slice_bytes, named);
            });
      });
    });
  });
  return out;
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns) TSO_LIBRARY_IMPL(ns, CPU, m)
TSO_REGISTER(TSO_NAMESPACE) {
  m.impl("tensor_scatter_update", TORCH_BOX(&tso::tensor_scatter_update_cpu));
  m.impl(
      "tensor_scatter_update_",
      TORCH_BOX(&tso::tensor_scatter_update_inplace_cpu));
  m.impl(
      "_tensor_scatter_update_grad_tensor",
      TORCH_BOX(&tso::tensor_scatter_update_grad_tensor_cpu));
  m.impl(
      "_tensor_scatter_update_grad_updates",
      TORCH_BOX(&tso::tensor_scatter_update_grad_updates_cpu));
}
