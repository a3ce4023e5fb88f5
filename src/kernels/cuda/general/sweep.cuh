// The general kernel: chunks of one head of one sequence in order, the state in registers.
//
// A block owns one slice of value columns and one segment of the sequence. Per chunk: scores of the chunk against
// itself times a table of cos(θΔ)γ^Δ, times the values (intra); rows against the state that entered the chunk (inter);
// the state decayed over the chunk and increased by the chunk's own sum (update). Angles in the state are those of the
// tokens' positions, decays are relative to the chunk.
#pragma once

#include "kernels/cuda/general/tiles.cuh"

namespace cosformer::kernels::cuda {

template <class Config>
struct Sweep {
  using C = Config;
  using Io = typename C::Io;
  using Engine = typename C::Engine;
  using Operand = typename C::Operand;
  using A = typename Engine::A;
  using B = typename Engine::B;
  using Tile = typename Engine::Tile;
  static constexpr int kChunk = C::kChunk;
  static constexpr Role kRole = C::kRole;

  const SweepParams& p;
  unsigned char* shared;
  float* arrays;
  Operand* state_tile;
  int set = 0;
  int head, slice, segment, warp, lane, g, t, row_warp, column_warp, first_value;
  std::int64_t sequence;
  SequenceExtent extent;
  Side rows, columns;  // x, own, destination; y, z
  int frame_length, lead, padded;
  double theta, first_position;
  float log_decay;
  float state[2][C::kStateTiles][C::kStateColumns][4];
  float state_unit = 1.0F;  // what 1 in the published state stands for
  // Float data: what rounding took from the state so far, given back with the next chunk.
  static constexpr bool kCompensated = sizeof(Io) == 4;
  float lost[2][C::kStateTiles][kCompensated ? C::kStateColumns : 1][4];

  __device__ __forceinline__ Sweep(const SweepParams& params, unsigned char* memory) : p(params), shared(memory) {}

  // An array of the chunk at hand, and one of those with a place of their own.
  __device__ __forceinline__ float* array(int which) const { return arrays + (set * C::kArrays + which) * kChunk; }
  __device__ __forceinline__ float* lasting(int which) const { return arrays + which * kChunk; }
  __device__ __forceinline__ Operand* tile(int stage, int offset) const {
    return reinterpret_cast<Operand*>(shared + stage * C::kStageBytes + offset);
  }
  __device__ __forceinline__ const Side& queries() const { return C::kRowsAreQueries ? rows : columns; }
  __device__ __forceinline__ const Side& keys() const { return C::kRowsAreQueries ? columns : rows; }

  __device__ __forceinline__ bool key_present(int token) const {
    return keys().has(token) &&
           (p.key_mask == nullptr ||
            p.key_mask[extent.batch * p.mask_batch_stride + (extent.k_begin + token) * p.mask_time_stride]);
  }
  __device__ __forceinline__ std::int64_t row_scalar_at(int token) const {
    return (extent.batch * p.q_length + extent.q_begin + token) * p.heads + head;
  }
  __device__ __forceinline__ std::int64_t denominator_at(int token) const {
    return extent.batch * p.denominator_batch_stride + (extent.q_begin + token) * p.denominator_time_stride +
           head * p.denominator_head_stride;
  }
  __device__ __forceinline__ float* slot(int index) const {
    const std::int64_t size = 2LL * p.dim * (p.value_dim + 1);
    return p.states + ((sequence * p.heads + head) * p.slots + index) * size;
  }

