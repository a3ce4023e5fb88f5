// Which kernels serve a problem, and how: decided here, once for each call, and nowhere else. What launches kernels
// does what the choice says. choice.cc has the tables, which one reads from top to bottom.
//
// It is a function of shapes, options, strides, alignment and the kind of device: no pointer is followed. It needs
// neither CUDA nor a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/cuda/plan/head_blocks.h"
#include "kernels/cuda/plan/segments.h"
#include "kernels/cuda/problem.h"

namespace cosformer::kernels::cuda {

// What the choice depends on of a GPU. The defaults are an H200's.
struct Device {
  int capability = 90;  // major and minor: 90 is 9.0
  int multiprocessors = 132;
  bool hopper_kernels = true;  // compiled into this build
  bool tensor_maps = true;     // its driver describes tensors to TMA
  // Blocks of the narrow heads' cooperative launch that a multiprocessor holds at once; and where it keeps states for
  // the backward pass. Blocks of the other cooperative launches fill a multiprocessor.
  int narrow_blocks = 2, narrow_blocks_keeping = 2;

  bool is_hopper() const { return capability == 90 && hopper_kernels; }
};

// The families of kernels, a folder each; kRefused: the problem is outside the contract.
enum class Family : std::uint8_t { kRefused, kDecode, kGeneral, kNarrow, kWide, kBothSides };

// How a sweep and the sums that its segments start from are launched.
enum class Launch : std::uint8_t {
  kSingle,           // one launch; there is nothing to sum, or it sums before it sweeps
  kSumFirst,         // a launch sums everything that the rows need, then one sweeps
  kSegmentScan,      // a launch sums the segments, one scans the sums, then one sweeps
  kCooperativeScan,  // a cooperative launch sums the segments and scans the sums, then one sweeps
  kCooperative,      // one cooperative launch sums the segments, scans the sums, and sweeps
};

// How the sequences are cut, and where the sums of segments lie: in slots, numbered along the sequence.
struct Plan {
  bool two_sided = false;  // full attention with a decay: what lies before a row and what lies after it
  bool running = false;    // causal or two-sided: a state runs along with the sweep
  std::int64_t longest = 0;
  Segments sweep;                                // running: of the sweeps
  int key_sums_per_segment = 1;                  // and how much finer the sums are cut that start their segments
  int query_sums_per_segment = 1;                // (the forward sweep may be cut as fine as the keys')
  Segments sum_keys, sum_queries;                // full attention: of the sums over all keys, all queries
  Segments sweep_over_keys, sweep_over_queries;  // and of the rows that use them
  int key_slots = 0, query_slots = 0;            // slots for the sums of a head
  std::int64_t slot_floats = 0;
  std::int64_t query_rows = 0;
};

// Where the pieces of the workspace begin, in bytes, and what they take together.
struct Workspace {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t row_scalar = kNone;  // e of the rows, or the first of two sweeps' denominators
  std::size_t query_decay = kNone, key_decay = kNone, state_decay = kNone;  // parts of the decay's gradient
  std::size_t states_after_extras = kNone, states_after_segments = kNone;   // see hopper/both_sides
  std::size_t key_slots = kNone, query_slots = kNone;
  std::size_t cooperative_sums = kNone;  // narrow heads', in an order of their own
  std::size_t segment_flags = kNone;     // of cooperative launches: how far each block has come
  std::size_t bytes = 0;
};

struct Choice {
  Family family = Family::kRefused;
  const char* family_because = "";
  Family sums = Family::kRefused;   // whose kernels sum segments: the general sweep may start from Hopper's sums
  HeadParts parts;                  // every pair of blocks of columns goes through the kernels by itself
  bool state_in_registers = false;  // of wide heads: the forward sweep whose blocks own whole heads
  Fetch fetch = Fetch::kPlain;      // of the sweep
  Fetch sum_fetch = Fetch::kPlain;  // of the sums
  const char* fetch_because = "";
  Launch keys = Launch::kSingle;     // of the sweeps over queries, which start from sums of keys: out, dq
  Launch queries = Launch::kSingle;  // of the sweeps over keys, which start from sums of queries: dk, dv
  const char* keys_because = "";
  const char* queries_because = "";
  Plan plan;                        // of a part
  bool keys_in_key_sums = false;    // the slots for sums of keys are Problem::key_sums
  std::int64_t key_sum_floats = 0;  // the length of Problem::key_sums; 0 where it is not used
  Workspace workspace;
  Device device;
};

// With gradients: of the backward pass; else of the forward pass.
Choice choose(const Problem& problem, const Gradients* gradients, const Device& device);

// Blocks beside each other in the sweeps that leave a part of the decay's gradient each.
int decay_slices(const Problem& problem, const Choice& choice);

// The choice in a few lines of words.
std::string explain(const Problem& problem, const Gradients* gradients, const Choice& choice);

const char* name_of(Family family);
const char* name_of(Fetch fetch);
const char* name_of(Launch launch);

}  // namespace cosformer::kernels::cuda
