#include <limits>
#include <tuple>
#include <vector>

#include "common/concat_plan.h"
#include "cuda/concat_merge.cuh"
#include "cuda/radix_sort.cuh"
#include "cuda/sparse_concat_kernel.cuh"
#include "cuda/stream.h"
#include "cuda/workspace.h"

namespace tso {
namespace {

// The inputs as the kernels see them, and what the entries are sorted by.
struct ConcatJob {
  std::vector<ConcatSource> sources;
  ConcatKeys keys;
  int key_bits = 0;  // 0: the inputs stay whole
  bool merges = false;

  ConcatJob(
      const ConcatPlan& plan,
      const std::vector<Tensor>& values,
      bool inputs_sorted) {
    int64_t start = 0;
    sources.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const ConcatInput& input = plan.inputs[i];
      if (input.nnz > 0) {
        // The forward reads these values and the transpose owns them.
        char* data = const_cast<char*>(const_data<char>(values[i]));
        sources.push_back({input.indices, data, start, input.offset});
        start += input.nnz;
      }
    }
    // Sorted inputs follow one another within each prefix, the coordinates
    // before the axis: the rest of the key is in order already.
    keys.axis = plan.axis;
    keys.dims = static_cast<int>(inputs_sorted ? plan.axis : plan.rank);
    row_major_strides(plan.out_shape, keys.dims, keys.strides);
    int64_t volume_of_keys = 1;
    volume(plan.out_shape, keys.dims, &volume_of_keys);
    const bool whole = inputs_sorted ? sources.size() == 1 : plan.total == 1;
    while (!whole && key_bits < 63 &&
           (int64_t{1} << key_bits) < volume_of_keys) {
      ++key_bits;
    }
    merges = inputs_sorted && sources.size() == 2;
  }

  int64_t table_bytes() const {
    const int64_t count = static_cast<int64_t>(sources.size());
    return count > kFewSources ? count * int64_t{sizeof(ConcatSource)} : 0;
  }
};

ConcatSources make_sources(
    const ConcatPlan& plan,
    const ConcatJob& job,
    const Workspace& workspace,
    int64_t table,
    cudaStream_t stream) {
  return make_sources(
      job.sources.data(), static_cast<int64_t>(job.sources.size()), plan.total,
      plan.rank, workspace.at<ConcatSource>(table), stream);
}

template <ConcatDirection kDirection>
void run_whole(
    const ConcatPlan& plan,
    const ConcatJob& job,
    const ConcatTarget& target,
    int unit,
    const Meta& meta,
    cudaStream_t stream) {
  Workspace workspace;
  const int64_t table = workspace.reserve(job.table_bytes());
  if (job.table_bytes() > 0) {
    workspace.allocate(meta);
  }
  const ConcatSources sources =
      make_sources(plan, job, workspace, table, stream);
  launch_concat_copy<kDirection>(sources, target, unit, stream);
}

template <typename Place, ConcatDirection kDirection>
void run_merged(
    const ConcatPlan& plan,
    const ConcatJob& job,
    const ConcatTarget& target,
    int unit,
    const Meta& meta,
    cudaStream_t stream) {
  Workspace workspace;
  const int64_t broken = workspace.reserve(sizeof(int));
  const int64_t splits =
      workspace.reserve(merge_splits(plan.total) * sizeof(int64_t));
  const int64_t places = workspace.reserve(plan.total * sizeof(Place));
  workspace.allocate(meta);
  const ConcatSources sources = make_sources(plan, job, workspace, 0, stream);
  launch_concat_merge(
      sources, job.keys, workspace.at<int64_t>(splits),
      workspace.at<int>(broken), workspace.at<Place>(places), stream);
  launch_concat_gather<Place, kDirection>(
      sources, target, unit, workspace.at<Place>(places), stream);
}

template <typename Key, typename Place, ConcatDirection kDirection>
void run_sorted(
    const ConcatPlan& plan,
    const ConcatJob& job,
    const ConcatTarget& target,
    int unit,
    const Meta& meta,
    cudaStream_t stream) {
  const int64_t count = plan.total;
  RadixSort<Key, Place> radix_sort(count, job.key_bits);
  Workspace workspace;
  const int64_t table = workspace.reserve(job.table_bytes());
  const int64_t keys = workspace.reserve(count * sizeof(Key));
  const int64_t other_keys = workspace.reserve(count * sizeof(Key));
  const int64_t places = workspace.reserve(count * sizeof(Place));
  const int64_t other_places = workspace.reserve(count * sizeof(Place));
  const int64_t scratch = workspace.reserve(radix_sort.bytes());
  workspace.allocate(meta);
  const ConcatSources sources =
      make_sources(plan, job, workspace, table, stream);
  launch_concat_keys(
      sources, job.keys, workspace.at<Key>(keys), workspace.at<Place>(places),
      stream);
  const Place* sorted = radix_sort.sort(
      workspace.at<Key>(keys), workspace.at<Key>(other_keys),
      workspace.at<Place>(places), workspace.at<Place>(other_places),
      workspace.at<char>(scratch), stream);
  launch_concat_gather<Place, kDirection>(
      sources, target, unit, sorted, stream);
}

template <ConcatDirection kDirection>
void run(
    const ConcatPlan& plan,
    const ConcatJob& job,
    const ConcatTarget& target,
    const Meta& meta,
    cudaStream_t stream) {
  if (plan.total == 0) {
    return;
  }
  Alignment alignment;
  alignment.add(target.row_bytes).add(target.values);
  for (const ConcatSource& source : job.sources) {
    alignment.add(source.values);
  }
  const int unit = alignment.unit();
  using Narrow = unsigned int;
  using Wide = unsigned long long;
  const bool narrow = plan.total <= std::numeric_limits<Narrow>::max();
  const auto with = [&](auto* f) { f(plan, job, target, unit, meta, stream); };
  if (job.key_bits == 0) {
    with(run_whole<kDirection>);
  } else if (job.merges) {
    with(
        narrow ? run_merged<Narrow, kDirection> : run_merged<Wide, kDirection>);
  } else if (!narrow) {
    with(run_sorted<Wide, Wide, kDirection>);
  } else if (job.key_bits > std::numeric_limits<Narrow>::digits) {
    with(run_sorted<Wide, Narrow, kDirection>);
  } else {
    with(run_sorted<Narrow, Narrow, kDirection>);
  }
}

std::tuple<Tensor, Tensor> concat(
    StableListHandle index_list,
    StableListHandle value_list,
    IndexLayout layout,
    const std::vector<int64_t>& shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool inputs_sorted) {
  const TensorList indices(index_list);
  const TensorList values(value_list);
  const ConcatPlan plan = plan_concat(
      "sparse_concat", indices, layout, &values, shapes, concat_dim,
      expand_nonconcat_dims);
  const Meta& meta = plan.inputs[0].values;
  const DeviceScope device(meta.device_index);
  std::vector<Tensor> rows;
  rows.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    rows.push_back(contiguous(values.tensor(i), plan.inputs[i].values));
  }
  std::vector<int64_t> sizes(meta.sizes, meta.sizes + meta.dim);
  sizes[0] = plan.total;
  const Tensor out_values = allocate(meta, meta.dtype, sizes);
  const Tensor out_indices =
      allocate_indices(meta, plan.total, plan.rank, layout);
  int64_t row_bytes = meta.element_size();
  for (int64_t d = 1; d < meta.dim; ++d) {
    row_bytes *= meta.sizes[d];
  }
  run<ConcatDirection::kForward>(
      plan, ConcatJob(plan, rows, inputs_sorted),
      {mutable_data<int64_t>(out_indices), plan.rank, plan.axis,
       mutable_data<char>(out_values), row_bytes},
      meta, device.stream());
  return {out_values, out_indices};
}

