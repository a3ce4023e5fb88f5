// A sweep by one or two warpgroups with Hopper's asynchronous products, for bfloat16 heads of up to 64 or 128 in
// aligned rows, and ReLU: what the general sweep decides at run time is fixed here, because
// instructions around the products are what a sweep's time goes to.
//
// A warp owns 16 rows of every tile: it fetches them, prepares them, uses them as its rows and writes its results over
// them. Features and values are read by the whole warpgroup. The column beyond the values (ones or e) is a block of its
// own behind the tile, two bfloat16 numbers each (head and rest) at columns 0, 1 and again at 2, 3, so that the other
// operand can bring head and rest too.
//
// Heads wider than 64: two warpgroups (kHalves = 2) take one half each of what is contracted, features where rows are
// features, values where rows are values; every product is the sum of two of the narrow kind. A block owns 64 columns
// of the result (a slice), which the halves add up at the end of a chunk.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/boxes.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/warpgroup_params.h"
#include "kernels/cuda/wgmma.cuh"

namespace cosformer::kernels::cuda {

__device__ __forceinline__ std::uint32_t twice_bf16(float x) {
  return pack_bf16(x, x);
}
__device__ __forceinline__ std::uint32_t multiply_pair(std::uint32_t a, std::uint32_t b) {
  std::uint32_t c;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  return c;
}
// max(a·b, 0) for pairs.
__device__ __forceinline__ std::uint32_t multiply_pair_relu(std::uint32_t a, std::uint32_t b) {
  std::uint32_t c;
  asm("fma.rn.relu.bf16x2 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(0x80008000U));
  return c;
}
__device__ __forceinline__ std::uint32_t relu_pair(std::uint32_t a) {
  std::uint32_t c;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(0U));
  return c;
}
// a where b is positive, else 0, for pairs.
__device__ __forceinline__ std::uint32_t where_positive(std::uint32_t a, std::uint32_t b) {
  const __nv_bfloat162 zero(0.0F, 0.0F);
  return a & __hgt2_mask(reinterpret_cast<const __nv_bfloat162&>(b), zero);
}
// Head and rest of x as a pair.
__device__ __forceinline__ std::uint32_t head_and_rest(float x) {
  const float head = low_of(pack_bf16(x, 0.0F));
  return pack_bf16(head, x - head);
}
__device__ __forceinline__ uint4 load_shared_16(std::uint32_t address) {
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "r"(address)
               : "memory");
  return x;
}
__device__ __forceinline__ void store_shared_16(std::uint32_t address, const uint4& x) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}
// The compiler makes four stores of an assignment.
__device__ __forceinline__ void store_global_16(void* address, const uint4& x) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
               : "memory");
}
__device__ __forceinline__ uint4 load_global_16(const void* address) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(address)
               : "memory");
  return x;
}
template <int kBytes>
__device__ __forceinline__ void copy_async(std::uint32_t shared, const void* global, bool valid) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(global), "r"(valid ? 4 : 0)
                 : "memory");
  }
}
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// What a running sweep does beside its results. kDecayGradient: also the gradient of ln γ, products of each row with
// what the state gave it, and within the chunk Σ (i − j) t_ij, for which the keys' sweep has both factors at hand.
// kTwoSided: one of the two sweeps of full attention with a decay, and the decay's gradient where it is wanted.
enum class WarpgroupExtra : std::uint8_t { kNothing, kDecayGradient, kTwoSided };

// How rows come: by copies of 16 bytes, those of absent keys as zeros where there is a mask, or by the memory's copy
// engine (TileMap), a box of 16 rows for each warp, and results go the same way. Boxes spare addresses and what else
// copies take, but know neither packed sequences nor masks nor reversed time. Sums are no faster with them.
enum class WarpgroupFetch : std::uint8_t { kCopies, kMaskedCopies, kBoxes };

