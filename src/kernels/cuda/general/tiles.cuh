// How the sweep kernel brings tiles of rows into shared memory as operands of the matrix unit.
//
// 16-bit tiles travel by asynchronous copies, one chunk ahead, and are then prepared in place (feature map, mask,
// scaling) by the thread that fetched them. Wider operands are loaded, prepared and stored at once.
#pragma once

#include "kernels/cuda/general/tile_config.cuh"
#include "kernels/cuda/numbers.cuh"

namespace cosformer::kernels::cuda {

enum class Prepare : std::uint8_t { kPlain, kMap, kMask, kScale };

// One side of the sequence: its rows in memory, and which positions of the frame they are.
struct Side {
  std::int64_t batch, begin;  // `begin` is the token at position 0, along the tensor's time
  int length;
  int padded;  // the frame's length
  bool reversed;

  __device__ __forceinline__ int token_at(int position) const { return reversed ? padded - 1 - position : position; }
  __device__ __forceinline__ bool has(int token) const {
    return static_cast<unsigned>(token) < static_cast<unsigned>(length);
  }
};

template <class Io>
struct Rows {
  const Io* data;
  int time_stride;
  int columns;
  bool aligned;
};

template <class Io>
__device__ __forceinline__ const Io* first_row_of(const TileSource& source, const Side& side, int head,
                                                  int first_column) {
  return static_cast<const Io*>(source.data) + side.batch * source.batch_stride +
         side.begin * static_cast<std::int64_t>(source.time_stride) + head * source.head_stride + first_column;
}

template <class Io>
constexpr int kPieceElements = 16 / int(sizeof(Io));

// Calls visit(row, column) for the 16-byte pieces of this thread; the pieces of a row belong to one warp's lanes.
template <class Config, int kWidth, class Visit>
__device__ __forceinline__ void for_each_piece(Visit visit) {
  constexpr int kPieces = kWidth / kPieceElements<typename Config::Io>;
  constexpr int kLanes = kPieces < 32 ? kPieces : 32;
  constexpr int kRows = Config::kThreads / kLanes;
  const int first_row = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
#pragma unroll
  for (int row = 0; row < Config::kChunk; row += kRows) {
    if (kRows > Config::kChunk && first_row >= Config::kChunk) break;
#pragma unroll
    for (int piece = 0; piece < kPieces; piece += kLanes) {
      visit(row + first_row, (piece + lane) * kPieceElements<typename Config::Io>);
    }
  }
}

template <class Io>
__device__ __forceinline__ void unpack(float (&x)[kPieceElements<Io>], const void* piece) {
  const uint4 raw = *static_cast<const uint4*>(piece);
  const Io* elements = reinterpret_cast<const Io*>(&raw);
#pragma unroll
  for (int i = 0; i < kPieceElements<Io>; ++i) x[i] = to_float(elements[i]);
}

template <class Io>
__device__ __forceinline__ void load_piece(float (&x)[kPieceElements<Io>], const Rows<Io>& rows, int token, int column,
                                           bool valid) {
  const Io* p = rows.data + static_cast<std::int64_t>(token) * rows.time_stride + column;
  if (rows.aligned && valid && column < rows.columns) {
    unpack<Io>(x, p);
    return;
  }
#pragma unroll
  for (int i = 0; i < kPieceElements<Io>; ++i) x[i] = valid && column + i < rows.columns ? to_float(p[i]) : 0.0F;
}

template <class Operand, int kCount>
__device__ __forceinline__ void store_piece(Operand* p, const float (&x)[kCount]) {
  if constexpr (sizeof(Operand) == 2) {
    static_assert(kCount == 8);
    using Pairs = Pair<Operand>;
    *reinterpret_cast<uint4*>(p) =
        make_uint4(Pairs::pack(x[0], x[1]), Pairs::pack(x[2], x[3]), Pairs::pack(x[4], x[5]), Pairs::pack(x[6], x[7]));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      *reinterpret_cast<float4*>(p + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
    }
  }
}

// kScale divides by `divisor` or, for 16-bit operands, multiplies by its inverse.
template <Prepare kPrepare, bool kDivide, int kCount>
__device__ __forceinline__ void prepare(float (&x)[kCount], FeatureMap map, bool present, float divisor, int columns) {
  const float inverse = kDivide ? 1.0F : __fdividef(1.0F, divisor);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kPrepare == Prepare::kMap) x[i] = present && i < columns ? map_forward(map, x[i]) : 0.0F;
    if constexpr (kPrepare == Prepare::kMask) x[i] = present ? x[i] : 0.0F;
    if constexpr (kPrepare == Prepare::kScale) x[i] = kDivide ? x[i] / divisor : x[i] * inverse;
  }
}

