// Numbered pieces of work spread over threads. For generators: pieces must not depend on each other.
#pragma once

#include <cstddef>
#include <functional>

namespace cosformer {

// `asked`, or the number of processors when 0.
unsigned thread_count(unsigned asked);

// Calls work(0) ... work(count - 1), each once, on `threads` threads (the caller's among them), and returns when all
// have ended. After an exception no new piece is begun and the first exception is thrown on.
void run_pieces(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace cosformer
