// Memory on huge pages where the system leaves that to the program.
#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>

namespace cosformer::ops {

// Asks for huge pages under large blocks that nobody has written to yet; smaller ones are left alone. Long sequences
// are read and written with steps between rows, and on 4 KB pages the walks to the page tables take up to a tenth of a
// pass; fresh results cost one page fault in place of 512. Only ever advice: without it everything works the same.
void advise_huge_pages(void* data, std::size_t bytes);

// at::empty on such memory.
at::Tensor empty_on_huge_pages(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace cosformer::ops