// Starts the copies of one tile, the chunk at `position`.
template <class Config, int kWidth>
__device__ __forceinline__ void fetch_tile(typename Config::Operand* tile, int pitch,
                                           const Rows<typename Config::Io>& rows, const Side& side, int position) {
  using Io = typename Config::Io;
  if (rows.aligned) {
    constexpr int kPieces = kWidth / kPieceElements<Io>;
    constexpr int kLanes = kPieces < 32 ? kPieces : 32;
    constexpr int kRows = Config::kThreads / kLanes;
    static_assert(kPieces <= 32 || !Config::kAsync);
    const int first_row = threadIdx.x / kLanes, column = threadIdx.x % kLanes * kPieceElements<Io>;
    if (kRows > Config::kChunk && first_row >= Config::kChunk) return;
    int token = side.token_at(position + first_row);
    const int step = side.reversed ? -kRows : kRows;
    const Io* from = rows.data + static_cast<std::int64_t>(token) * rows.time_stride + column;
    const std::int64_t step_elements = static_cast<std::int64_t>(step) * rows.time_stride;
    Io* to = reinterpret_cast<Io*>(tile + first_row * pitch + column);
    const bool inside = column < rows.columns;
#pragma unroll
    for (int row = 0; row < Config::kChunk; row += kRows) {
      copy_async<16>(shared_address(to + row * pitch), from, inside && side.has(token));
      from += step_elements;
      token += step;
    }
    return;
  }
  for_each_piece<Config, kWidth>([&](int row, int column) {
    const int token = side.token_at(position + row);
    const bool valid = side.has(token);
    auto* target = tile + row * pitch + column;
    const auto* p = rows.data + static_cast<std::int64_t>(token) * rows.time_stride + column;
#pragma unroll
    for (int i = 0; i < kPieceElements<Io>; ++i) {
      target[i] = valid && column + i < rows.columns ? p[i] : from_float<Io>(0.0F);
    }
  });
}

// Makes operands of this thread's pieces. present(token) and divisor(row, token) are asked once per piece.
template <class Config, int kWidth, Prepare kPrepare, class Present, class Divisor>
__device__ __forceinline__ void finish_tile(typename Config::Operand* tile, int pitch,
                                            const Rows<typename Config::Io>& rows, const Side& side, int position,
                                            FeatureMap map, bool masked, Present present, Divisor divisor) {
  using Io = typename Config::Io;
  if constexpr (Config::kAsync) {
    if constexpr (kPrepare == Prepare::kPlain) return;
    if (kPrepare == Prepare::kMask && !masked) return;
    if (kPrepare == Prepare::kMap && !masked &&
        map == FeatureMap::kRelu) {  // rows and columns outside are zero already
      for_each_piece<Config, kWidth>([&](int row, int column) {
        uint4* p = reinterpret_cast<uint4*>(tile + row * pitch + column);
        uint4 raw = *p;
        using Vector = typename Pair<Io>::Vector;
        Vector* pairs = reinterpret_cast<Vector*>(&raw);
#pragma unroll
        for (int i = 0; i < 4; ++i) pairs[i] = __hmax2(pairs[i], Vector(from_float<Io>(0.0F), from_float<Io>(0.0F)));
        *p = raw;
      });
      return;
    }
  }
  for_each_piece<Config, kWidth>([&](int row, int column) {
    const int token = side.token_at(position + row);
    auto* p = tile + row * pitch + column;
    float x[kPieceElements<Io>];
    if constexpr (Config::kAsync) {
      unpack<Io>(x, p);
    } else {
      load_piece<Io>(x, rows, token, column, side.has(token));
    }
    prepare<kPrepare, Config::kWide>(x, map, present(token), divisor(row, token), rows.columns - column);
    store_piece(p, x);
  });
}

}  // namespace cosformer::kernels::cuda
