#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "common/overlap.h"
#include "common/scatter_plan.h"
#include "cuda/scatter_slices.h"
#include "cuda/stream.h"
#include "cuda/tensor_scatter_update_kernel.cuh"
#include "cuda/workspace.h"

namespace tso {
namespace {

// Tables this small cost no more than the launch that clears them.
constexpr int64_t kSmallTable = int64_t{1} << 16;

// A table is cleared and read once for each slice. From this size on that is
// little beside the slices themselves.
constexpr int64_t kWideSlice = 64;

int bits_for(int64_t count) {
  int bits = 0;
  while (bits < 63 && (int64_t{1} << bits) < count) {
    ++bits;
  }
  return bits;
}

// How the winners are kept.
struct WinnerTable {
  bool hashed;
  bool narrow;        // words of 32 bits
  int log_words = 0;  // of a hash table
  int row_bits = 0;
  int64_t bytes = 0;

  // `writes_all`: slices that no row names are written too.
  WinnerTable(const ScatterPlan& plan, bool writes_all) {
    // The hash table has 2 to 4 words of 8 bytes for each row.
    const bool small =
        plan.slices <= kSmallTable || plan.slices / 8 <= plan.rows;
    row_bits = bits_for(plan.rows);
    hashed = !small && !(writes_all && plan.slice_bytes >= kWideSlice) &&
             bits_for(plan.slices) + row_bits < 64;
    narrow = plan.rows < std::numeric_limits<unsigned int>::max();
    if (hashed) {
      log_words = bits_for(2 * plan.rows + 1);
      bytes = int64_t{8} << log_words;
    } else {
      bytes = plan.slices * (narrow ? 4 : 8);
    }
  }

