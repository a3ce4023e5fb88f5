// Instructions of sm_90 and sm_90a: barriers in shared memory, the copy engine, asynchronous products.
#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "include/cuda_runtime.h"
#include "instructions.h"
#include "kernels/dtype.h"
#include "machine.h"
#include "products.h"
#include "races.h"

namespace emulated {
namespace {

// Shared memory in swizzled order: the 16-byte pieces of 128 bytes change places by the number of their row among
// eight.
std::uint32_t swizzled(std::uint32_t address) {
  return address ^ ((address >> 7 & 7U) << 4);
}

// --- Barriers.

struct Barrier {
  int expected = 0, missing = 0;
  std::int64_t bytes = 0;  // still to come
  unsigned rounds = 0;
  char order[2]{};
};
using Barriers = std::unordered_map<std::uint32_t, Barrier>;

Barriers& own_barriers() {
  std::shared_ptr<void>& state = block_state();
  if (state == nullptr) state = std::make_shared<Barriers>();
  return *static_cast<Barriers*>(state.get());
}
Barrier& barrier_at(std::uint32_t address) {
  const auto found = own_barriers().find(address);
  if (found == own_barriers().end()) fail("a barrier in shared memory that nobody has set up, or that was retired");
  return found->second;
}
void end_round_if_complete(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes != 0) return;
  barrier.missing = barrier.expected;
  ++barrier.rounds;
  wake(&barrier);
}

// --- The copy engine.

// What the device does by itself is somebody of its own to the race detector: after what `order` knows.
class AsDevice {
 public:
  explicit AsDevice([[maybe_unused]] void* order) {
#ifdef COSFORMER_EMULATED_RACES
    static void* const device = __tsan_create_fiber(0);
    thread_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(device, __tsan_switch_to_fiber_no_sync);
    races::acquire(order);
#endif
  }
  ~AsDevice() {
    COSFORMER_RACES(__tsan_switch_to_fiber(thread_, __tsan_switch_to_fiber_no_sync));
  }
  AsDevice(const AsDevice&) = delete;
  AsDevice& operator=(const AsDevice&) = delete;

 private:
  [[maybe_unused]] void* thread_ = nullptr;
};

struct Box {
  TensorMap map;
  std::int64_t column, token, head, batch;
  std::vector<unsigned char*> pieces;  // of 16 bytes, eight to a row, where they lie in shared memory

