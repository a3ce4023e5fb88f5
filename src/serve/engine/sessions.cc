#include "serve/engine/sessions.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "data/tokenizers/stream_decoder.h"
#include "serve/engine/prefix_cache.h"

namespace cosformer::serve {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTailCharacters = 200;

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

RequestError not_found(const std::string& id) {
  return {404, "not_found", fmt::format("there is no session '{}'", id), "session"};
}

// The end of a text, whole characters.
std::string tail_of(const Session& session, const data::Tokenizer& tokenizer) {
  data::Utf8Filter filter;
  std::string text = filter.push(tokenizer.decode(session.recent));
  std::size_t begin = text.size();
  for (std::size_t count = 0; begin > 0 && count < kTailCharacters; ++count) {
    do --begin;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80U);
  }
  return text.substr(begin);
}

}  // namespace

SessionStore::SessionStore(const Generator& generator, SessionStoreOptions options)
    : generator_(generator), options_(std::move(options)), owner_(generator.owner()) {
  if (!options_.folder.empty()) fs::create_directories(options_.folder);
}

bool SessionStore::is_id(const std::string& text) {
  constexpr std::size_t kLongest = 64;
  return !text.empty() && text.size() <= kLongest && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string SessionStore::new_id() const {
  std::random_device random;
  return fmt::format("s-{:08x}{:08x}", random(), random());
}

void SessionStore::require_free(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  check_free(id);
}

void SessionStore::check_free(const std::string& id) const {
  if (!is_id(id)) {
    throw RequestError(400, "invalid_request_error",
                       "a session's id must be of 1 to 64 letters, digits, underscores and hyphens", "id");
  }
  if (entries_.contains(id)) {
    throw RequestError(409, "invalid_request_error", fmt::format("there is a session '{}' already", id), "id");
  }
  require_room();
}

void SessionStore::require_room() const {
  if (entries_.size() >= options_.most_sessions || counted_bytes() >= options_.memory) {
    throw RequestError(503, "overloaded", "there is no room for another session; delete one that is not needed");
  }
}

SessionInfo SessionStore::add(const std::string& id, Session session) {
  const std::lock_guard lock(mutex_);
  check_free(id);
  Entry entry;
  entry.session = std::move(session);
  return insert(id, std::move(entry));
}

SessionInfo SessionStore::insert(const std::string& id, Entry entry) {
  entry.created = entry.last_used = now();
  count(entry);
  Entry& kept = entries_.insert_or_assign(id, std::move(entry)).first->second;
  make_room();
  return info_of(id, kept);
}

void SessionStore::count(Entry& entry) {
  entry.bytes = bytes_of(entry.session);
  for (const Session& each : entry.snapshots) entry.bytes += bytes_of(each);
}

Session SessionStore::take(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Entry& entry = free_at(id);
  entry.taken = true;
  return entry.session;
}

SessionInfo SessionStore::give_back(const std::string& id, Session session) {
  const std::lock_guard lock(mutex_);
  Entry& entry = at(id);
  entry.taken = false;
  entry.last_used = now();
  if (session.consumed() != entry.session.consumed()) {
    entry.snapshots.push_back(std::exchange(entry.session, std::move(session)));
    entry.saved = false;
    // The beginning and the latest are worth most.
    if (entry.snapshots.size() > options_.most_snapshots) entry.snapshots.erase(entry.snapshots.begin() + 1);
    count(entry);
    make_room();
  }
  return info_of(id, entry);
}

void SessionStore::release(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second.taken = false;
}

SessionInfo SessionStore::info(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return info_of(id, at(id));
}

std::vector<SessionInfo> SessionStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<SessionInfo> all;
  for (const auto& [id, entry] : entries_) all.push_back(info_of(id, entry));
  return all;
}

SessionInfo SessionStore::fork(const std::string& id, const std::string& to, std::optional<std::int64_t> position) {
  Entry copy;
  {
    const std::lock_guard lock(mutex_);
    const Entry& from = at(id);
    copy.session = from.session;
    copy.snapshots = from.snapshots;
  }
  if (position && *position != copy.session.consumed()) {
    const auto found = std::find_if(copy.snapshots.begin(), copy.snapshots.end(),
                                    [&](const Session& each) { return each.consumed() == *position; });
    if (found == copy.snapshots.end()) {
      throw RequestError(
          400, "invalid_request_error",
          fmt::format("the session '{}' has no snapshot at {}; its snapshots are listed with it", id, *position), "at");
    }
    copy.session = *found;
    copy.snapshots.erase(found, copy.snapshots.end());
  }
  const std::lock_guard lock(mutex_);
  check_free(to);
  return insert(to, std::move(copy));
}

void SessionStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  free_at(id);
  entries_.erase(id);
  std::error_code ignored;
  if (!options_.folder.empty()) fs::remove(path_of(id), ignored);
}

SessionInfo SessionStore::save(const std::string& id) {
  Session session;
  {
    const std::lock_guard lock(mutex_);
    session = free_at(id).session;
  }
  const std::string path = path_of(id);
  try {
    save_session(path, session, owner_);
  } catch (const std::exception& error) {  // where it lies is no client's affair
    std::fprintf(stderr, "cosformer: %s\n", error.what());
    throw RequestError(500, "server_error", "the session could not be written to the server's disk; it is as it was");
  }
  const std::lock_guard lock(mutex_);
  Entry& entry = at(id);
  entry.saved = entry.session.consumed() == session.consumed();
  return info_of(id, entry);
}

SessionInfo SessionStore::restore(const std::string& id) {
  if (!is_id(id)) throw not_found(id);
  const std::string path = path_of(id);
  if (!fs::exists(path)) {
    throw RequestError(404, "not_found", fmt::format("no session '{}' was saved", id), "session");
  }
  Session session;
  try {
    session = load_session(path, generator_.model(), owner_);
  } catch (const UserError& error) {
    // Where it lies is the server's affair.
    const std::string message = error.what();
    const std::size_t reason = message.find("continued: ");
    throw RequestError(400, "invalid_request_error",
                       fmt::format("the session '{}' cannot be continued{}", id,
                                   reason == std::string::npos ? "" : message.substr(reason + 9)));
  }
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) {
    free_at(id);
  } else {
    require_room();
  }
  Entry entry;
  entry.session = std::move(session);
  entry.saved = true;
  return insert(id, std::move(entry));
}

bool SessionStore::is_saved(const std::string& id) const {
  return is_id(id) && !options_.folder.empty() && fs::exists(path_of(id));
}

std::vector<std::string> SessionStore::save_all() {
  std::vector<std::string> problems;
  if (options_.folder.empty()) return problems;
  for (const SessionInfo& each : list()) {
    if (each.saved) continue;
    try {
      save(each.id);
    } catch (const std::exception& error) {
      problems.push_back(fmt::format("session {}: {}", each.id, error.what()));
    }
  }
  return problems;
}

std::uint64_t SessionStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return counted_bytes();
}

std::size_t SessionStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

SessionStore::Entry& SessionStore::at(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) throw not_found(id);
  return found->second;
}

const SessionStore::Entry& SessionStore::at(const std::string& id) const {
  return const_cast<SessionStore*>(this)->at(id);
}

SessionStore::Entry& SessionStore::free_at(const std::string& id) {
  Entry& entry = at(id);
  if (entry.taken) {
    throw RequestError(409, "invalid_request_error", fmt::format("another request works with the session '{}'", id),
                       "session");
  }
  return entry;
}

SessionInfo SessionStore::info_of(const std::string& id, const Entry& entry) const {
  SessionInfo info{id,
                   entry.session.consumed(),
                   entry.created,
                   entry.last_used,
                   entry.session.state.bytes(),
                   entry.saved,
                   {},
                   tail_of(entry.session, *generator_.tokenizer())};
  for (const Session& each : entry.snapshots) info.snapshots.push_back(each.consumed());
  return info;
}

std::string SessionStore::path_of(const std::string& id) const {
  if (options_.folder.empty()) {
    throw RequestError(400, "invalid_request_error",
                       "this server keeps no sessions on disk; cosformer serve --sessions FOLDER makes it do so");
  }
  return (fs::path(options_.folder) / (id + ".session")).string();
}

std::uint64_t SessionStore::counted_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [id, entry] : entries_) sum += entry.bytes;
  return sum;
}

// Snapshots are what can be done without: those of the session that nobody has used for longest go first.
void SessionStore::make_room() {
  while (counted_bytes() > options_.memory) {
    Entry* oldest = nullptr;
    for (auto& [id, entry] : entries_) {
      if (!entry.snapshots.empty() && (oldest == nullptr || entry.last_used < oldest->last_used)) oldest = &entry;
    }
    if (oldest == nullptr) return;
    oldest->snapshots.erase(oldest->snapshots.begin());
    count(*oldest);
  }
}

}  // namespace cosformer::serve
