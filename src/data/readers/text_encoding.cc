#include "data/readers/text_encoding.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::data {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kLooksAt = 4096, kFew = 16;

// As iconv calls it; empty: none of them. Without a mark it is Western text in UTF-16, whose upper bytes are zero.
std::string wide_encoding(std::string_view text) {
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (text.starts_with("\xff\xfe"sv) || text.starts_with("\xfe\xff"sv)) return "UTF-16";
  text = text.substr(0, kLooksAt);
  if (text.size() < kFew) return "";
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < text.size(); ++i) zeros[i % 2] += text[i] == '\0' ? 1 : 0;
  const std::size_t half = text.size() / 2;
  if (zeros[1] > half * 9 / 10 && zeros[0] == 0) return "UTF-16LE";
  if (zeros[0] > half * 9 / 10 && zeros[1] == 0) return "UTF-16BE";
  return "";
}

}  // namespace

void refuse_wide_text(const std::string& path, std::string_view beginning) {
  const std::string encoding = wide_encoding(beginning);
  if (encoding.empty()) return;
  throw UserError(
      fmt::format("cannot read '{}': it is {} text; expected UTF-8. Convert it: iconv -f {} -t UTF-8 '{}' > converted",
                  path, encoding, encoding, path));
}

}  // namespace cosformer::data