  Box(const TensorMap& tensor, int first, int row, int of_head, int of_batch, std::uint32_t shared)
      : map(tensor), column(first), token(row), head(of_head), batch(of_batch) {
    if (shared % 128 != 0) fail("a box in shared memory that is not aligned to 128 bytes");
    pieces.reserve(tensor.rows * 8);
    for (std::uint32_t at = 0; at < tensor.rows * 128; at += 16) pieces.push_back(shared_at(swizzled(shared + at), 16));
  }
  // Run by run of a piece's elements, since a piece may begin and end outside: f(place in the piece, its place in the
  // tensor or null outside, bytes).
  template <class F>
  void each(F f) const {
    const auto inside = [&](std::int64_t x, int dimension) {
      return x >= 0 && x < static_cast<std::int64_t>(map.sizes[dimension]);
    };
    for (std::size_t at = 0; at < pieces.size(); ++at) {
      const std::int64_t of_column = column + static_cast<std::int64_t>(at % 8) * 8;
      const std::int64_t of_token = token + static_cast<std::int64_t>(at / 8);
      std::int64_t begin = 8, end = 8;  // of what is inside
      if (inside(of_token, 1) && inside(head, 2) && inside(batch, 3)) {
        begin = std::clamp<std::int64_t>(-of_column, 0, 8);
        end = std::clamp<std::int64_t>(static_cast<std::int64_t>(map.sizes[0]) - of_column, begin, 8);
      }
      const std::int64_t row = of_token * static_cast<std::int64_t>(map.strides[0]) +
                               head * static_cast<std::int64_t>(map.strides[1]) +
                               batch * static_cast<std::int64_t>(map.strides[2]);
      const auto run = [&](std::int64_t from, std::int64_t to, bool is_inside) {
        if (from == to) return;
        f(pieces[at] + from * 2, is_inside ? map.data + row + (of_column + from) * 2 : nullptr,
          static_cast<std::size_t>(to - from) * 2);
      };
      run(0, begin, false);
      run(begin, end, true);
      run(end, 8, false);
    }
  }
};

struct Store {
  Box box;
  std::vector<unsigned char> bytes;
  bool read = false;
};
struct Stores {
  std::vector<Store> pending;
};
Stores& own_stores() {
  std::shared_ptr<void>& state = thread_state().stores;
  if (state == nullptr) state = std::make_shared<Stores>();
  return *static_cast<Stores*>(state.get());
}
void end_store(const Store& store) {
  std::size_t at = 0;
  store.box.each([&](unsigned char*, unsigned char* elements, std::size_t bytes) {
    if (elements != nullptr) {
      races::writes(elements, bytes);
      copy_few(elements, &store.bytes[at], bytes);
    }
    at += bytes;
  });
}
std::string check_stores() {
  if (thread_state().stores == nullptr) return {};
  for (const Store& store : own_stores().pending) {
    if (!store.read) return "a thread ended while its stores may still have to read shared memory";
    end_store(store);
  }
  return {};
}

// --- Products.

constexpr int kMostColumns = 72, kMostFloats = kMostColumns / 8 * 4;
constexpr std::uint32_t kUnderWay = 0x7fc0beefU;  // a NaN, in accumulators that nobody may use yet

struct Accumulation {
  std::array<float*, 32> places;  // of the lanes
  int floats;
  std::array<std::array<float, kMostFloats>, 32> values;
  int last_group;
};
// What a product reads: where it lies in shared memory, and what was there.
struct Taken {
  const unsigned char* piece;
  std::array<std::uint16_t, 8> numbers;
  int group;
};
struct Products {
  std::vector<Accumulation> accumulations;
  std::vector<Taken> operands;
  int open_group = 0;
};
Products& products_of(Lanes& lanes) {
  if (lanes.state == nullptr) lanes.state = std::make_shared<Products>();
  return *static_cast<Products*>(lanes.state.get());
}

// Reads a matrix [depth 16][count] from shared memory, and keeps what was read.
void take_operand(const SharedOperand& operand, int first, int count, float* to, Products& products) {
  const auto start = static_cast<std::uint32_t>((operand.descriptor & 0x3fffU) << 4);
  const auto block_stride = static_cast<std::uint32_t>((operand.descriptor >> 16 & 0x3fffU) << 4);
  const auto group_stride = static_cast<std::uint32_t>((operand.descriptor >> 32 & 0x3fffU) << 4);
  if (operand.descriptor >> 62 != 1) fail("an operand that is not in tiles swizzled by 128 bytes");
  const auto take = [&](std::uint32_t address) {
    const unsigned char* piece = shared_at(swizzled(address), 16);
    races::reads(piece, 16);
    Taken& taken = products.operands.emplace_back(piece, std::array<std::uint16_t, 8>{}, products.open_group);
    std::memcpy(taken.numbers.data(), piece, 16);
    return taken.numbers;
  };
  const auto number = [](std::uint16_t bits) {
    return cosformer::kernels::to_float(cosformer::kernels::BFloat16{bits});
  };
  if (operand.rows) {  // a row of the tile is one step of depth
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < count; n += 8) {
        const auto at = static_cast<std::uint32_t>(first + n);
        const auto row = static_cast<std::uint32_t>(k);
        const auto numbers =
            take(start + at / 64 * block_stride + row / 8 * group_stride + row % 8 * 128 + at % 64 * 2);
        for (int i = 0; i < 8; ++i) to[k * count + n + i] = number(numbers[static_cast<std::size_t>(i)]);
      }
  } else {
    for (int n = 0; n < count; ++n)
      for (int k = 0; k < 16; k += 8) {
        const auto at = static_cast<std::uint32_t>(first + n);
        const auto numbers = take(start + at / 8 * group_stride + at % 8 * 128 + static_cast<std::uint32_t>(k) * 2);
        for (int i = 0; i < 8; ++i) to[(k + i) * count + n] = number(numbers[static_cast<std::size_t>(i)]);
      }
  }
}

