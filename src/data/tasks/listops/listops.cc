#include "data/tasks/listops/listops.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::data::listops {
namespace {

constexpr std::array<std::string_view, kSymbols> kTexts = {"[MIN", "[MAX", "[MED", "[SM", "]", "0", "1", "2",
                                                           "3",    "4",    "5",    "6",   "7", "8", "9"};

// An operator whose list is still open. Counting digits suffices for all four operators, in any order and number.
struct OpenList {
  Symbol operation = kMin;
  std::size_t size = 0;
  std::array<std::size_t, 10> count{};

  void add(int digit) {
    ++size;
    ++count[static_cast<std::size_t>(digit)];
  }

  // The digit at `position` of the sorted list.
  int sorted_at(std::size_t position) const {
    int digit = 0;
    for (std::size_t seen = count[0]; seen <= position; seen += count[static_cast<std::size_t>(digit)]) ++digit;
    return digit;
  }

  int value() const {
    switch (operation) {
      case kMin: return sorted_at(0);
      case kMax: return sorted_at(size - 1);
      case kMed: return (sorted_at((size - 1) / 2) + sorted_at(size / 2)) / 2;
      default: break;
    }
    std::size_t sum = 0;
    for (std::size_t digit = 0; digit < 10; ++digit) sum += digit * count[digit];
    return static_cast<int>(sum % 10);
  }
};

[[noreturn]] void refuse(std::size_t position, const std::string& reason) {
  throw UserError(fmt::format("symbol {} of the expression {}", position + 1, reason));
}

// The words appear in messages, which must stay readable whatever the file holds.
std::string shortened(std::string_view word) {
  return word.size() <= 20 ? std::string(word) : std::string(word.substr(0, 20)) + "...";
}

}  // namespace

std::string_view text_of(Symbol symbol) {
  return kTexts.at(symbol);
}

std::vector<Symbol> parse(std::string_view text) {
  std::vector<Symbol> symbols;
  constexpr std::string_view kBlank = " \t\r\n";
  for (std::size_t begin = text.find_first_not_of(kBlank); begin != std::string_view::npos;
       begin = text.find_first_not_of(kBlank, begin)) {
    const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end;
    if (word == "(" || word == ")") continue;
    std::size_t symbol = 0;
    while (symbol < kTexts.size() && kTexts[symbol] != word) ++symbol;
    if (symbol == kTexts.size()) {
      throw UserError(
          fmt::format("'{}' is not a ListOps symbol; expected [MIN, [MAX, [MED, [SM, ] or a digit", shortened(word)));
    }
    symbols.push_back(static_cast<Symbol>(symbol));
  }
  return symbols;
}

int evaluate(std::span<const Symbol> expression) {
  std::vector<OpenList> open;
  int result = -1;  // of the whole, once known
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const Symbol symbol = expression[i];
    if (symbol >= kSymbols) refuse(i, fmt::format("is unknown; expected 0 to 14, got {}", symbol));
    if (result >= 0) refuse(i, "follows after its end; expected one expression");
    if (is_operator(symbol)) {
      open.push_back({symbol, 0, {}});
      continue;
    }
    int value = symbol - kDigit0;
    if (symbol == kEnd) {
      if (open.empty()) refuse(i, "closes a list that was never opened");
      if (open.back().size == 0) refuse(i, "closes a list without a digit; expected at least one");
      value = open.back().value();
      open.pop_back();
    }
    if (open.empty()) {
      result = value;
    } else {
      open.back().add(value);
    }
  }
  if (expression.empty()) throw UserError("the expression is empty; expected a digit or a list such as [MAX 2 9 ]");
  if (!open.empty()) throw UserError(fmt::format("the expression ends with {} lists still open", open.size()));
  return result;
}

std::string to_text(std::span<const Symbol> expression) {
  std::string text;
  for (const Symbol symbol : expression) {
    if (!text.empty()) text += ' ';
    text += text_of(symbol);
  }
  return text;
}

std::string to_published_text(std::span<const Symbol> expression) {
  // How many parentheses open before an operator depends on its arguments, so these are counted first.
  std::vector<std::size_t> arguments(expression.size(), 0), open;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == kEnd) {
      open.pop_back();
      continue;
    }
    if (!open.empty()) ++arguments[open.back()];
    if (is_operator(expression[i])) open.push_back(i);
  }

  std::string text;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (!text.empty()) text += ' ';
    if (is_operator(expression[i])) {
      for (std::size_t fold = 0; fold <= arguments[i]; ++fold) text += "( ";
      ++depth;
    }
    text += text_of(expression[i]);
    if (expression[i] == kEnd) {
      text += " )";
      --depth;
    }
    if (!is_operator(expression[i]) && depth > 0) text += " )";
  }
  return text;
}

}  // namespace cosformer::data::listops
