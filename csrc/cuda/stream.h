// The device a call runs on and its stream: the one place that asks torch for
// them.
#pragma once

#include <cuda_runtime.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>

#include <cstdint>

namespace tso {

// Makes a device the current one for as long as it lives. stream() is the
// stream that is current on that device.
class DeviceScope {
 public:
  explicit DeviceScope(int32_t device_index) : guard_(device_index) {
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(
        aoti_torch_get_current_cuda_stream(device_index, &stream));
    stream_ = static_cast<cudaStream_t>(stream);
  }

  cudaStream_t stream() const {
    return stream_;
  }

 private:
  torch::stable::accelerator::DeviceGuard guard_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace tso
