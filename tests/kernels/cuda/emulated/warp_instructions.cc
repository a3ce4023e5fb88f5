// Instructions of sm_80: copies, the matrix unit, rows of matrices.
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "include/cuda_runtime.h"
#include "instructions.h"
#include "kernels/dtype.h"
#include "machine.h"
#include "products.h"
#include "races.h"

namespace emulated {
namespace {

using cosformer::kernels::BFloat16;
using cosformer::kernels::Float16;
using cosformer::kernels::to_float;

struct Copy {
  unsigned char* to;
  std::array<unsigned char, 16> bytes;
  int count, group;
};
struct Copies {
  std::vector<Copy> pending;
  int open_group = 0;
};
Copies& own_copies() {
  std::shared_ptr<void>& state = thread_state().copies;
  if (state == nullptr) {
    auto copies = std::make_shared<Copies>();
    copies->pending.reserve(32);
    state = std::move(copies);
  }
  return *static_cast<Copies*>(state.get());
}
void finish_groups_before(int group) {
  std::erase_if(own_copies().pending, [&](const Copy& copy) {
    if (copy.group >= group) return false;
    races::writes(copy.to, static_cast<std::size_t>(copy.count));
    copy_few(copy.to, copy.bytes.data(), static_cast<std::size_t>(copy.count));
    return true;
  });
}

struct Product {
  float* c;
  const std::uint32_t *a, *b;
};

float bf16_of(std::uint32_t pair, int at) {
  return to_float(BFloat16{static_cast<std::uint16_t>(pair >> (16 * at))});
}
float f16_of(std::uint32_t pair, int at) {
  return to_float(Float16{static_cast<std::uint16_t>(pair >> (16 * at))});
}
float tf32_of(std::uint32_t x, int) {
  return std::bit_cast<float>(x & 0xffffe000U);  // the unit does not look at the others
}

COSFORMER_ADDS_PRODUCTS void add_products(const double* a, const double* b, int depth, double (&sums)[16][8]) {
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < depth; ++k)
      for (int n = 0; n < 8; ++n) sums[m][n] += a[m * depth + k] * b[k * 8 + n];
}

// c[16][8] += a[16][kDepth]·b[kDepth][8]; registers hold kPack neighbours of the depth.
template <int kDepth, int kPack, float (*kNumber)(std::uint32_t, int)>
void multiply(Lanes& lanes) {
  double a[16][kDepth], b[kDepth][8];
  constexpr int kHalf = kDepth / 2;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const Product*>(lanes.brought[static_cast<std::size_t>(lane)]);
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < kPack; ++i) {
      for (int r = 0; r < 4; ++r) a[g + r % 2 * 8][t * kPack + i + r / 2 * kHalf] = kNumber(own.a[r], i);
      for (int r = 0; r < 2; ++r) b[t * kPack + i + r * kHalf][g] = kNumber(own.b[r], i);
    }
  }
  double sums[16][8] = {};
  add_products(a[0], b[0], kDepth, sums);
  for (int lane = 0; lane < 32; ++lane) {
    float* const c = static_cast<const Product*>(lanes.brought[static_cast<std::size_t>(lane)])->c;
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) c[i] = cut_off(c[i] + sums[g + i / 2 * 8][2 * t + i % 2]);
  }
}

struct Shuffled {
  const void* value;
  void* result;
  std::size_t bytes;
  int from;
};

struct Spread {
  const std::uint16_t* row;
  std::uint32_t* share;
  bool transposed;
};
// Where element (row, column) of matrix i lies among the lanes' shares: two neighbours to a register, the first one in
// its lower half.
struct ShareOf {
  int lane, half;
};
ShareOf share_of(int row, int column, bool transposed) {
  if (transposed) std::swap(row, column);
  return {row * 4 + column / 2, column % 2};
}

}  // namespace

void store_release(unsigned* address, unsigned x) {
  races::release(address);
  *address = x;
}
unsigned load_acquire(const unsigned* address) {
  yield();
  races::acquire(const_cast<unsigned*>(address));
  return *address;
}

void begin_copy(std::uint32_t shared, const void* bytes, int count) {
  Copies& copies = own_copies();
  Copy copy{shared_at(shared, static_cast<std::size_t>(count)), {}, count, copies.open_group};
  copy_few(copy.bytes.data(), bytes, static_cast<std::size_t>(count));
  copies.pending.push_back(copy);
}
void commit_copies() {
  ++own_copies().open_group;
}
void wait_copies(int pending) {
  finish_groups_before(own_copies().open_group - pending);
}
void finish_copies() {
  finish_groups_before(own_copies().open_group + 1);
}

void multiply_tf32(float* c, const std::uint32_t* a, const std::uint32_t* b) {
  Product own{c, a, b};
  together(multiply<8, 1, tf32_of>, &own);
}
void multiply_f16(float* c, const std::uint32_t* a, const std::uint32_t* b) {
  Product own{c, a, b};
  together(multiply<16, 2, f16_of>, &own);
}
void multiply_bf16(float* c, const std::uint32_t* a, const std::uint32_t* b) {
  Product own{c, a, b};
  together(multiply<16, 2, bf16_of>, &own);
}

// Every lane reads that of another; a lane that does not take part has nothing to read.
void shuffle(const void* value, void* result, std::size_t bytes, int from) {
  Shuffled own{value, result, bytes, from};
  together(
      [](Lanes& lanes) {
        for (void* brought : lanes.brought) {
          if (brought == nullptr) continue;
          const auto* lane = static_cast<const Shuffled*>(brought);
          const auto* source = static_cast<const Shuffled*>(lanes.brought[static_cast<std::size_t>(lane->from)]);
          if (source != nullptr) copy_few(lane->result, source->value, lane->bytes);
        }
      },
      &own);
}

void spread_rows(const void* row, std::uint32_t* share, bool transposed) {
  Spread own{static_cast<const std::uint16_t*>(row), share, transposed};
  together(
      [](Lanes& lanes) {
        const auto lane = [&](int l) { return static_cast<Spread*>(lanes.brought[static_cast<std::size_t>(l)]); };
        std::uint32_t shares[32][4] = {};
        for (int l = 0; l < 32; ++l)
          for (int column = 0; column < 8; ++column) {
            const auto [to, half] = share_of(l % 8, column, lane(l)->transposed);
            shares[to][l / 8] |= static_cast<std::uint32_t>(lane(l)->row[column]) << (16 * half);
          }
        for (int l = 0; l < 32; ++l) std::memcpy(lane(l)->share, shares[l], sizeof(shares[l]));
      },
      &own);
}
void gather_rows(const std::uint32_t* share, void* row, bool transposed) {
  Spread own{static_cast<const std::uint16_t*>(row), const_cast<std::uint32_t*>(share), transposed};
  together(
      [](Lanes& lanes) {
        const auto lane = [&](int l) { return static_cast<Spread*>(lanes.brought[static_cast<std::size_t>(l)]); };
        for (int l = 0; l < 32; ++l)
          for (int column = 0; column < 8; ++column) {
            const auto [from, half] = share_of(l % 8, column, lane(l)->transposed);
            const_cast<std::uint16_t*>(lane(l)->row)[column] =
                static_cast<std::uint16_t>(lane(from)->share[l / 8] >> (16 * half));
          }
      },
      &own);
}

}  // namespace emulated
