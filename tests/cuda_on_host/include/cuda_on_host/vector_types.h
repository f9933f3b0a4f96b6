// CUDA's vector types: plain structs, aligned as on the device, where one load
// or store moves the whole.
#pragma once

struct alignas(2) uchar2 {
  unsigned char x, y;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};
struct alignas(4) ushort2 {
  unsigned short x, y;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) longlong2 {
  long long x, y;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};

constexpr int2 make_int2(int x, int y) {
  return {x, y};
}
constexpr int4 make_int4(int x, int y, int z, int w) {
  return {x, y, z, w};
}
constexpr uint2 make_uint2(unsigned x, unsigned y) {
  return {x, y};
}
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
constexpr longlong2 make_longlong2(long long x, long long y) {
  return {x, y};
}
constexpr ulonglong2 make_ulonglong2(
    unsigned long long x, unsigned long long y) {
  return {x, y};
}