std::tuple<Tensor, Tensor> sparse_concat_cuda(
    StableListHandle indices,
    StableListHandle values,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool inputs_sorted) {
  return concat(
      indices, values, IndexLayout::kEntries, shapes, concat_dim,
      expand_nonconcat_dims, inputs_sorted);
}

// Whether the result is coalesced is the caller's word: finding out would take
// a read of the host.
std::tuple<Tensor, Tensor, bool> sparse_concat_coo_cuda(
    StableListHandle indices,
    StableListHandle values,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool inputs_sorted) {
  auto [out_values, out_indices] = concat(
      indices, values, IndexLayout::kDimensions, shapes, concat_dim,
      expand_nonconcat_dims, inputs_sorted);
  return {out_values, out_indices, inputs_sorted};
}

std::vector<Tensor> sparse_concat_grad_values_cuda(
    Tensor grad_values,
    StableListHandle index_list,
    std::vector<int64_t> shapes,
    int64_t concat_dim,
    bool expand_nonconcat_dims,
    bool inputs_sorted) {
  constexpr const char* kName = "_sparse_concat_grad_values";
  const TensorList indices(index_list);
  const ConcatPlan plan = plan_concat(
      kName, indices, IndexLayout::kEntries, nullptr, shapes, concat_dim,
      expand_nonconcat_dims);
  const Meta meta(grad_values);
  check_grad_values(kName, plan, meta);
  const DeviceScope device(meta.device_index);
  const Tensor grad = contiguous(grad_values, meta);
  std::vector<int64_t> sizes(meta.sizes, meta.sizes + meta.dim);
  int64_t row_bytes = meta.element_size();
  for (int64_t d = 1; d < meta.dim; ++d) {
    row_bytes *= meta.sizes[d];
  }
  std::vector<Tensor> results;
  results.reserve(indices.size());
  for (const ConcatInput& input : plan.inputs) {
    sizes[0] = input.nnz;
    results.push_back(allocate(meta, meta.dtype, sizes));
  }
  if (row_bytes > 0) {
    run<ConcatDirection::kTranspose>(
        plan, ConcatJob(plan, results, inputs_sorted),
        {nullptr, plan.rank, plan.axis,
         const_cast<char*>(const_data<char>(grad)), row_bytes},
        meta, device.stream());
  }
  return results;
}

}  // namespace
}  // namespace tso

#define TSO_REGISTER(ns, key) TSO_LIBRARY_IMPL(ns, key, m)
TSO_REGISTER(TSO_NAMESPACE, TSO_DEVICE_KEY) {
  m.impl("sparse_concat", TORCH_BOX(&tso::sparse_concat_cuda));
  m.impl("_sparse_concat_coo", TORCH_BOX(&tso::sparse_concat_coo_cuda));
  m.impl(
      "_sparse_concat_grad_values",
      TORCH_BOX(&tso::sparse_concat_grad_values_cuda));
}
