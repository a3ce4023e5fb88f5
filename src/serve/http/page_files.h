// The page's files, which are part of the program (cmake/embed_page.cmake).
#pragma once

#include <span>
#include <string_view>

namespace cosformer::serve {

struct PageFile {
  std::string_view path, content_type, etag, bytes;  // path: "/app.js"; that of index.html is "/"
};

std::span<const PageFile> page_files();

}  // namespace cosformer::serve
