// What the emulated device's instructions do, beneath their names (include/kernels/cuda).
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulated {

template <int kBytes>
struct alignas(kBytes) Bytes {
  unsigned char bytes[kBytes];
};

void store_release(unsigned* address, unsigned x);
unsigned load_acquire(const unsigned* address);

// Copies of the running thread.
void begin_copy(std::uint32_t shared, const void* bytes, int count);
void commit_copies();
void wait_copies(int pending);
void finish_copies();  // all of them

// Of the whole warp, in the lanes' layout of mma.sync. The accumulator cuts off what does not fit.
void multiply_tf32(float* c, const std::uint32_t* a, const std::uint32_t* b);
void multiply_f16(float* c, const std::uint32_t* a, const std::uint32_t* b);
void multiply_bf16(float* c, const std::uint32_t* a, const std::uint32_t* b);
// Four 8 x 8 matrices from the rows that lanes hold: each lane's share, as ldmatrix gives it.
void spread_rows(const void* row, std::uint32_t* share, bool transposed);
// The reverse of it, for stmatrix: the row that is this lane's to store.
void gather_rows(const std::uint32_t* share, void* row, bool transposed);

// --- Of Hopper.

namespace mbarrier {
void init(std::uint32_t barrier, unsigned arrivals);
void inval(std::uint32_t barrier);
void arrive(std::uint32_t barrier);
void expect(std::uint32_t barrier, std::uint32_t bytes);
void wait(std::uint32_t barrier, unsigned round);
}  // namespace mbarrier

// A tensor of 16-bit numbers, fastest dimension first, and a box of it whose rows have 128 bytes.
struct TensorMap {
  unsigned char* data;
  std::uint64_t sizes[4], strides[3];  // strides in bytes
  std::uint32_t rows;
};
static_assert(sizeof(TensorMap) <= 128);
void fetch_box(std::uint32_t shared, const TensorMap& map, int column, int token, int head, int batch,
               std::uint32_t barrier);
void store_box(const TensorMap& map, int column, int token, int head, int batch, std::uint32_t shared);
// Until this lane's stores have read shared memory, or have ended.
void await_stores(bool ended);

// An operand in shared memory as a descriptor says, along its tile's rows or its columns.
struct SharedOperand {
  std::uint64_t descriptor;
  bool rows;
};
// Asynchronous products of the warp's 16 rows, over a depth of 16: c = or += a·b, for `tiles` times eight columns.
void begin_product(float* c, int tiles, const std::uint32_t* a, SharedOperand b, bool add);
void begin_product(float* c, int tiles, SharedOperand a, SharedOperand b, bool add);
void commit_products();
void wait_products(int pending);

}  // namespace emulated
