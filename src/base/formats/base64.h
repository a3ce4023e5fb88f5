// Bytes as text of 64 letters (RFC 4648, with padding), where only text may stand.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cosformer {

std::string to_base64(std::string_view bytes);

// Nothing when it is not such a text.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace cosformer
