// Where a block of the Hopper kernels stands: its sequence, head and segment, its threads' share of tiles, and how
// rows come to shared memory.
//
// A tile is a chunk of 64 tokens by 64 columns, swizzled as wgmma.cuh describes. A warp of a warpgroup owns 16 rows of
// every tile that its warpgroup fetches: it fetches them, prepares them, and uses them as its rows.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/hopper/params.h"
#include "kernels/cuda/hopper/wgmma.cuh"
#include "kernels/cuda/numbers.cuh"

namespace cosformer::kernels::cuda {

__device__ __forceinline__ std::uint32_t twice_bf16(float x) {
  return pack_bf16(x, x);
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
// How a state decays from chunk to chunk: by a factor, through growth, or in sums that begin with the last chunk.
enum class Decays : std::uint8_t { kFactor, kGrow, kShrink };

struct HopperPlace {
  using E = HopperEngine;
  using A = E::A;
  using Io = __nv_bfloat16;
  static constexpr int kChunk = 64;
  static constexpr int kTile = kChunk * 128;  // bytes
  // cos(θΔ)γ^Δ by distance, twice: see build_distances.
  static constexpr int kDistanceSize = 2 * kChunk + 2;
  static constexpr int kSecondDistances = kDistanceSize + 16;  // in banks that the first table's readers leave free
  static constexpr int kDistanceBytes = (kSecondDistances + kDistanceSize) * 4;

  const HopperParams& w;
  const SweepParams& p;
  unsigned char* shared;
  std::uint32_t base;
  int warp, lane, g, t, head, segment, slice, sequence;
  int batch, q_begin, k_begin, q_length, k_length;  // as in SequenceExtent, where registers count
  int row_length, column_length, frame_length, padded, lead;
  bool reversed;
  double theta, first_position;
  // growth: see grow.
  float chunk_decay = 1.0F, power = 1.0F, growth = 1.0F, state_factor = 1.0F;
  Turn turn;
  // What this thread fetches: piece `piece` of rows fetch_row + 4i.
  int fetch_row, piece;
  std::uint32_t piece_offset;

  __device__ __forceinline__ HopperPlace(const HopperParams& params, unsigned char* memory)
      : w(params), p(params.sweep), shared(memory), base(shared_address(memory)) {}

  __device__ __forceinline__ int token_at(int position) const { return reversed ? padded - 1 - position : position; }
  __device__ __forceinline__ static bool has(int token, int length) {
    return static_cast<unsigned>(token) < static_cast<unsigned>(length);
  }
  __device__ __forceinline__ std::uint32_t piece_at(std::uint32_t tile, int i) const {
    return tile + (i % 2 == 0 ? piece_offset : piece_offset ^ 64U) + i * 512;
  }
  __device__ __forceinline__ float* slot_in(float* states, int slots, int index) const {
    const std::int64_t size = 2LL * p.dim * (p.value_dim + 1);
    return states + ((static_cast<std::int64_t>(sequence) * p.heads + head) * slots + index) * size;
  }
  // The number of the head's first segment among those of all heads.
  __device__ __forceinline__ std::int64_t first_segment() const {
    return (static_cast<std::int64_t>(sequence) * p.heads + head) * p.segments;
  }
  // Where the state comes from, null: from nothing.
  __device__ __forceinline__ const float* initial_slot() const {
    if (p.initial == InitialState::kZero) return nullptr;
    return slot_in(p.states, p.slots, p.initial == InitialState::kOfSegment ? segment * p.slot_step : p.total_slot);
  }
  __device__ __forceinline__ float log_decay() const { return p.log_decay == nullptr ? 0.0F : p.log_decay[head]; }
  __device__ __forceinline__ std::int64_t row_scalar_at(int token) const {
    return (static_cast<std::int64_t>(batch) * p.q_length + q_begin + token) * p.heads + head;
  }
  __device__ __forceinline__ std::int64_t denominator_at(int token) const {
    return batch * p.denominator_batch_stride + (q_begin + token) * p.denominator_time_stride +
           head * p.denominator_head_stride;
  }
  __device__ __forceinline__ const Io* rows_of(const TileSource& source, int begin, int position,
                                               int first_column) const {
    return static_cast<const Io*>(source.data) + batch * source.batch_stride + head * source.head_stride +
           (begin + token_at(position + fetch_row)) * static_cast<std::int64_t>(source.time_stride) + first_column +
           piece * 8;
  }

  template <bool kSlices, bool kRowsAreQueries>
  __device__ __forceinline__ void locate() {
    unsigned index = blockIdx.x;
    slice = 0;
    if constexpr (kSlices) {
      slice = static_cast<int>(index % static_cast<unsigned>(p.slices));
      index /= static_cast<unsigned>(p.slices);
    }
    head = static_cast<int>(index % static_cast<unsigned>(p.heads));
    index /= static_cast<unsigned>(p.heads);
    segment = static_cast<int>(index % static_cast<unsigned>(p.segments));
    sequence = static_cast<int>(index / static_cast<unsigned>(p.segments));
    const SequenceExtent extent = extent_of(p, sequence);
    batch = static_cast<int>(extent.batch);
    q_begin = static_cast<int>(extent.q_begin);
    k_begin = static_cast<int>(extent.k_begin);
    q_length = extent.q_length;
    k_length = extent.k_length;
    row_length = kRowsAreQueries ? q_length : k_length;
    column_length = kRowsAreQueries ? k_length : q_length;
    frame_length = p.frame == Frame::kBoth ? max(row_length, column_length)
                                           : (p.frame == Frame::kRows ? row_length : column_length);
    padded = (frame_length + kFrameBlock - 1) / kFrameBlock * kFrameBlock;
    reversed = p.reversed != 0;
    lead = reversed ? padded - frame_length : 0;
    warp = __shfl_sync(0xffffffffU, threadIdx.x / 32, 0) % 4;
    lane = threadIdx.x % 32;
    g = lane / 4;
    t = lane % 4;
    fetch_row = warp * 16 + lane / 8;
    piece = lane % 8;
    piece_offset = static_cast<std::uint32_t>(fetch_row * 128 + ((piece ^ (lane / 8)) * 16));
  }

  // The chunks of this block's segment, and whether it is the last one of its sequence.
  struct Span {
    int begin, end;
    bool last;
    // Sums take the last chunk first, so that the first ones are near the memory when a sweep begins with them.
    template <bool kLastFirst>
    __device__ __forceinline__ int chunk(int position) const {
      return kLastFirst ? begin + end - kChunk - position : position;
    }
  };
  __device__ __forceinline__ Span span() const {
    const int begin = segment * p.segment_tokens;
    int end = min(begin + p.segment_tokens, padded);
    if (!reversed) end = min(end, (frame_length + kChunk - 1) / kChunk * kChunk);
    return {max(begin, lead / kChunk * kChunk), end,
            begin < padded ? begin + p.segment_tokens >= padded : segment == 0 && padded == 0};
  }

  // Of a cooperative launch: one segment more than there are blocks of the head, and the first has its own length.
  __device__ __forceinline__ Span cooperative_span(int number) const {
    const int end = p.first_tokens + number * p.segment_tokens;
    return {number == 0 ? 0 : end - p.segment_tokens, min(end, padded), number == p.segments};
  }

  // Starts the copies of this thread's pieces of a tile; `rows` moves on to the next chunk, or to the one before it.
  // `seen`: a bit for each row.
  template <bool kMasked, bool kLastFirst = false>
  __device__ __forceinline__ void fetch_tile(std::uint32_t tile, const Io*& rows, const TileSource& source,
                                             int first_column, int length, unsigned seen, int position) {
    const int sign = reversed ? -4 : 4;
    const std::int64_t stride = static_cast<std::int64_t>(source.time_stride) * sign;
    int token = token_at(position + fetch_row);
    const bool inside = first_column + piece * 8 < source.columns;
    const Io* from = rows;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      copy_async<16>(piece_at(tile, i), from, inside && has(token, length) && (!kMasked || (seen >> i & 1U) != 0));
      from += stride;
      token += sign;
    }
    rows += (kLastFirst ? -16 : 16) * stride;
  }

  // Which of this thread's keys are present, a bit for each row. An absent key is fetched as zeros: its features are
  // zero, and so is all that follows from them.
  template <bool kMasked>
  __device__ __forceinline__ unsigned present_keys(int position) const {
    if constexpr (!kMasked) return 15U;
    const int sign = reversed ? -4 : 4;
    const int token = token_at(position + fetch_row);
    const bool* mask = p.key_mask + batch * p.mask_batch_stride;
    bool seen[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = token + i * sign;
      seen[i] = has(key, k_length) && mask[(k_begin + key) * p.mask_time_stride];
    }
    return (seen[0] ? 1U : 0U) | (seen[1] ? 2U : 0U) | (seen[2] ? 4U : 0U) | (seen[3] ? 8U : 0U);
  }

  // Denominators of the warp's own rows, and where wanted their e.
  template <bool kErrors>
  __device__ __forceinline__ void fetch_row_numbers(float* denominators, float* errors, int position) {
    const int row = warp * 16 + lane % 16;
    const int token = token_at(position + row);
    const bool valid = has(token, q_length);
    if (lane < 16) {
      copy_async<4>(shared_address(denominators + row), p.denominator + (valid ? denominator_at(token) : 0), valid);
    } else if (kErrors) {
      copy_async<4>(shared_address(errors + row), p.row_scalar + (valid ? row_scalar_at(token) : 0), valid);
    }
  }

  // Decays of the chunk at `position`, where they are not those of the chunk before it: rows before `first` and from
  // `last` on are outside the frame. Of its 16 rows a warp's first 16 lanes keep the decay and the turn as rows, the
  // others as columns.
  __device__ __forceinline__ void follow_powers(int position, int& first, int& last) {
    const int now_first = max(lead - position, 0);
    const int now_last = reversed ? kChunk : min(kChunk, frame_length - position);
    if (now_first == first && now_last == last) return;
    first = now_first;
    last = now_last;
    const int r = warp * 16 + lane % 16;
    const float log = log_decay();
    if (lane >= 16) {
      power = r < last ? decay_of(log, last - 1 - r) : 0.0F;
    } else {
      power = decay_of(log, r - first + 1);
    }
    chunk_decay = decay_of(log, last - first);
  }

  // A state may be kept as state/growth, so that decays need no touch of it while growth is neither small nor large:
  // the columns are divided by growth, and the rows multiplied. `state_factor` is what the state takes where it is
  // scaled after all. The chunk's decay goes to growth; returns what this lane's row or column is scaled by.
  __device__ __forceinline__ float grow() {
    constexpr float kLarge = 1 << 20;
    const float before = growth, next = growth * chunk_decay;
    const bool keeps = next >= 1.0F / kLarge && next <= kLarge;
    growth = keeps ? next : 1.0F;
    state_factor = keeps ? 1.0F : next;
    return lane < 16 ? before : __fdividef(1.0F, growth);
  }
  // Sums take the last chunk first: growth is the decay of those that were before it.
  __device__ __forceinline__ float shrink() {
    const float before = growth;
    growth *= chunk_decay;
    return before;
  }

  // What turns are made of waits in shared memory, for each warp: registers are scarce.
  struct alignas(16) Angles {
    double theta, first_position;
    Turn step;  // of a chunk
  };
  static constexpr int kAngleBytes = 4 * sizeof(Angles);
  // Not before the first copies are under way: doubles are slow.
  __device__ __forceinline__ void take_angles() {
    theta = theta_of(p, {batch, q_begin, k_begin, q_length, k_length}, head);
    first_position = reduced_position(p.position, p.period, sequence);
  }
  template <bool kLastFirst>
  __device__ __forceinline__ void keep_angles(unsigned char* at, int tokens = kChunk) {
    const Angles angles{theta, first_position, turn_of(theta, reversed != kLastFirst ? -tokens : tokens)};
    if (lane == 0) reinterpret_cast<Angles*>(at)[warp] = angles;
    __syncwarp();
  }

  // The turn of this lane's row of the chunk at `position`, from that of the chunk before it but where `exact`.
  __device__ __forceinline__ void follow_turn(int position, bool exact, const unsigned char* kept) {
    const Angles& angles = reinterpret_cast<const Angles*>(kept)[threadIdx.x / 32 % 4];
    if (exact) {
      turn = turn_of(angles.theta, angles.first_position + token_at(position + warp * 16 + lane % 16));
    } else {
      const Turn step = angles.step;
      turn = {turn.cosine * step.cosine - turn.sine * step.sine, turn.sine * step.cosine + turn.cosine * step.sine};
    }
  }
  static constexpr int kExactEvery = 16;  // in between, rotations

  // A column's turn times its factor, as bfloat16 in the order of operands: token 16k + 8i + 2t + j at [t][k][i][j],
  // cosines, then sines.
  __device__ __forceinline__ void set_column(Io* columns, int r, float factor) const {
    const int at = (r % 8 / 2 * 8 + r / 16 * 2 + r / 8 % 2) * 2 + r % 2;
    columns[at] = __float2bfloat16_rn(turn.cosine * factor);
    columns[64 + at] = __float2bfloat16_rn(turn.sine * factor);
  }

  // Turns times decays: of the columns as operands want them, of the rows as pairs. `scale`: one more factor of this
  // lane's row or column.
  template <bool kColumns, bool kRows, Decays kDecays>
  __device__ __forceinline__ void set_turns(int position, bool first_chunk, const unsigned char* kept, Io* columns,
                                            float2* rows, float scale = 1.0F) {
    const int r = warp * 16 + lane % 16;
    follow_turn(position, first_chunk || position / kChunk % kExactEvery == 0, kept);
    float factor = power * scale;
    if constexpr (kDecays == Decays::kShrink) factor *= shrink();
    if (kDecays == Decays::kGrow && p.log_decay != nullptr) factor *= grow();
    if (lane >= 16) {
      if constexpr (kColumns) set_column(columns, r, factor);
    } else {
      if constexpr (kRows) rows[r] = {turn.cosine * factor, turn.sine * factor};
    }
  }

  // cos(θΔ)γ^Δ by distance, zero where a row does not see the column: entry kChunk − Δ, and once more shifted by one,
  // so that pairs are aligned in one of them.
  __device__ __forceinline__ void build_distances(float* table) {
    const float log = log_decay();
    for (int i = threadIdx.x % 128; i < kDistanceSize; i += 128) {
      const int distance = kChunk - i;
      const float weight = distance >= p.strict ? turn_of(theta, distance).cosine * decay_of(log, distance) : 0.0F;
      table[i] = weight;
      if (i > 0) table[kSecondDistances + i - 1] = weight;
    }
  }
};

}  // namespace cosformer::kernels::cuda
