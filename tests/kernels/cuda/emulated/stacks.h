// The stacks of the played threads.
#pragma once

#include <cstddef>

namespace emulated {

// They begin at multiples of their size, so that an address tells whose it is. Only pages that are used take memory.
constexpr std::size_t kStackBytes = std::size_t{512} << 10;

// With a page in front that nobody may touch.
unsigned char* make_stack();

}  // namespace emulated
