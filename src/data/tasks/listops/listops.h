// ListOps expressions: nested lists of digits under MIN, MAX, MED (truncated median) and SM (sum modulo 10), as
// `[MAX 2 9 [MIN 4 7 ] 0 ]`. What is here: symbols, text and value. Making them: listops_generator.h; the published
// files: listops_tsv.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cosformer::data::listops {

// A symbol as it is stored; its token id is kFirstToken more. The digit d is kDigit0 + d.
using Symbol = std::uint8_t;
inline constexpr Symbol kMin = 0, kMax = 1, kMed = 2, kSumMod = 3, kEnd = 4, kDigit0 = 5;
inline constexpr int kSymbols = 15, kOperators = 4;

inline constexpr bool is_operator(Symbol symbol) {
  return symbol < kOperators;
}
inline constexpr bool is_digit(Symbol symbol) {
  return symbol >= kDigit0 && symbol < kSymbols;
}

std::string_view text_of(Symbol symbol);  // "[MIN", "]", "7"

// Symbols separated by blanks; parentheses are dropped. Throws UserError for any other word.
std::vector<Symbol> parse(std::string_view text);

// 0 to 9. Throws UserError, with the place, when the symbols are not one whole expression.
int evaluate(std::span<const Symbol> expression);

std::string to_text(std::span<const Symbol> expression);

// As the published files write a tree, a parenthesised left fold: `( ( ( [MAX 2 ) 9 ) ] )`. The expression must be
// whole.
std::string to_published_text(std::span<const Symbol> expression);

}  // namespace cosformer::data::listops