template <WarpgroupPass kPass_, Mode kMode, int kHalves, WarpgroupExtra kExtra, WarpgroupFetch kFetch>
struct WarpgroupSweep {
  using E = WarpgroupEngine;
  using A = E::A;
  using Io = __nv_bfloat16;
  static constexpr bool kForward = kPass_ == WarpgroupPass::kForward, kQueries = kPass_ == WarpgroupPass::kQueries,
                        kKeys = kPass_ == WarpgroupPass::kKeys, kValues = kPass_ == WarpgroupPass::kValues;
  static constexpr bool kBoth = kKeys && kHalves == 1;       // dk and dv in one sweep
  static constexpr bool kFeatureRows = kForward || kValues;  // rows of features give values, else the reverse
  static constexpr bool kRowsAreQueries = kForward || kQueries;
  static constexpr bool kIntra = kMode == Mode::kRun, kInter = kMode != Mode::kSum, kUpdate = kMode != Mode::kApply;
  static constexpr bool kRowSums = kMode == Mode::kApplyAndSum;  // the columns that are summed are the rows themselves
  static constexpr bool kQueryColumns = !kRowsAreQueries || kRowSums;
  static constexpr bool kMasked = kFetch == WarpgroupFetch::kMaskedCopies, kBoxes = kFetch == WarpgroupFetch::kBoxes;
  static constexpr bool kTwoSided = kExtra == WarpgroupExtra::kTwoSided;
  static constexpr bool kDecayGradient = kExtra != WarpgroupExtra::kNothing && kIntra && !kForward && kHalves == 1;
  static constexpr bool kHasOwn = kInter && !kRowSums && (kQueries || (kKeys && !kBoth));
  static constexpr bool kHasPrior = kInter && kQueries;
  static constexpr int kChunk = 64, kThreads = 128 * kHalves;
  static constexpr int kMinBlocks = kHalves == 2 ? 1 : (kInter && kUpdate ? 2 : (kForward && kInter ? 4 : 3));
  // Chunks in shared memory, one in use and the others under way: as many as leave room for kMinBlocks.
  static constexpr bool kSumsKeys = kMode == Mode::kSum && kRowsAreQueries;
  static constexpr int kStages = kHalves == 2 || kInter ? 2 : (kSumsKeys ? 4 : 3);
  // Sums of keys set nothing but the columns' weights anew for each chunk. With two sets of those a warp may go on to
  // the next chunk while others are at the last one.
  static constexpr int kWeightSets = kSumsKeys && kHalves == 1 ? 2 : 1;
  static constexpr bool kWaitsAtEnd = (kUpdate && !kRowSums && kWeightSets == 1) || kHalves == 2;

