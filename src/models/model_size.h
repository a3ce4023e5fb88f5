// How large a model is, known before it is built: settings may come from a slip of the finger or from a damaged file,
// and building takes minutes, or all memory, where a number in them is far off.
#pragma once

#include <cstdint>
#include <string>

#include "base/formats/safetensors.h"
#include "models/config.h"

namespace cosformer::models {

struct ModelSize {
  double parameters = 0;  // at least so many
  double tables = 0;      // numbers beside them: of positions
};

// Of `layers` blocks. `embeds`: with an embedding of full width.
ModelSize size_of(const ModelConfig& config, std::int64_t layers, bool embeds = true);

// Throws UserError that names the settings when this machine's memory cannot hold it.
void require_memory(const ModelConfig& config, const ModelSize& size);

// Throws UserError when the file holds fewer numbers than the model, which its metadata describes, has.
void require_numbers(const safetensors::Reader& file, const ModelSize& size);

}  // namespace cosformer::models
