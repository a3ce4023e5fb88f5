// Texts are read as UTF-8, whose bytes may be anything; other encodings are recognised to be named.
#pragma once

#include <string>
#include <string_view>

namespace cosformer::data {

// Throws UserError, with how to convert it, when a file's beginning is UTF-16 or UTF-32: by its byte-order mark, or
// because every other byte is zero.
void refuse_wide_text(const std::string& path, std::string_view beginning);

}  // namespace cosformer::data
