// Small gray images as text, two pixels above each other in a character.
#pragma once

#include <string>

#include "data/dataset/dataset.h"

namespace cosformer::cli {

// `pixels` holds 8-bit gray values, row by row. Uses 24-bit colours where the terminal has them (COLORTERM), else
// shades of gray by characters.
std::string terminal_image(const data::SequenceView& pixels, std::int64_t width, std::int64_t height);

}  // namespace cosformer::cli
