// A sweep by one warpgroup with Hopper's asynchronous products, for bfloat16 heads of up to 64 in aligned rows, and
// ReLU: what the general sweep decides at run time is fixed here, because instructions around the products are what a
// sweep's time goes to.
//
// A warp owns 16 rows of every tile: it fetches them, prepares them, uses them as its rows and writes its results over
// them. Features and values are read by the whole warpgroup. The column beyond the values (ones or e) is a block of its
// own behind the tile.
#pragma once

#include "kernels/cuda/hopper/steps.cuh"
#include "kernels/cuda/hopper/tma.cuh"

namespace cosformer::kernels::cuda {

// What a running sweep does beside its results. kDecayGradient: also that of ln γ, from products of each row with what
// the state gave it, and within the chunk Σ (i − j) t_ij, for which the keys' sweep has both factors at hand.
// kKeepsStates: it leaves the states that segments of the backward pass start from, where these are cut otherwise.
enum class NarrowExtra : std::uint8_t { kNothing, kDecayGradient, kKeepsStates };

// By TMA each warp asks for its own tile of 16 rows, and results go the same way: this spares addresses and what else
// copies take. Sums are no faster with it.
template <HopperRole kRole_, Mode kMode, NarrowExtra kExtra, Fetch kFetch>
struct NarrowSweep : HopperSteps {
  static constexpr bool kForward = kRole_ == HopperRole::kForward, kQueries = kRole_ == HopperRole::kQueries,
                        kKeys = kRole_ == HopperRole::kKeys;  // keys: dk and dv in one sweep
  static_assert(kRole_ != HopperRole::kValues);
  static constexpr bool kRowsAreQueries = !kKeys;
  static constexpr bool kIntra = kMode == Mode::kRun, kInter = kMode != Mode::kSum, kUpdate = kMode != Mode::kApply;
  static constexpr bool kRowSums = kMode == Mode::kApplyAndSum;  // the columns that are summed are the rows themselves
  static constexpr bool kQueryColumns = kKeys || kRowSums;
  static constexpr bool kMasked = kFetch == Fetch::kMaskedCpAsync, kTma = kFetch == Fetch::kTma;
  static constexpr bool kDecayGradient = kExtra == NarrowExtra::kDecayGradient;
  static constexpr bool kKeepsStates = kExtra == NarrowExtra::kKeepsStates;
  static constexpr bool kHasOwn = kInter && !kRowSums && kQueries;
  static constexpr bool kHasPrior = kInter && kQueries;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocks = kUpdate ? 2 : (kForward ? 4 : 3);
  // Chunks in shared memory, one in use and the others under way: as many as leave room for kMinBlocks. Sums could have
  // a fifth, but the more they ask for ahead, the less evenly blocks end that wait for each other.
  static constexpr bool kSums = kMode == Mode::kSum;
  static constexpr int kStages = kSums ? 4 : 2;
  // Sums make the next chunk ready while the products of one are under way: its stage is free one chunk later.
  static constexpr int kAhead = kStages - (kSums ? 2 : 1);
  static constexpr bool kLastFirst = kSums;
  // Growth spares instructions, which gradients of keys with a decay have most of. Queries must use the same rounded
  // numbers in both passes: their errors cancel in part.
  static constexpr Decays kDecays =
      kLastFirst ? Decays::kShrink : (kDecayGradient && kKeys ? Decays::kGrow : Decays::kFactor);
  // Forward passes whose rows come by TMA have a first chunk ready before they know what they start from.
  static constexpr bool kReadyBefore = kForward && kIntra && kTma;
  // Sums set the columns' weights anew for each chunk, and of queries the extra columns, which lie beside each other
  // for all stages. With two sets of weights a warp may go on to the next chunk while others are at the last one.
  static constexpr int kWeightSets = kSums ? 2 : 1;
  static constexpr bool kExtraOfStage = kSums && kQueryColumns;
  static constexpr bool kWaitsAtEnd = kUpdate && !kRowSums && !kSums;