COSFORMER_ADDS_PRODUCTS void add_products(const float (&a)[16 * 16], const float (&b)[16 * kMostColumns], int columns,
                                          double (&sums)[16][kMostColumns]) {
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < columns; ++n) sums[m][n] += static_cast<double>(a[k * 16 + m] * b[k * columns + n]);
}

struct Product {
  float* c;
  int tiles;
  const std::uint32_t* a;
  SharedOperand shared_a, b;
  bool add;
};

void multiply(Lanes& lanes) {
  Products& products = products_of(lanes);
  const auto lane = [&](int l) -> const Product& {
    return *static_cast<const Product*>(lanes.brought[static_cast<std::size_t>(l)]);
  };
  const Product& one = lane(0);
  const int floats = one.tiles * 4, columns = one.tiles * 8;
  float b[16 * kMostColumns], a[16 * 16];  // [depth][column], [depth][row]
  take_operand(one.b, 0, columns, b, products);
  if (one.a == nullptr) {
    take_operand(one.shared_a, static_cast<int>(threadIdx.x / 32 % 4) * 16, 16, a, products);
  } else {
    for (int l = 0; l < 32; ++l)
      for (int r = 0; r < 4; ++r)
        for (int i = 0; i < 2; ++i) {
          a[(l % 4 * 2 + i + r / 2 * 8) * 16 + l / 4 + r % 2 * 8] = cosformer::kernels::to_float(
              cosformer::kernels::BFloat16{static_cast<std::uint16_t>(lane(l).a[r] >> (16 * i))});
        }
  }

  auto found = products.accumulations.begin();
  while (found != products.accumulations.end() && found->places[0] != one.c) ++found;
  if (found == products.accumulations.end()) {
    Accumulation fresh{};
    fresh.floats = floats;
    for (int l = 0; l < 32; ++l) {
      const auto at = static_cast<std::size_t>(l);
      fresh.places[at] = lane(l).c;
      std::memcpy(fresh.values[at].data(), lane(l).c, static_cast<std::size_t>(floats) * 4);
      for (int i = 0; i < floats; ++i) std::memcpy(lane(l).c + i, &kUnderWay, 4);
    }
    products.accumulations.push_back(fresh);
    found = products.accumulations.end() - 1;
  }
  found->last_group = products.open_group;
  double sums[16][kMostColumns] = {};
  add_products(a, b, columns, sums);
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < floats; ++i) {
      float& c = found->values[static_cast<std::size_t>(l)][static_cast<std::size_t>(i)];
      const double sum = sums[l / 4 + i / 2 % 2 * 8][i / 4 * 8 + l % 4 * 2 + i % 2];
      c = cut_off(one.add ? c + sum : sum);
    }
}

}  // namespace

namespace mbarrier {

void init(std::uint32_t barrier, unsigned arrivals) {
  const auto count = static_cast<int>(arrivals);
  own_barriers()[barrier] = {count, count, 0, 0, {}};
}
void inval(std::uint32_t barrier) {
  barrier_at(barrier);
  own_barriers().erase(barrier);
}
void arrive(std::uint32_t barrier) {
  Barrier& b = barrier_at(barrier);
  races::release(&b.order[b.rounds % 2]);
  if (--b.missing < 0) fail("more arrivals than a barrier in shared memory expects");
  end_round_if_complete(b);
}
void expect(std::uint32_t barrier, std::uint32_t bytes) {
  barrier_at(barrier).bytes += bytes;
}
void wait(std::uint32_t barrier, unsigned round) {
  Barrier& b = barrier_at(barrier);
  while (b.rounds % 2 == round) wait_at(&b, "a barrier in shared memory");
  races::acquire(&b.order[round]);
}

}  // namespace mbarrier

