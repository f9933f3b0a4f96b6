// Tensors that csrc/ allocates start out poisoned. The library is linked with
// --wrap=aoti_torch_empty_strided, so its calls of torch's function land here.
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include "scheduler.h"

extern "C" {

AOTITorchError __real_aoti_torch_empty_strided(
    int64_t dim,
    const int64_t* sizes,
    const int64_t* strides,
    int32_t dtype,
    int32_t device_type,
    int32_t device_index,
    AtenTensorHandle* result);

AOTITorchError __wrap_aoti_torch_empty_strided(
    int64_t dim,
    const int64_t* sizes,
    const int64_t* strides,
    int32_t dtype,
    int32_t device_type,
    int32_t device_index,
    AtenTensorHandle* result) {
  const AOTITorchError error = __real_aoti_torch_empty_strided(
      dim, sizes, strides, dtype, device_type, device_index, result);
  void* data = nullptr;
  int64_t bytes = 0;
  if (error == AOTI_TORCH_SUCCESS &&
      aoti_torch_get_data_ptr(*result, &data) == AOTI_TORCH_SUCCESS &&
      aoti_torch_get_storage_size(*result, &bytes) == AOTI_TORCH_SUCCESS) {
    ++cuda_on_host::counts.allocations;
    cuda_on_host::poison(data, static_cast<uint64_t>(bytes));
  }
  return error;
}

}  // extern "C"