  // Shared memory. A stage holds the rows (x, and for keys k beside v), then the columns: features and values. With
  // kRowSums the rows x are the values, and their features follow.
  static constexpr int kRowTiles = kInter ? (kKeys ? 2 : 1) : 0;
  static constexpr int kStageBytes = (kRowTiles + (kUpdate ? (kRowSums ? 1 : 2) : 0)) * kTile;
  static constexpr int kOwn = kStages * kStageBytes;
  static constexpr int kPrior = kOwn + (kHasOwn ? kTile : 0);
  static constexpr int kStates = kPrior + (kHasPrior ? kTile : 0);  // cosine part, sine part
  // The extra blocks, of the columns and of the state's parts, lie beside each other in one tile's rows.
  static constexpr int kExtras = kStates + (kInter ? 2 * kTile : 0);
  static constexpr int kArrays = kExtras + kTile;
  static constexpr int kWeights = kArrays;                        // of the columns, as fragments want them
  static constexpr int kRowTurns = kWeights + kWeightSets * 256;  // float2 per row
  static constexpr int kDistances = kRowTurns + kChunk * 8;
  static constexpr int kRawDenominators = kDistances + (kIntra ? kDistanceBytes : 0);  // one set per stage
  static constexpr int kRawBytes = kHasPrior || (kKeys && kUpdate) ? kStages * kChunk * 4 : 0;
  static constexpr int kRawErrors = kRawDenominators + kRawBytes;
  // Gradient of the queries: dout·out. Before the loop of a cooperative launch: extra columns of the state.
  static constexpr int kRowDots = kRawErrors + kRawBytes;
  static constexpr int kAngles = kRowDots + 2 * kChunk * 4;
  static constexpr int kDecaySums = kAngles + kAngleBytes;  // a double for each thread
  static constexpr int kRowStash = kDecaySums + (kDecayGradient ? kThreads * 8 : 0);
  static constexpr int kBarriers =
      kRowStash + (kKeys && kDecayGradient ? 4 * kThreads * 8 : 0);  // each warp's, per stage
  static constexpr int kSharedBytes = kBarriers + (kTma ? 4 * kStages * 8 : 0);
  static_assert(!kRowSums || kQueries);
  static constexpr std::uint32_t kTmaBytes = 16 * 128;  // a warp's rows of a tile
  static_assert(!kTma || (kForward && kInter));
  static_assert(!kDecayGradient || (kIntra && !kForward));
  static_assert(kDistances % 8 == 0 && kRawDenominators % 16 == 0 && kAngles % 16 == 0 &&
                kMinBlocks * (kSharedBytes + 1024) <= 233472);

  float state[2][9][4];
  const Io *own_rows, *prior_rows;
  // Where the next rows come from: x, k beside v, features, values. Kept in shared memory where registers are scarcest.
  static constexpr bool kStashesRows = kKeys && kDecayGradient;
  const Io* rows_in_registers[kStashesRows ? 1 : 4];
  __device__ __forceinline__ const Io*& rows_from(int number) {
    if constexpr (kStashesRows)
      return reinterpret_cast<const Io**>(shared + kRowStash)[number * kThreads + threadIdx.x];
    return rows_in_registers[kStashesRows ? 0 : number];
  }

  using HopperSteps::HopperSteps;

  // Where results go: out, dq, or dk and dv.
  __device__ __forceinline__ Target target(int number, int position) const {
    return target_of(number == 0 ? w.first : w.second, kRowsAreQueries ? q_begin : k_begin, position);
  }

