// How likely a token was by the model alone.
#pragma once

#include "serve/engine/request.h"

namespace cosformer::serve {

// Of a token behind `session`, beside `count` of the likeliest.
TokenChance chance_of(const Session& session, std::int32_t token, int count);

}  // namespace cosformer::serve
