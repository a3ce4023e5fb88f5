// Who goes on, first come, first served.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace emulated {

// A ring. (A std::deque would go to the heap, of which a sanitizer keeps account, for every few that come.)
template <class T>
class Queue {
 public:
  bool empty() const { return first_ == next_; }
  void clear() { first_ = next_ = 0; }
  void push(T* one) {
    if (next_ - first_ == ring_.size()) grow();
    ring_[next_++ % ring_.size()] = one;
  }
  T* pop() { return ring_[first_++ % ring_.size()]; }

 private:
  void grow() {
    std::vector<T*> larger(ring_.size() * 2);
    std::size_t count = 0;
    while (!empty()) larger[count++] = pop();
    ring_ = std::move(larger);
    first_ = 0;
    next_ = count;
  }

  std::vector<T*> ring_ = std::vector<T*>(4096);
  std::size_t first_ = 0, next_ = 0;  // of all that ever came
};

}  // namespace emulated
