// The server's paths as an OpenAPI 3.1 document.
#pragma once

#include <string>

namespace cosformer::serve {

std::string openapi_document(const std::string& version);

}  // namespace cosformer::serve