void fetch_box(std::uint32_t shared, const TensorMap& map, int column, int token, int head, int batch,
               std::uint32_t barrier) {
  const auto box = std::make_shared<Box>(map, column, token, head, batch, shared);
  const auto order = std::make_shared<char>();
  for (unsigned char* piece : box->pieces) {
    races::writes(piece, 16);
    std::memset(piece, 0xff, 16);
  }
  races::release(order.get());
  Barrier* const told = &barrier_at(barrier);
  later([box, order, told] {
    const AsDevice device(order.get());
    box->each([](unsigned char* place, const unsigned char* elements, std::size_t bytes) {
      races::writes(place, bytes);
      if (elements == nullptr) {
        std::memset(place, 0, bytes);
      } else {
        races::reads(elements, bytes);
        copy_few(place, elements, bytes);
      }
    });
    races::release(&told->order[told->rounds % 2]);
    told->bytes -= static_cast<std::int64_t>(box->pieces.size()) * 16;
    end_round_if_complete(*told);
  });
}

void store_box(const TensorMap& map, int column, int token, int head, int batch, std::uint32_t shared) {
  Store store{Box(map, column, token, head, batch, shared), {}};
  store.bytes.reserve(store.box.pieces.size() * 16);
  store.box.each([&](const unsigned char* place, unsigned char*, std::size_t bytes) {
    races::reads(place, bytes);
    store.bytes.insert(store.bytes.end(), place, place + bytes);
  });
  own_stores().pending.push_back(std::move(store));
  at_exit(check_stores);
}
void await_stores(bool ended) {
  for (Store& store : own_stores().pending) {
    std::size_t at = 0;
    if (!store.read) {
      store.box.each([&](const unsigned char* place, unsigned char*, std::size_t bytes) {
        if (std::memcmp(place, &store.bytes[at], bytes) != 0) fail("shared memory changed before a store had read it");
        at += bytes;
      });
    }
    store.read = true;
    if (ended) end_store(store);
  }
  if (ended) own_stores().pending.clear();
}

void begin_product(float* c, int tiles, const std::uint32_t* a, SharedOperand b, bool add) {
  Product own{c, tiles, a, {}, b, add};
  together(multiply, &own);
}
void begin_product(float* c, int tiles, SharedOperand a, SharedOperand b, bool add) {
  Product own{c, tiles, nullptr, a, b, add};
  together(multiply, &own);
}
void commit_products() {
  together([](Lanes& lanes) { ++products_of(lanes).open_group; }, nullptr);
}
void wait_products(int pending) {
  together(
      [](Lanes& lanes) {
        Products& products = products_of(lanes);
        const int ended = products.open_group - *static_cast<const int*>(lanes.brought[0]);
        std::erase_if(products.operands, [&](const Taken& taken) {
          if (taken.group >= ended) return false;
          if (std::memcmp(taken.piece, taken.numbers.data(), 16) != 0) {
            fail("an operand in shared memory changed while its product was under way");
          }
          return true;
        });
        std::erase_if(products.accumulations, [&](const Accumulation& accumulation) {
          if (accumulation.last_group >= ended) return false;
          for (std::size_t l = 0; l < 32; ++l)
            for (int i = 0; i < accumulation.floats; ++i) {
              float* const c = accumulation.places[l] + i;
              if (std::memcmp(c, &kUnderWay, 4) != 0) fail("an accumulator changed while its product was under way");
              *c = accumulation.values[l][static_cast<std::size_t>(i)];
            }
          return true;
        });
      },
      &pending);
}

}  // namespace emulated