  __device__ __forceinline__ void locate() {
    unsigned index = blockIdx.x;
    slice = static_cast<int>(index % static_cast<unsigned>(p.slices));
    index /= static_cast<unsigned>(p.slices);
    head = static_cast<int>(index % static_cast<unsigned>(p.heads));
    index /= static_cast<unsigned>(p.heads);
    segment = static_cast<int>(index % static_cast<unsigned>(p.segments));
    sequence = index / static_cast<unsigned>(p.segments);
    extent = extent_of(p, sequence);
    theta = theta_of(p, extent, head);
    first_position = reduced_position(p.position, p.period, sequence);
    log_decay = p.log_decay == nullptr ? 0.0F : p.log_decay[head];
    const int row_length = C::kRowsAreQueries ? extent.q_length : extent.k_length;
    const int column_length = C::kRowsAreQueries ? extent.k_length : extent.q_length;
    frame_length = p.frame == Frame::kBoth ? max(row_length, column_length)
                                           : (p.frame == Frame::kRows ? row_length : column_length);
    padded = (frame_length + kFrameBlock - 1) / kFrameBlock * kFrameBlock;
    lead = p.reversed ? padded - frame_length : 0;
    const bool reversed = p.reversed != 0;
    rows = {extent.batch, C::kRowsAreQueries ? extent.q_begin : extent.k_begin, row_length, padded, reversed};
    columns = {extent.batch, C::kRowsAreQueries ? extent.k_begin : extent.q_begin, column_length, padded, reversed};
    warp = threadIdx.x / 32;
    lane = threadIdx.x % 32;
    g = lane / 4;
    t = lane % 4;
    row_warp = warp % C::kRowWarps;
    column_warp = warp / C::kRowWarps;
    first_value = slice * C::kValues;
    arrays = reinterpret_cast<float*>(shared + C::kScalars);
    state_tile = reinterpret_cast<Operand*>(shared + C::kState);
    if (threadIdx.x == 0) {
      const Turn step = turn_of(theta, p.reversed ? -kChunk : kChunk);
      arrays[C::kStep] = step.cosine;
      arrays[C::kStep + 1] = step.sine;
      const Io** pointers = reinterpret_cast<const Io**>(arrays + C::kPointers);
      pointers[C::kXRows] = first_row_of<Io>(p.x, rows, head, 0);
      pointers[C::kYRows] = first_row_of<Io>(p.y, columns, head, 0);
      pointers[C::kZRows] = first_row_of<Io>(p.z, columns, head, first_value);
      pointers[C::kOwnRows] = first_row_of<Io>(p.own, rows, head, first_value);
      pointers[C::kPriorRows] = first_row_of<Io>(p.prior, rows, head, 0);
    }
    __syncthreads();
  }

  __device__ __forceinline__ Rows<Io> rows_of(const TileSource& source, int which, int first_column) const {
    return {reinterpret_cast<const Io* const*>(arrays + C::kPointers)[which], source.time_stride,
            source.columns - first_column, source.aligned != 0};
  }

  // cos(θΔ)γ^Δ by distance, zero where a row does not see the column: entry kChunk − Δ, twice (see Config).
  __device__ __forceinline__ void build_distances() {
    float* table = arrays + C::kDistance;
    for (int i = threadIdx.x; i < C::kDistanceSize; i += C::kThreads) {
      const int distance = kChunk - i;
      const float weight =
          distance >= p.strict ? turn_of(theta, distance).cosine * decay_of(log_decay, distance) : 0.0F;
      table[i] = weight;
      if (i > 0) table[C::kDistanceSize + i - 1] = weight;
    }
  }

  // Decays of a chunk whose rows before `first` and from `last` on are outside the frame. The state enters as of row
  // `first` and leaves as of row `last`.
  __device__ __forceinline__ void build_powers(int first, int last) {
    const int r = threadIdx.x;
    if (r < kChunk) {
      lasting(C::kRowPower)[r] = decay_of(log_decay, r - first + 1);
      lasting(C::kSumPower)[r] = r < last ? decay_of(log_decay, last - 1 - r) : 0.0F;
    }
    if (r == 0) arrays[C::kChunkDecay + 2] = decay_of(log_decay, last - first);
  }

