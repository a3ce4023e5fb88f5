// Several neighbouring numbers at once, for bodies of kernels that also run on a host, where they are tested.
//
// `Io` says how numbers are stored: Io::Stored, Io::load(Stored) → float, Io::store(float) → Stored.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define COSFORMER_ITEM __device__ __forceinline__
#define COSFORMER_ANYWHERE __host__ __device__
#define COSFORMER_UNROLL _Pragma("unroll")
#else
#define COSFORMER_ITEM inline
#define COSFORMER_ANYWHERE
#define COSFORMER_UNROLL
#endif

namespace cosformer::kernels::cuda {

struct StoredFloats {
  using Stored = float;
  static COSFORMER_ANYWHERE float load(float x) { return x; }
  static COSFORMER_ANYWHERE float store(float x) { return x; }
};

// One access to memory, or several of 16 bytes.
template <class T, int kLanes>
struct alignas(kLanes * sizeof(T) < 16 ? kLanes * sizeof(T) : std::size_t{16}) Pack {
  T lane[kLanes];
};

template <class Io, int kLanes>
COSFORMER_ITEM void load_lanes(const typename Io::Stored* from, float (&to)[kLanes]) {
  const auto pack = *reinterpret_cast<const Pack<typename Io::Stored, kLanes>*>(from);
  COSFORMER_UNROLL
  for (int l = 0; l < kLanes; ++l) to[l] = Io::load(pack.lane[l]);
}

template <class Io, int kLanes>
COSFORMER_ITEM void store_lanes(const float (&from)[kLanes], typename Io::Stored* to) {
  Pack<typename Io::Stored, kLanes> pack;
  COSFORMER_UNROLL
  for (int l = 0; l < kLanes; ++l) pack.lane[l] = Io::store(from[l]);
  *reinterpret_cast<Pack<typename Io::Stored, kLanes>*>(to) = pack;
}

COSFORMER_ANYWHERE constexpr std::int64_t parts_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace cosformer::kernels::cuda
