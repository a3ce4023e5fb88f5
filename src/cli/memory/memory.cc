#include "cli/memory/memory.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#include "cli/memory/block_cache.h"

namespace cosformer::cli {
namespace {

// Smaller ones come from the heap, where they neither cost page faults nor leave large gaps.
constexpr std::size_t kLeastBlock = std::size_t{1} << 20;

// How many compiled programs oneDNN keeps. Its own 1,024 are those of a thousand shapes, which batches of mixed lengths
// have, of several megabytes each; a step of one shape needs some ten.
constexpr const char* kCompiledShapes = "32";

std::atomic<long long> held{0}, most{0};

BlockCache& blocks() {
  static auto* const cache = new BlockCache;  // tensors of static life are freed after anything static
  return *cache;
}

// In front of every tensor's data, and as large as torch's alignment.
struct alignas(64) Header {
  BlockCache::Block block;  // none for what comes from the heap
  std::size_t bytes = 0;
};

void release(void* data) {
  if (data == nullptr) return;
  Header* const header = static_cast<Header*>(data) - 1;
  held -= static_cast<long long>(header->bytes);
  if (header->block.data == nullptr) {
    std::free(header);
  } else {
    blocks().give(header->block);
  }
}

c10::DataPtr allocated(std::size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, &release, cpu};
  if (bytes > SIZE_MAX / 4) throw std::bad_alloc();
  Header header;
  header.bytes = bytes;
  void* place = nullptr;
  if (bytes + sizeof(Header) >= kLeastBlock) {
    header.block = blocks().take(bytes + sizeof(Header));
    place = header.block.data;
  } else if (posix_memalign(&place, alignof(Header), bytes + sizeof(Header)) != 0) {
    throw std::bad_alloc();
  }
  void* const data = new (place) Header(header) + 1;
  const long long now = held += static_cast<long long>(bytes);
  long long before = most;
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  return {data, data, &release, cpu};
}

class ProgramAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
    return allocated(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
    return allocated(bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return &release;
  }
};

void keep_few_compiled_shapes() {
  if (std::getenv("DNNL_PRIMITIVE_CACHE_CAPACITY") != nullptr) return;
  setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", kCompiledShapes, 0);  // what the user has set stays
}

}  // namespace

void set_up_memory() {
  static ProgramAllocator allocator;
  keep_few_compiled_shapes();
  c10::SetCPUAllocator(&allocator);
}

double tensor_bytes() {
  return static_cast<double>(held.load());
}

double most_tensor_bytes() {
  return static_cast<double>(most.load());
}

void forget_most_tensor_bytes() {
  most = held.load();
}

double most_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace cosformer::cli