  // Shared memory. A stage holds for each half the rows (x, and for keys k beside v) and the columns that it contracts,
  // then the columns of the slice. With kRowSums the rows x are the values, and the slice holds their features.
  static constexpr int kTile = kChunk * 128;
  static constexpr int kRowTiles = kInter ? (kBoth ? 2 : 1) : 0;
  static constexpr int kHalfBytes = (kRowTiles + (kUpdate && !kRowSums ? 1 : 0)) * kTile;
  static constexpr int kStageBytes = kHalves * kHalfBytes + (kUpdate ? kTile : 0);
  static constexpr int kOwn = kStages * kStageBytes;
  static constexpr int kPrior = kOwn + (kHasOwn ? kHalves * kTile : 0);
  static constexpr int kBlock = kPrior + (kHasPrior ? kHalves * kTile : 0);
  static constexpr int kStates =
      kBlock + (kUpdate ? kTile : 0);  // per half: cosine part, its extra block, sine part, …
  static constexpr int kExchange = kStates + (kInter ? kHalves * 4 * kTile : 0);  // between halves: results, sums
  static constexpr int kExchangeBytes = 4 * 128 * 16 + 128 * 8;
  static constexpr int kArrays = kExchange + (kInter && kHalves == 2 ? 2 * kExchangeBytes : 0);  // per half, as follows
  static constexpr int kWeights = 0;                              // of the columns, as fragments want them
  static constexpr int kRowTurns = kWeights + kWeightSets * 256;  // float2 per row
  static constexpr int kDistances = kRowTurns + kChunk * 8;       // as in the general sweep
  static constexpr int kDistanceSize = 2 * kChunk + 2;
  static constexpr int kSecondDistances = kDistanceSize + 16;  // in banks that the first table's readers leave free
  static constexpr int kDistanceBytes = kIntra ? (kSecondDistances + kDistanceSize) * 4 : 0;
  static constexpr int kRawDenominators = kDistances + kDistanceBytes;  // one set per stage
  static constexpr int kRawBytes = kHasPrior || (!kRowsAreQueries && kUpdate) ? kStages * kChunk * 4 : 0;
  static constexpr int kRawErrors = kRawDenominators + kRawBytes;
  static constexpr int kRowDots = kRawErrors + kRawBytes;     // gradient of the queries: dout·out, this half's part
  static constexpr int kRowFactors = kRowDots + kChunk * 4;   // second of two sides: scales the first one's result
  static constexpr int kBarriers = kRowFactors + kChunk * 4;  // boxes: for each warp one per stage
  static constexpr int kArrayBytes = kBarriers + (kBoxes ? 4 * kStages * 8 : 0);
  static constexpr int kSharedBytes = kArrays + kHalves * kArrayBytes;
  static_assert(!kRowSums || (kQueries && kHalves == 1));
  static constexpr std::uint32_t kBoxBytes = 16 * 128;  // a warp's rows of a tile
  static_assert(!kBoxes || (kForward && kInter && kHalves == 1 && !kTwoSided));
  static_assert(kDistances % 8 == 0 && kRawDenominators % 16 == 0 && kArrayBytes % 16 == 0 &&
                kMinBlocks * (kSharedBytes + 1024) <= 233472);

  const WarpgroupParams& w;
  const SweepParams& p;
  unsigned char* shared;
  std::uint32_t base;
  int half, warp, lane, g, t, head, segment, slice;
  std::int64_t sequence;
  SequenceExtent extent;
  int row_length, column_length, frame_length, padded, lead;
  int feature_base, value_base;  // of the state that this half keeps
  bool reversed;
  double theta, first_position;
  float log_decay, chunk_decay = 1.0F, power = 1.0F;
  double decay_sum = 0.0;
  Turn turn, step;
  float state[2][9][4];
  // What this thread fetches: piece `piece` of rows fetch_row + 4i.
  int fetch_row, piece;
  std::uint32_t piece_offset;
  const Io *x_rows, *x2_rows, *contracted_rows, *slice_rows, *own_rows, *prior_rows;

  __device__ __forceinline__ WarpgroupSweep(const WarpgroupParams& params, unsigned char* memory)
      : w(params), p(params.sweep), shared(memory), base(shared_address(memory)) {}

  // Addresses of tiles in a stage, and arrays.
  __device__ __forceinline__ std::uint32_t x_tile(int stage) const {
    return base + stage * kStageBytes + half * kHalfBytes;
  }
  __device__ __forceinline__ std::uint32_t contracted_tile(int stage) const {
    return x_tile(stage) + kRowTiles * kTile;
  }
  __device__ __forceinline__ std::uint32_t slice_tile(int stage) const {
    return base + stage * kStageBytes + kHalves * kHalfBytes;
  }
  __device__ __forceinline__ std::uint32_t feature_tile(int stage) const {
    return kFeatureRows ? contracted_tile(stage) : slice_tile(stage);
  }
  __device__ __forceinline__ std::uint32_t value_tile(int stage) const {
    if constexpr (kRowSums) return x_tile(stage);
    return kFeatureRows ? slice_tile(stage) : contracted_tile(stage);
  }
  __device__ __forceinline__ std::uint32_t own_tile() const { return base + kOwn + half * kTile; }
  __device__ __forceinline__ std::uint32_t prior_tile() const { return base + kPrior + half * kTile; }
  __device__ __forceinline__ std::uint32_t state_tile(int part) const {
    return base + kStates + (half * 4 + part * 2) * kTile;
  }
  __device__ __forceinline__ unsigned char* array(int offset) const {
    return shared + kArrays + half * kArrayBytes + offset;
  }
  __device__ __forceinline__ std::uint32_t barrier(int stage) const {
    return base + kArrays + kBarriers + (warp * kStages + stage) * 8;
  }
  __device__ __forceinline__ float* floats(int offset) const { return reinterpret_cast<float*>(array(offset)); }

