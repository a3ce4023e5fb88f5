// What stands along the axes of an attention map: the characters of a text in place of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cosformer::cli {

// A token's text as a picture can show it: blanks, line ends and what cannot be printed have signs of their own.
std::string visible(const std::string& text);

// A label for each byte of a text: at its first byte the whole character, nothing at the others.
std::vector<std::string> byte_labels(std::span<const std::uint8_t> bytes);

// The labels as places of an axis that counts tokens from 1, for gnuplot's "set xtics (…)". Where there are too many to
// stand side by side, every so many tokens begin a piece of the text.
std::string token_tics(const std::vector<std::string>& labels);

// Whether each token has a label of its own.
bool all_have_room(const std::vector<std::string>& labels);

}  // namespace cosformer::cli
