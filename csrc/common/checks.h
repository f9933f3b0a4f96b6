// Errors: std::invalid_argument arrives in Python as ValueError and
// std::out_of_range as IndexError, also from compiled code. Texts read
// "operator: what is required (got ...)" and are the same as those of
// torch_sparse_ops/_checks.py.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

#include "compat.h"
#include "index_math.h"

namespace tso {

// A list of integers that prints as [2, 3].
struct Ints {
  const int64_t* data;
  int64_t count;
};

inline std::ostream& operator<<(std::ostream& out, const Ints& ints) {
  out << '[';
  for (int64_t i = 0; i < ints.count; ++i) {
    out << (i ? ", " : "") << ints.data[i];
  }
  return out << ']';
}

inline Ints shape_of(const Meta& meta) {
  return {meta.sizes, meta.dim};
}

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
[[noreturn]] void fail_value(const Parts&... parts) {
  throw std::invalid_argument(text(parts...));
}

template <typename... Parts>
[[noreturn]] void fail_index(const Parts&... parts) {
  throw std::out_of_range(text(parts...));
}

inline const char* dtype_name(int32_t dtype) {
  struct Name {
    int32_t (*code)();
    const char* name;
  };
  static const Name names[] = {
      {aoti_torch_dtype_bool, "bool"},
      {aoti_torch_dtype_uint8, "uint8"},
      {aoti_torch_dtype_uint16, "uint16"},
      {aoti_torch_dtype_uint32, "uint32"},
      {aoti_torch_dtype_uint64, "uint64"},
      {aoti_torch_dtype_int8, "int8"},
      {aoti_torch_dtype_int16, "int16"},
      {aoti_torch_dtype_int32, "int32"},
      {aoti_torch_dtype_int64, "int64"},
      {aoti_torch_dtype_float16, "float16"},
      {aoti_torch_dtype_bfloat16, "bfloat16"},
      {aoti_torch_dtype_float32, "float32"},
      {aoti_torch_dtype_float64, "float64"},
      {aoti_torch_dtype_complex32, "complex32"},
      {aoti_torch_dtype_complex64, "complex64"},
      {aoti_torch_dtype_complex128, "complex128"},
      {aoti_torch_dtype_float8_e5m2, "float8_e5m2"},
      {aoti_torch_dtype_float8_e4m3fn, "float8_e4m3fn"},
      {aoti_torch_dtype_float8_e5m2fnuz, "float8_e5m2fnuz"},
      {aoti_torch_dtype_float8_e4m3fnuz, "float8_e4m3fnuz"},
      {torch_dtype_float8_e8m0fnu, "float8_e8m0fnu"},
      {torch_dtype_float4_e2m1fn_x2, "float4_e2m1fn_x2"},
  };
  for (const Name& entry : names) {
    if (entry.code() == dtype) {
      return entry.name;
    }
  }
  return "another dtype";
}

inline std::string device_name(const Meta& meta) {
  std::string name =
      meta.device_type == aoti_torch_device_type_cpu()    ? "cpu"
      : meta.device_type == aoti_torch_device_type_cuda() ? "cuda"
      : meta.device_type == aoti_torch_device_type_meta() ? "meta"
                                                          : "another device";
  if (meta.device_type == aoti_torch_device_type_cuda()) {
    name.append(":").append(std::to_string(meta.device_index));
  }
  return name;
}

inline void check_rank(const char* op, int64_t rank) {
  if (rank > kMaxRank) {
    fail_value(
        op, ": at most ", kMaxRank, " sparse dimensions are supported (got ",
        rank, ")");
  }
}

}  // namespace tso
