// How this program gets its memory: decided once, before the first tensor.
#pragma once

namespace cosformer::cli {

// Freed memory stays with the process, and large blocks lie on huge pages where the system offers them.
void set_up_memory();

}  // namespace cosformer::cli
