// Values are moved, never computed with, so kernels are instantiated for the
// width of what they move and not for its dtype.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tso {

template <int kBytes>
using Width = std::integral_constant<int, kBytes>;

// Calls f with Width<width> for the widths that one load and one store move,
// and with Width<0> for any other: the kernel then moves `width` bytes by row.
template <typename F>
void dispatch_width(int64_t width, F&& f) {
  switch (width) {
    case 1:
      return f(Width<1>{});
    case 2:
      return f(Width<2>{});
    case 4:
      return f(Width<4>{});
    case 8:
      return f(Width<8>{});
    case 16:
      return f(Width<16>{});
    default:
      return f(Width<0>{});
  }
}

// Moves element `from` to element `to`. Rows of bytes are aligned to their
// dtype only, so this is a memcpy of constant size and not an assignment.
template <int kBytes>
inline void move_element(
    char* out, int64_t to, const char* in, int64_t from, int64_t width) {
  if constexpr (kBytes > 0) {
    std::memcpy(out + to * kBytes, in + from * kBytes, kBytes);
  } else {
    std::memcpy(
        out + to * width, in + from * width, static_cast<size_t>(width));
  }
}

}  // namespace tso