  // Calls f(winners) with the table, cleared.
  template <typename F>
  void clear(void* memory, cudaStream_t stream, const F& f) const {
    check_cuda(cudaMemsetAsync(
        memory, hashed ? 0xff : 0, static_cast<size_t>(bytes), stream));
    using Narrow = unsigned int;
    using Wide = unsigned long long;
    if (hashed) {
      f(HashedWinners{static_cast<Wide*>(memory), log_words, row_bits});
    } else if (narrow) {
      f(DenseWinners<Narrow>{static_cast<Narrow*>(memory)});
    } else {
      f(DenseWinners<Wide>{static_cast<Wide*>(memory)});
    }
  }
};

// Calls f(rows) with the index matrix in the type of its elements.
template <typename F>
void with_rows(const ScatterPlan& plan, const Tensor& indices, const F& f) {
  with_index_matrix(
      indices, [&](auto* data, int64_t row_stride, int64_t dim_stride) {
        using Index =
            std::remove_const_t<std::remove_pointer_t<decltype(data)>>;
        ScatterRows<Index> rows;
        rows.data = data;
        rows.row_stride = row_stride;
        rows.dim_stride = dim_stride;
        rows.count = plan.rows;
        rows.depth = static_cast<int>(plan.depth);
        std::copy_n(plan.sizes.data(), plan.depth, rows.sizes);
        row_major_strides(rows.sizes, plan.depth, rows.strides);
        f(rows);
      });
}

// Throws for the first row out of bounds if the policy asks for that. The one
// place that waits for the device.
template <typename Index>
void check_rows(
    const char* op,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    int64_t* report,
    cudaStream_t stream) {
  if (plan.policy != BadIndices::kError) {
    return;
  }
  launch_scatter_check(rows, report, stream);
  std::vector<int64_t> found(1 + plan.depth);
  check_cuda(cudaMemcpyAsync(
      found.data(), report, found.size() * sizeof(int64_t),
      cudaMemcpyDeviceToHost, stream));
  check_cuda(cudaStreamSynchronize(stream));
  if (found[0] >= 0) {
    fail_row(op, plan, {found.begin() + 1, found.end()}, found[0]);
  }
}

void copy_bytes(
    char* to, const char* from, int64_t bytes, cudaStream_t stream) {
  if (bytes > 0) {
    check_cuda(cudaMemcpyAsync(
        to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
        stream));
  }
}

// Rows move between their own memory and the slices they win.
template <ScatterDirection kDirection, typename Index, typename Winners>
void move_rows(
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const Winners& winners,
    const ScatterSlices& slices,
    char* tensor,
    char* row_data,
    int64_t* places,
    cudaStream_t stream) {
  launch_scatter_record(rows, winners, stream);
  launch_scatter_resolve(rows, slices.strides, winners, places, stream);
  const auto move = [&](const auto& pieces) {
    launch_scatter_move<kDirection>(
        tensor, row_data, plan.rows, plan.slice_bytes, slices.unit, pieces,
        places, stream);
  };
  if (slices.pieces.dims == 0) {
    move(DensePieces{slices.unit});
  } else {
    move(slices.pieces);
  }
}

// Makes `out` what `tensor` holds, or leaves in it what it holds if that is
// null, with the winning rows, or zeros if `updates` is null, on top. `tensor`
// and `updates` are contiguous.
template <typename Index>
void update(
    const char* op,
    const ScatterPlan& plan,
    const ScatterRows<Index>& rows,
    const char* tensor,
    const char* updates,
    char* out,
    const Meta& out_meta,
    cudaStream_t stream) {
  const bool empty = plan.slices == 0 || plan.slice_bytes == 0;
  const WinnerTable table(plan, tensor != nullptr);
  const bool fills = tensor != nullptr && !table.hashed;
  Workspace workspace;
  const int64_t report = workspace.reserve((1 + plan.depth) * sizeof(int64_t));
  const int64_t words = workspace.reserve(empty ? 0 : table.bytes);
  const int64_t places =
      workspace.reserve(empty || fills ? 0 : plan.rows * sizeof(int64_t));
  workspace.allocate(out_meta);
  check_rows(op, plan, rows, workspace.at<int64_t>(report), stream);
  if (empty) {
    return;
  }
  if (tensor != nullptr && !fills) {
    copy_bytes(out, tensor, plan.slices * plan.slice_bytes, stream);
  }
  table.clear(workspace.at<void>(words), stream, [&](const auto& winners) {
    using Winners = std::decay_t<decltype(winners)>;
    if constexpr (!std::is_same_v<Winners, HashedWinners>) {
      if (fills) {
        launch_scatter_record(rows, winners, stream);
        launch_scatter_fill(
            {out, tensor, updates, plan.slices, plan.slice_bytes},
            winners.words, stream);
        return;
      }
    }
    move_rows<ScatterDirection::kToTensor>(
        plan, rows, winners, ScatterSlices(plan, out_meta, out, updates), out,
        const_cast<char*>(updates), workspace.at<int64_t>(places), stream);
  });
}

// A new tensor: `tensor` with the winning rows, or zeros, on top.
Tensor updated_copy(
    const char* op,
    const ScatterPlan& plan,
    const Tensor& tensor,
    const Meta& meta,
    const Tensor& indices,
    const char* updates,
    cudaStream_t stream) {
  Tensor out = allocate(meta, meta.dtype, plan.sizes);
  char* const data = mutable_data<char>(out);
  const bool contiguous = meta.contiguous();
  if (!contiguous) {
    torch::stable::copy_(out, tensor);
  } else if (plan.rows == 0) {
    copy_bytes(
        data, const_data<char>(tensor), plan.slices * plan.slice_bytes, stream);
  }
  if (plan.rows > 0) {
    with_rows(plan, indices, [&](const auto& rows) {
      update(
          op, plan, rows, contiguous ? const_data<char>(tensor) : nullptr,
          updates, data, Meta(out), stream);
    });
  }
  return out;
}

Tensor tensor_scatter_update_cuda(
    const Tensor& tensor,
    const Tensor& indices,
    const Tensor& updates,
    const std::string& policy) {
  constexpr const char* kName = "tensor_scatter_update";
  const Meta meta(tensor);
  const Meta updates_meta(updates);
  const ScatterPlan plan =
      plan_scatter(kName, meta, Meta(indices), &updates_meta, policy);
  const DeviceScope device(meta.device_index);
  const Tensor rows = contiguous(updates, updates_meta);
  return updated_copy(
      kName, plan, tensor, meta, indices, const_data<char>(rows),
      device.stream());
}

void tensor_scatter_update_inplace_cuda(
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
  const DeviceScope device(meta.device_index);
  const Tensor own_updates =
      contiguous_without_sharing(updates, updates_meta, tensor, meta);
  if (plan.rows == 0) {
    return;
  }
  with_rows(
      plan, without_sharing(indices, indices_meta, tensor, meta),
      [&](const auto& rows) {
        update(
            kName, plan, rows, nullptr, const_data<char>(own_updates),
            mutable_data<char>(tensor), meta, device.stream());
      });
}

Tensor tensor_scatter_update_grad_tensor_cuda(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grad_tensor";
  const Meta meta(grad);
  const ScatterPlan plan = plan_scatter(kName, meta, Meta(indices), nullptr);
  const DeviceScope device(meta.device_index);
  return updated_copy(
      kName, plan, grad, meta, indices, nullptr, device.stream());
}

Tensor tensor_scatter_update_grad_updates_cuda(
    const Tensor& grad, const Tensor& indices) {
  constexpr const char* kName = "_tensor_scatter_update_grad_updates";
  const Meta meta(grad);
  const Meta indices_meta(indices);
  const ScatterPlan plan = plan_scatter(kName, meta, indices_meta, nullptr);
  const DeviceScope device(meta.device_index);
  const Tensor out =
      allocate(meta, meta.dtype, updates_shape(meta, indices_meta, plan.depth));
  if (plan.rows == 0 || plan.slice_bytes == 0) {
    return out;
  }
  const WinnerTable table(plan, false);
  Workspace workspace;
  const int64_t words = workspace.reserve(table.bytes);
  const int64_t places = workspace.reserve(plan.rows * sizeof(int64_t));
  workspace.allocate(meta);
  char* const rows_of_out = mutable_data<char>(out);
  // The kernel reads the slices of kToRows.
  char* const slices = const_cast<char*>(const_data<char>(grad));
  with_rows(plan, indices, [&](const auto& rows) {
    table.clear(
        workspace.at<void>(words), device.stream(), [&](const auto& winners) {
          move_rows<ScatterDirection::kToRows>(
              plan, rows, winners,
              ScatterSlices(plan, meta, slices, rows_of_out), slices,
              rows_of_out, workspace.at<int64_t>(places), device.stream());
        });
  });
  return out;
}

std::tuple<Tensor, Tensor> tensor_scatter_update_grads_cuda(
    const Tensor& grad, const Tensor& indices) {
  // Its faults in its own name.
  plan_scatter(
      "_tensor_scatter_update_grads", Meta(grad), Meta(indices), nullptr);
  return {
      tensor_scatter_update_grad_tensor_cuda(grad, indices),
      tensor_scatter_update_grad_updates_cuda(grad, indices)};
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns, key) TSO_LIBRARY_IMPL(ns, key, m)
TSO_REGISTER(TSO_NAMESPACE, TSO_DEVICE_KEY) {
  m.impl("tensor_scatter_update", TORCH_BOX(&tso::tensor_scatter_update_cuda));
  m.impl(
      "tensor_scatter_update_",
      TORCH_BOX(&tso::tensor_scatter_update_inplace_cuda));
  m.impl(
      "_tensor_scatter_update_grad_tensor",
      TORCH_BOX(&tso::tensor_scatter_update_grad_tensor_cuda));
  m.impl(
      "_tensor_scatter_update_grad_updates",
      TORCH_BOX(&tso::tensor_scatter_update_grad_updates_cuda));
  m.impl(
      "_tensor_scatter_update_grads",
      TORCH_BOX(&tso::tensor_scatter_update_grads_cuda));
}
