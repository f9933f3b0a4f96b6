// The one block of temporary device memory of a call.
#pragma once

#include <cstdint>

#include "common/compat.h"

namespace tso {

// Parts are asked for first, then memory for all of them is taken from torch's
// allocator, which keeps it for later work on the same stream. Contents are
// undefined.
class Workspace {
 public:
  // Returns where the part will lie.
  int64_t reserve(int64_t bytes) {
    constexpr int64_t kAlign = 256;
    const int64_t offset = bytes_;
    bytes_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return offset;
  }

  void allocate(const Meta& like) {
    tensor_ = tso::allocate(like, aoti_torch_dtype_uint8(), {bytes_});
    data_ = mutable_data<char>(tensor_);
  }

  template <typename T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(data_ + offset);
  }

 private:
  int64_t bytes_ = 0;
  char* data_ = nullptr;
  Tensor tensor_;
};

}  // namespace tso