  // Angles of the chunk's tokens, with the decays where a state runs along.
  __device__ __forceinline__ void build_angles(int position, bool powers, bool first_chunk) {
    const int r = threadIdx.x;
    if (r >= kChunk) return;
    if (powers && r == 0) arrays[C::kChunkDecay + set] = arrays[C::kChunkDecay + 2];
    // 16-bit operands bear a few rotations; every kExactEvery-th chunk the angle is taken anew.
    constexpr int kExactEvery = C::kWide ? 1 : 16;
    Turn turn;
    if (first_chunk || position / kChunk % kExactEvery == 0) {
      turn = turn_of(theta, first_position + rows.token_at(position + r));
    } else {
      const float c = lasting(C::kCosine)[r], s = lasting(C::kSine)[r];
      const float step_c = arrays[C::kStep], step_s = arrays[C::kStep + 1];
      turn = {c * step_c - s * step_s, s * step_c + c * step_s};
    }
    if constexpr (!C::kWide) {
      lasting(C::kCosine)[r] = turn.cosine;
      lasting(C::kSine)[r] = turn.sine;
    }
    const float power = powers ? lasting(C::kRowPower)[r] : 1.0F;
    if constexpr (C::kWide) {
      array(C::kRowCosine)[r] = turn.cosine * power;
      array(C::kRowTangent)[r] = turn.sine * power;
    } else {  // (x S_sin tan θ + x S_cos) cos θ needs one set of accumulators
      constexpr float kSmallest = Engine::kNarrowRange ? 1e-9F : 1e-18F;  // units leave less room for a large tangent
      const float safe = fabsf(turn.cosine) < kSmallest ? kSmallest : turn.cosine;
      array(C::kRowCosine)[r] = safe * power;
      array(C::kRowTangent)[r] = __fdividef(turn.sine, safe);
    }
    if (powers) {
      const float weight = lasting(C::kSumPower)[r];
      array(C::kSumCosine)[r] = turn.cosine * weight;
      array(C::kSumSine)[r] = turn.sine * weight;
      if constexpr (!kFloatWeights) {  // as the matrix unit takes them
        weight_array(0)[r] = from_float<Operand>(turn.cosine * weight);
        weight_array(1)[r] = from_float<Operand>(turn.sine * weight);
      }
    }
  }
  // The two weights of the sum in the engine's own type.
  static constexpr bool kFloatWeights = std::is_same_v<typename Engine::Weight, float>;
  __device__ __forceinline__ typename Engine::Weight* weight_array(int part) const {
    if constexpr (kFloatWeights) {
      return array(part == 0 ? C::kSumCosine : C::kSumSine);
    } else {
      return reinterpret_cast<Operand*>(array(C::kWeights)) + part * kChunk;
    }
  }

  // This warp's part of the state.
  __device__ __forceinline__ int state_row(int m) const {
    return (warp % (C::kWarps / C::kStateSplit) * C::kStateTiles + m) * 16;
  }
  __device__ __forceinline__ int state_split() const { return warp / (C::kWarps / C::kStateSplit); }
  __device__ __forceinline__ int state_column(int n) const {  // the extra column comes last
    return n == C::kSplitTiles ? C::kValues : (state_split() * C::kSplitTiles + n) * 8;
  }

  // The slot's element for feature f and value column u (of this block), or null outside.
  __device__ __forceinline__ float* slot_element(float* base, int part, int f, int u) const {
    const int value = first_value + u;
    if constexpr (C::kValueTransposed) {
      if (f >= p.value_dim || value >= p.dim) return nullptr;
      return base + (part * p.dim + value) * p.value_dim + f;
    } else {
      if (f >= p.dim || u >= C::kValues || value >= p.value_dim) return nullptr;
      return base + (part * p.dim + f) * p.value_dim + value;
    }
  }
  __device__ __forceinline__ float* slot_extra(float* base, int part, int d) const {
    return d < p.dim ? base + 2 * p.dim * p.value_dim + part * p.dim + d : nullptr;
  }

  template <class Visit>
  __device__ __forceinline__ void for_each_state(Visit visit) {
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m)
#pragma unroll
        for (int n = 0; n < C::kStateColumns; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int f = state_row(m) + g + (i / 2) * 8;
            const int u = state_column(n) + 2 * t + i % 2;
            visit(part, f, u, state[part][m][n][i]);
          }
  }

