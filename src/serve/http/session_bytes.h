// A session as text, for clients that keep it themselves.
#pragma once

#include <string>

#include "serve/generator.h"
#include "serve/session.h"

namespace cosformer::serve {

std::string session_to_base64(const Session& session, const SessionOwner& owner);
// Throws RequestError 400 when it is not a whole session of this model.
Session session_from_base64(const std::string& text, const Generator& generator, const SessionOwner& owner);

}  // namespace cosformer::serve