  __device__ __forceinline__ static int weight_set(int position) {
    return kWeightSets == 1 ? 0 : position / kChunk % 2 * 256;
  }

  __device__ __forceinline__ int token_at(int position) const { return reversed ? padded - 1 - position : position; }
  __device__ __forceinline__ static bool has(int token, int length) {
    return static_cast<unsigned>(token) < static_cast<unsigned>(length);
  }
  __device__ __forceinline__ std::uint32_t piece_at(std::uint32_t tile, int i) const {
    return tile + (i % 2 == 0 ? piece_offset : piece_offset ^ 64U) + i * 512;
  }
  __device__ __forceinline__ float* slot_in(float* states, int slots, int index) const {
    const std::int64_t size = 2LL * p.dim * (p.value_dim + 1);
    return states + ((sequence * p.heads + head) * slots + index) * size;
  }
  __device__ __forceinline__ std::int64_t row_scalar_at(int token) const {
    return (extent.batch * p.q_length + extent.q_begin + token) * p.heads + head;
  }
  __device__ __forceinline__ std::int64_t denominator_at(int token) const {
    return extent.batch * p.denominator_batch_stride + (extent.q_begin + token) * p.denominator_time_stride +
           head * p.denominator_head_stride;
  }

  __device__ __forceinline__ const Io* rows_of(const TileSource& source, std::int64_t begin, int position,
                                               int first_column) const {
    return static_cast<const Io*>(source.data) + extent.batch * source.batch_stride + head * source.head_stride +
           (begin + token_at(position + fetch_row)) * static_cast<std::int64_t>(source.time_stride) + first_column +
           piece * 8;
  }

  __device__ __forceinline__ void locate() {
    unsigned index = blockIdx.x;
    slice = 0;
    if constexpr (kHalves == 2) {
      slice = static_cast<int>(index % static_cast<unsigned>(p.slices));
      index /= static_cast<unsigned>(p.slices);
    }
    head = static_cast<int>(index % static_cast<unsigned>(p.heads));
    index /= static_cast<unsigned>(p.heads);
    segment = static_cast<int>(index % static_cast<unsigned>(p.segments));
    sequence = index / static_cast<unsigned>(p.segments);
    extent = extent_of(p, sequence);
    theta = theta_of(p, extent, head);
    first_position = reduced_position(p.position, p.period, sequence);
    log_decay = p.log_decay == nullptr ? 0.0F : p.log_decay[head];
    row_length = kRowsAreQueries ? extent.q_length : extent.k_length;
    column_length = kRowsAreQueries ? extent.k_length : extent.q_length;
    frame_length = p.frame == Frame::kBoth ? max(row_length, column_length)
                                           : (p.frame == Frame::kRows ? row_length : column_length);
    padded = (frame_length + kFrameBlock - 1) / kFrameBlock * kFrameBlock;
    reversed = p.reversed != 0;
    lead = reversed ? padded - frame_length : 0;
    const int any_warp = __shfl_sync(0xffffffffU, threadIdx.x / 32, 0);
    half = kHalves == 2 ? any_warp / 4 : 0;
    warp = any_warp % 4;
    lane = threadIdx.x % 32;
    g = lane / 4;
    t = lane % 4;
    feature_base = (kFeatureRows ? half : slice) * 64;
    value_base = (kFeatureRows ? slice : half) * 64;
    fetch_row = warp * 16 + lane / 8;
    piece = lane % 8;
    piece_offset = static_cast<std::uint32_t>(fetch_row * 128 + ((piece ^ (lane / 8)) * 16));
    step = turn_of(theta, reversed ? -kChunk : kChunk);
  }

