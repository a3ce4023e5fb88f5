// How this program gets its memory: decided once, before the first tensor. What it holds is counted.
#pragma once

#include <cstddef>

namespace cosformer::cli {

// Large tensors get blocks that stay with the process when they are freed (block_cache.h), on huge pages where the
// system offers them; torch's oneDNN keeps few of the programs that it compiles for every shape anew.
void set_up_memory();

// Bytes of tensors on the CPU: now, and at most since the beginning or the last forget_most_tensor_bytes().
double tensor_bytes();
double most_tensor_bytes();
void forget_most_tensor_bytes();

// What of this process has been in the machine's memory at most: tensors, libraries, data and all.
double most_resident_bytes();

}  // namespace cosformer::cli