  __device__ __forceinline__ void load_state() {
    float* base = p.initial == InitialState::kZero
                      ? nullptr
                      : slot(p.initial == InitialState::kOfSegment ? segment * p.slot_step : p.total_slot);
    for_each_state([](int, int, int, float& x) { x = 0.0F; });
    if constexpr (kCompensated) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(lost) / sizeof(float)); ++i) (&lost[0][0][0][0])[i] = 0.0F;
    }
    const auto load = [&](int part, int f, int u, float& x) {
      const float* from = nullptr;
      if (C::kExtraColumn && u >= C::kValues) {
        if (u == C::kValues) from = slot_extra(base, part, f);
      } else {
        from = slot_element(base, part, f, u);
      }
      if (from != nullptr) x = *from;
    };
    if (base != nullptr) for_each_state(load);
    if constexpr (C::kExtraFeature) {
      for (int i = threadIdx.x; i < 2 * C::kValues; i += C::kThreads) {
        const float* from = base == nullptr ? nullptr : slot_extra(base, i / C::kValues, first_value + i % C::kValues);
        arrays[C::kExtraState + i] = from == nullptr ? 0.0F : *from;
      }
    }
  }

  __device__ __forceinline__ void store_state(int index) {
    float* base = slot(index);
    if constexpr (C::kExtraColumn) {  // the extra column may have come as two, head and rest of a float
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int m = 0; m < C::kStateTiles; ++m) {
          float(&x)[4] = state[part][m][C::kSplitTiles];
          x[0] += x[1];
          x[2] += x[3];
        }
    }
    for_each_state([&](int part, int f, int u, float& x) {
      float* to = nullptr;
      if (C::kExtraColumn && u >= C::kValues) {
        if (u == C::kValues && slice == 0 && state_split() == 0) to = slot_extra(base, part, f);
      } else {
        to = slot_element(base, part, f, u);
      }
      if (to != nullptr) *to = x;
    });
    if constexpr (C::kExtraFeature) {
      for (int i = threadIdx.x; i < 2 * C::kValues; i += C::kThreads) {
        float* to = slot_extra(base, i / C::kValues, first_value + i % C::kValues);
        if (to != nullptr) *to = arrays[C::kExtraState + i];
      }
    }
  }

  // Numbers of a narrow range: notes how large the state is. A barrier lies between this and publish_state.
  __device__ __forceinline__ void measure_state() {
    if constexpr (Engine::kNarrowRange) {
      float largest = 0.0F;
      for_each_state([&](int, int, int, float& x) { largest = fmaxf(largest, fabsf(x)); });
#pragma unroll
      for (int offset = 16; offset > 0; offset /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
      }
      if (lane == 0) arrays[C::kLargest + warp] = largest;
    }
  }

  // Puts the state where the matrix unit can read it as an operand.
  __device__ __forceinline__ void publish_state() {
    const Tile target = Engine::tile_at(state_tile);
    float scale = 1.0F;
    if constexpr (Engine::kNarrowRange) {
      float largest = 0.0F;
#pragma unroll
      for (int i = 0; i < C::kWarps; ++i) largest = fmaxf(largest, arrays[C::kLargest + i]);
      const HalfUnit unit = half_unit_of(largest);
      state_unit = unit.value;
      scale = unit.inverse;
    }
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
      for (int m = 0; m < C::kStateTiles; ++m)
#pragma unroll
        for (int n = 0; n < C::kStateColumns; ++n) {
          if (n == C::kSplitTiles && state_split() != 0) continue;
          const int to = part * C::kStatePart + (state_row(m) + g) * C::kStatePitch + state_column(n) + 2 * t;
          const float(&x)[4] = state[part][m][n];
          Engine::store_pair(target, to, scale * x[0], scale * x[1]);
          Engine::store_pair(target, to + 8 * C::kStatePitch, scale * x[2], scale * x[3]);
        }
  }

  __device__ __forceinline__ void run();
  __device__ __forceinline__ void fetch(int stage, int position);
  __device__ __forceinline__ void finish(int stage, int position);
  __device__ __forceinline__ void compute(int stage, int position, double& decay_sum);
  __device__ __forceinline__ void score(int stage, const A (&x_kept)[C::kKeptSteps],
                                        typename Engine::Weights (&weights)[kChunk / C::kDepth],
                                        HalfUnit (&row_unit)[2], double& decay_sum);
  __device__ __forceinline__ void apply_state(int stage, int position, const A (&x_kept)[C::kKeptSteps],
                                              const HalfUnit (&row_unit)[2], float (&out)[C::kOutTiles + 1][4],
                                              double& decay_sum);
  template <bool kSums, bool kScores>
  __device__ __forceinline__ void add_chunk(int stage, const typename Engine::Weights (&weights)[kChunk / C::kDepth],
                                            float (&out)[C::kOutTiles + 1][4]);
  __device__ __forceinline__ void precise_update(int stage);
  __device__ __forceinline__ auto extra_column(int stage, int k) const;
  __device__ __forceinline__ void extra_feature_sum(int stage, float (&sum)[2][2]);
  __device__ __forceinline__ void write_rows(int stage, int position, float (&out)[C::kOutTiles + 1][4]);
};

}  // namespace cosformer::kernels::cuda