  // Fetching, preparing, angles.
  __device__ __forceinline__ void start_rows(int position);
  __device__ __forceinline__ void fetch_tile(std::uint32_t tile, const Io*& rows, const TileSource& source,
                                             int first_column, int length, unsigned seen, int position);
  __device__ __forceinline__ unsigned present_keys(int position) const;
  __device__ __forceinline__ void prepare_features(std::uint32_t tile, int stage);
  __device__ __forceinline__ void fetch(int stage, int position);
  __device__ __forceinline__ void fetch_boxes(int stage, int position);
  __device__ __forceinline__ void fetch_if_before(int end, int stage, int position);
  __device__ __forceinline__ void fetch_own(int position);
  __device__ __forceinline__ void set_extra(int row, float x);
  __device__ __forceinline__ void prepare(int stage, int position);
  __device__ __forceinline__ void set_powers(int first, int last);
  __device__ __forceinline__ void set_turns(int position, bool first_chunk);
  __device__ __forceinline__ void build_distances();
  __device__ __forceinline__ void clear_blocks();
  // The state.
  template <int kFirst, int kEnd, class Visit>
  __device__ __forceinline__ void for_each_state(Visit visit);
  template <int kFirst, int kEnd>
  __device__ __forceinline__ void clear_state();
  template <int kFirst, int kEnd>
  __device__ __forceinline__ void load_state();
  __device__ __forceinline__ void take_state(int part, const float (&sum)[2][9][4]);
  __device__ __forceinline__ void store_state(int index);
  __device__ __forceinline__ void publish_state(int part);
  // Products.
  __device__ __forceinline__ void load_rows(A (&x)[4], std::uint32_t tile, bool relu);
  __device__ __forceinline__ void weigh(float (&scores)[8][4], A (&weights)[4]);
  __device__ __forceinline__ void update(int stage, int position);
  template <int kTiles>
  __device__ __forceinline__ void value_rows_product(int stage, std::uint32_t x_tile, const A (&other)[4],
                                                     float (&out)[kTiles][4]);
  __device__ __forceinline__ void feature_rows_product(int stage, std::uint32_t x_tile, std::uint32_t own, int position,
                                                       const float (&error)[2], const float (&scale)[2],
                                                       A (&weights)[4], float (&out)[8][4]);
  __device__ __forceinline__ void count_between_chunks(std::uint32_t own, int position, const float (&scale)[2],
                                                       const float (&out)[8][4]);
  __device__ __forceinline__ void count_within_chunk(const float (&scores)[8][4], const A (&other)[4]);
  template <int kTiles>
  __device__ __forceinline__ void write_rows(std::uint32_t tile, std::uint32_t own, const Destination& to,
                                             std::int64_t begin, int position, const float (&scale)[2],
                                             float (&out)[kTiles][4]);
  __device__ __forceinline__ void write_half(int stage, const Destination& to, std::int64_t begin, int position,
                                             const float (&scale)[2], float (&mine)[4][4]);
  template <int kTiles>
  __device__ __forceinline__ void exchange(const float (&out)[kTiles][4], float (&mine)[4][4], float (&sums)[2]);
  __device__ __forceinline__ void forward_scale(int position, const float (&sums)[2], float (&scale)[2]);
  __device__ __forceinline__ void query_errors(int stage, int position, float (&error)[2], float (&scale)[2]);
  template <int kTiles>
  __device__ __forceinline__ void finish_rows(int stage, std::uint32_t tile, std::uint32_t own, const Destination& to,
                                              int position, float (&scale)[2], float (&out)[kTiles][4]);
  __device__ __forceinline__ void compute(int stage, int position);
  // From a sum in memory or in registers, or from nothing.
  __device__ __forceinline__ void run(const float (*sum)[2][9][4] = nullptr);
};

}  // namespace cosformer::kernels::cuda
