// A device that is played on a host: runs the CUDA kernels' own text, thread by thread, where there is no GPU.
//
// Every thread of a block is a fiber of its own, and another one goes on only where a thread waits: at a barrier, in an
// instruction of the whole warp, for a copy. Instructions have their documented results (include/kernels/cuda); what a
// device does on its own time (copies, asynchronous products) is done as late as it may be, and what it will write
// holds NaN until then. Shared memory begins as NaN, accesses through its addresses are checked, and a block that waits
// for ever is told where. With COSFORMER_EMULATED_RACES every warp is a thread to ThreadSanitizer, and only what the
// hardware promises puts what two of them do in order (races.h).
//
// Not played: speed, registers, caches, races within a warp, and the limits of a proxy's view of shared memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace emulated {

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

struct Launch {
  Extent grid, block;
  std::size_t shared_bytes = 0;
  bool cooperative = false;  // all blocks at once; otherwise one after the other
  std::function<void()> kernel;
};

// Empty, or what went wrong.
std::string run(const Launch& launch);

// --- For the running thread.

[[noreturn]] void fail(const std::string& what);
// Others go on first.
void yield();

unsigned char* shared_memory();
// The block's variable of that name, made when the first thread asks for it.
void* shared_variable(const void* name, std::size_t bytes, std::size_t alignment);
std::uint32_t shared_address(const void* p);
// Its place; fails outside the block's memory, and where it is not aligned to its size.
unsigned char* shared_at(std::uint32_t address, std::size_t bytes);

// The block's barriers, by number; all of its threads for number 0 of meet_all.
void meet_all();
void meet(int barrier, int threads);
void arrive(int barrier, int threads);

// All blocks' barrier.
std::uint64_t grid_arrive();
void grid_wait(std::uint64_t round);

// What the lanes of a warp do together: by whoever comes last, with what each of them brought.
struct Lanes {
  std::array<void*, 32> brought{};
  std::shared_ptr<void> state;  // the warp's, for those who act
};
using Together = void (*)(Lanes& lanes);
void together(Together act, void* brought);
// The same, and what lanes have written before is seen by all of them.
void sync_warp();

// Threads wait here for something that others, or the device on its own time, will do: by an address of the caller's.
void wait_at(const void* place, const char* what);
void wake(const void* place);
// Something that the device does later, as late as it may.
void later(std::function<void()> action);
// What instructions keep for the running thread and for its block; all begin empty.
struct ThreadState {
  std::shared_ptr<void> copies, stores;
};
ThreadState& thread_state();
std::shared_ptr<void>& block_state();
// Called by every thread that ends: says what is wrong with what it leaves behind, or nothing.
void at_exit(std::string (*check)());

}  // namespace emulated
