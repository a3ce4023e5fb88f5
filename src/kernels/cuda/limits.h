// Sizes that the choice of a kernel and the kernels themselves must agree on.
#pragma once

#include <cstdint>

namespace cosformer::kernels::cuda {

// Positions are padded to whole blocks of this many, so that reversed sweeps cut chunks at the same tokens.
constexpr int kFrameBlock = 64;
// Full attention with a decay is swept in pairs of chunks.
constexpr std::int64_t kPairTokens = 2 * kFrameBlock;
// The widest head of the narrow Hopper kernels, and the widest of all Hopper kernels.
constexpr int kNarrowDim = 64;
constexpr int kWideDim = 128;
// What the sum of a segment takes in the cooperative launch of narrow heads, whatever the head dim.
constexpr int kCooperativeSumFloats = 2 * kNarrowDim * (kNarrowDim + 1);
// One call of the decode kernel takes so many tokens.
constexpr std::int64_t kMaxDecodeTokens = 8;

// How rows come from global to shared memory: by loads and stores of the threads; by cp.async, 16 bytes each, those of
// absent keys as zeros where there is a mask; or by TMA, the memory's copy engine, a tile for each request.
enum class Fetch : std::uint8_t { kPlain, kCpAsync, kMaskedCpAsync, kTma };

}  // namespace cosformer::kernels::cuda
