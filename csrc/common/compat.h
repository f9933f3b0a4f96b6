// The one place that talks to torch's C shim: tensor metadata, allocation,
// parallel loops. Kernels do not include it; glue does.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

// The CUDA sources are also built for the CPU under another namespace and key.
#ifndef TSO_NAMESPACE
#define TSO_NAMESPACE torch_sparse_ops
#endif
#ifndef TSO_DEVICE_KEY
#define TSO_DEVICE_KEY CUDA
#endif

// The registration macros paste their arguments, which stops macro expansion.
#define TSO_LIBRARY(ns, m) STABLE_TORCH_LIBRARY(ns, m)
#define TSO_LIBRARY_IMPL(ns, key, m) STABLE_TORCH_LIBRARY_IMPL(ns, key, m)

namespace tso {

using torch::stable::Tensor;

// What the glue needs to know of a tensor, read once. Sizes and strides are
// borrowed from the tensor.
struct Meta {
  int64_t dim = 0;
  const int64_t* sizes = nullptr;
  const int64_t* strides = nullptr;
  int32_t dtype = 0;
  int32_t device_type = 0;
  int32_t device_index = 0;

  Meta() = default;

  explicit Meta(const Tensor& tensor) : Meta(tensor.get()) {}

  explicit Meta(AtenTensorHandle handle) {
    int64_t* borrowed_sizes = nullptr;
    int64_t* borrowed_strides = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_dim(handle, &dim));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_sizes(handle, &borrowed_sizes));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_strides(handle, &borrowed_strides));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(handle, &dtype));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(handle, &device_type));
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(handle, &device_index));
    sizes = borrowed_sizes;
    strides = borrowed_strides;
  }

  bool same_device(const Meta& other) const {
    return device_type == other.device_type &&
           device_index == other.device_index;
  }

  int64_t element_size() const {
    return static_cast<int64_t>(aoti_torch_dtype_element_size(dtype));
  }

  int64_t numel() const {
    int64_t count = 1;
    for (int64_t d = 0; d < dim; ++d) {
      count *= sizes[d];
    }
    return count;
  }

  bool contiguous() const {
    int64_t expected = 1;
    bool result = true;
    for (int64_t d = dim - 1; d >= 0; --d) {
      if (sizes[d] == 0) {
        return true;
      }
      result &= sizes[d] == 1 || strides[d] == expected;
      expected *= sizes[d];
    }
    return result;
  }
};

// Where a tensor without elements has its data: memcpy wants no null pointer,
// even to copy nothing.
alignas(64) inline char no_data[64];

template <typename T = void>
const T* const_data(AtenTensorHandle handle) {
  const void* data = nullptr;
  TORCH_ERROR_CODE_CHECK(torch_get_const_data_ptr(handle, &data));
  return static_cast<const T*>(data != nullptr ? data : no_data);
}

template <typename T = void>
const T* const_data(const Tensor& tensor) {
  return const_data<T>(tensor.get());
}

template <typename T = void>
T* mutable_data(const Tensor& tensor) {
  void* data = tensor.mutable_data_ptr();
  return static_cast<T*>(data != nullptr ? data : no_data);
}

// A Tensor[] argument, which it owns. A vector of torch::stable::Tensor would
// allocate once more for each.
class TensorList {
 public:
  explicit TensorList(StableListHandle list) {
    size_t count = 0;
    TORCH_ERROR_CODE_CHECK(torch_list_size(list, &count));
    handles_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      StableIValue item = 0;
      TORCH_ERROR_CODE_CHECK(torch_list_get_item(list, i, &item));
      handles_.push_back(torch::stable::detail::to<AtenTensorHandle>(item));
    }
    TORCH_ERROR_CODE_CHECK(torch_delete_list(list));
  }
  TensorList(const TensorList&) = delete;
  TensorList& operator=(const TensorList&) = delete;
  ~TensorList() {
    for (const AtenTensorHandle handle : handles_) {
      aoti_torch_delete_tensor_object(handle);
    }
  }

  size_t size() const {
    return handles_.size();
  }
  bool empty() const {
    return handles_.empty();
  }
  AtenTensorHandle operator[](size_t i) const {
    return handles_[i];
  }
  Tensor tensor(size_t i) const {
    AtenTensorHandle handle = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_new_tensor_handle(handles_[i], &handle));
    return Tensor(handle);
  }

 private:
  std::vector<AtenTensorHandle> handles_;
};

inline Tensor contiguous(const Tensor& tensor, const Meta& meta) {
  return meta.contiguous() ? tensor : torch::stable::contiguous(tensor);
}

// A new tensor on the device of `like`, uninitialised.
//
// The allocator maps blocks above 32 MB anew for every call, and first touching
// small pages then costs several times the writes themselves; huge pages make
// that cost vanish. Below that size asking for them is slower.
inline Tensor allocate(
    const Meta& like,
    int32_t dtype,
    const std::vector<int64_t>& sizes,
    const std::vector<int64_t>& strides) {
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(), dtype,
      like.device_type, like.device_index, &handle));
  Tensor result(handle);
  int64_t bytes = static_cast<int64_t>(aoti_torch_dtype_element_size(dtype));
  for (int64_t size : sizes) {
    bytes *= size;
  }
#if defined(__linux__)
  constexpr int64_t kHugePageBytes = int64_t{1} << 25;
  if (bytes >= kHugePageBytes &&
      like.device_type == aoti_torch_device_type_cpu()) {
    constexpr uintptr_t kPage = 4096;
    const uintptr_t address = reinterpret_cast<uintptr_t>(mutable_data(result));
    const uintptr_t begin = (address + kPage - 1) / kPage * kPage;
    const uintptr_t end =
        (address + static_cast<uintptr_t>(bytes)) / kPage * kPage;
    // Advice only: a kernel without huge pages refuses, and nothing is lost.
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
  return result;
}

inline Tensor allocate(
    const Meta& like, int32_t dtype, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= sizes[d] > 0 ? sizes[d] : 1;
  }
  return allocate(like, dtype, sizes, strides);
}

// How an index matrix is given: [entries, rank], or [rank, entries] as COO
// tensors store it.
enum class IndexLayout { kEntries, kDimensions };

// Indices of `entries` entries, stored one row per dimension.
inline Tensor allocate_indices(
    const Meta& like,
    int64_t entries,
    int64_t rank,
    IndexLayout layout = IndexLayout::kEntries) {
  const int64_t stride = entries > 0 ? entries : 1;
  const int32_t dtype = aoti_torch_dtype_int64();
  return layout == IndexLayout::kEntries
             ? allocate(like, dtype, {entries, rank}, {1, stride})
             : allocate(like, dtype, {rank, entries}, {stride, 1});
}

}  // namespace tso