  // The stage of the chunk that is fetched while another is at work.
  __device__ __forceinline__ static int stage_ahead(int stage) {
    return stage + kAhead < kStages ? stage + kAhead : stage + kAhead - kStages;
  }
  // Addresses of tiles in a stage, and arrays.
  __device__ __forceinline__ std::uint32_t x_tile(int stage) const { return base + stage * kStageBytes; }
  __device__ __forceinline__ std::uint32_t feature_tile(int stage) const { return x_tile(stage) + kRowTiles * kTile; }
  __device__ __forceinline__ std::uint32_t value_tile(int stage) const {
    return kRowSums ? x_tile(stage) : feature_tile(stage) + kTile;
  }
  __device__ __forceinline__ std::uint32_t own_tile() const { return base + kOwn; }
  __device__ __forceinline__ std::uint32_t prior_tile() const { return base + kPrior; }
  __device__ __forceinline__ std::uint32_t state_tile(int part) const { return base + kStates + part * kTile; }
  // Pieces of 16 bytes; two for each, since the matrix unit contracts 16 columns at once.
  static constexpr __device__ int state_piece(int part) { return 2 + 2 * part; }
  __device__ __forceinline__ std::uint32_t state_extra(int part) const {
    return base + kExtras + state_piece(part) * 16;
  }
  // The columns' extra block.
  __device__ __forceinline__ static constexpr int column_piece(int stage) { return kExtraOfStage ? 2 * stage : 0; }
  __device__ __forceinline__ std::uint32_t column_extra(int stage) const {
    return base + kExtras + column_piece(stage) * 16;
  }
  __device__ __forceinline__ std::uint32_t barrier(int stage) const {
    return base + kBarriers + (warp * kStages + stage) * 8;
  }
  __device__ __forceinline__ float* floats(int offset) const { return reinterpret_cast<float*>(shared + offset); }
  __device__ __forceinline__ float* denominators(int stage) const { return floats(kRawDenominators) + stage * kChunk; }
  __device__ __forceinline__ Io* weights_at(int position) const {
    return reinterpret_cast<Io*>(shared + kWeights + (kWeightSets == 1 ? 0 : position / kChunk % 2 * 256));
  }
  __device__ __forceinline__ double& decay_sum() const {
    return reinterpret_cast<double*>(shared + kDecaySums)[threadIdx.x];
  }
  __device__ __forceinline__ float2* row_turns() const { return reinterpret_cast<float2*>(shared + kRowTurns); }

  // Fetching and preparing.
  __device__ __forceinline__ void start_rows(int position);
  __device__ __forceinline__ void fetch(int stage, int position);
  __device__ __forceinline__ void fetch_by_tma(int stage, int position);
  __device__ __forceinline__ void fetch_if(bool wanted, int stage, int position);
  __device__ __forceinline__ void fetch_own(int end, int position);
  __device__ __forceinline__ void await_own() {
    if constexpr (!kHasOwn) return;
    wait_copies<1>();
    __syncwarp();
  }
  __device__ __forceinline__ void prepare(int stage, int position);
  __device__ __forceinline__ void set_error_columns(int stage);
  __device__ __forceinline__ void clear_blocks();
  // The state.
  // From memory; sums begin with nothing.
  __device__ __forceinline__ void begin_state(int part);
  __device__ __forceinline__ void take_state(int part, const float (&sum)[2][9][4]);
  __device__ __forceinline__ void store_state(float* slot);
  __device__ __forceinline__ void store_state(int index) {
    store_state(kRowSums ? slot_in(w.sums, w.sum_slots, index) : slot_in(p.states, p.slots, index));
  }
  // The same of one that runs on, whose bits stay as they are.
  __device__ __forceinline__ void keep_state(float* slot);
  __device__ __forceinline__ void publish_state(int part);
  __device__ __forceinline__ void settle_state() {
    wgmma::wait<0>();
    wgmma::settle(state[0]);
    wgmma::settle(state[1]);
  }
  // Products.
  __device__ __forceinline__ void update(int stage, int position);
  __device__ __forceinline__ void add_to_state(int stage, const A (&parts)[2][4]);
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
  __device__ __forceinline__ void finish_rows(std::uint32_t tile, std::uint32_t own, int number, int position,
                                              float (&scale)[2], float (&out)[kTiles][4]);
  __device__ __forceinline__ void compute(int stage, int position);
  template <class Meanwhile>
  __device__ __forceinline__ void sum_columns(const Span& chunks, Meanwhile meanwhile);
  __device__ __forceinline__ void place() { locate<false, kRowsAreQueries>(); }
  // `meanwhile` is done while the first rows come, or products of the first are under way; `start` puts into a part of
  // the state what it starts from.
  template <class Meanwhile, class Start>
  __device__ __forceinline__ void run(Meanwhile meanwhile, Start start);
  // These chunks, after place.
  template <class Meanwhile, class Start>
  __device__ __forceinline__ void run(const Span& chunks, Meanwhile meanwhile, Start start);
  // Before another sweep sets up its own.
  __device__ __forceinline__ void retire_barriers() const {
    if constexpr (!kTma) return;
    for (int stage = 0; stage < kStages && lane == 0; ++stage) mbarrier::inval(barrier(stage));
  }
};

}  // namespace cosformer::kernels::cuda
