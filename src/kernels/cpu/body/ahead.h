// Fetching the next chunk's rows while this chunk's products run.
//
// With [batch, time, heads, dim] in memory a head's rows lie far apart, where no hardware prefetcher follows. Without
// this a third of the forward pass waits for them (docs/decisions/cpu-kernels.md).
#pragma once

#include "kernels/cpu/body/rows.h"
#include "kernels/cpu/grid.h"

namespace cosformer::kernels::cpu {
namespace {

class Ahead {
 public:
  // Forgets what is still to be fetched. The fewer tiles a chunk's products have, the more rows each has to fetch.
  void restart(Index rows_per_step) {
    count_ = 0;
    rows_per_step_ = rows_per_step;
  }

  template <class AnyView>
  void add(const AnyView& view, DType dtype, Index batch, Index time, Index head, Index rows, Index width) {
    if (rows <= 0 || view.data == nullptr || count_ == kStreams) return;
    const auto* first = static_cast<const char*>(row_at(view, dtype, batch, time, head));
    streams_[count_++] = {first, view.time_stride * element_bytes(dtype), width * element_bytes(dtype), rows};
  }

  // A little of it: some rows of each stream.
  COSFORMER_INLINE void step() {
    for (int s = 0; s < count_; ++s) {
      Stream& stream = streams_[s];
      for (Index row = 0; row < rows_per_step_ && stream.rows > 0; ++row) {
        for (Index byte = 0; byte < stream.row_bytes; byte += kLineBytes) __builtin_prefetch(stream.next + byte, 0, 2);
        stream.next += stream.stride;
        --stream.rows;
      }
    }
  }

 private:
  static constexpr int kStreams = 8;

  struct Stream {
    const char* next;
    Index stride, row_bytes, rows;
  };
  Stream streams_[kStreams];
  int count_ = 0;
  Index rows_per_step_ = 1;
};

}  // namespace
}  // namespace cosformer::kernels::cpu
