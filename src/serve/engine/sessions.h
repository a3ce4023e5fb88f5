// Texts that are kept between requests, by name: in memory, and as files where a folder is given.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/engine/request.h"
#include "serve/generator.h"

namespace cosformer::serve {

struct SessionStoreOptions {
  std::string folder;                             // of this model's files; empty: nothing is saved
  std::uint64_t memory = std::uint64_t{1} << 30;  // bytes of all sessions and their snapshots
  std::size_t most_sessions = 4096;
  std::size_t most_snapshots = 64;  // of a session
};

struct SessionInfo {
  std::string id;
  std::int64_t tokens = 0, created = 0, last_used = 0;  // times: seconds since 1970
  std::uint64_t state_bytes = 0;
  bool saved = false;                   // as it is now
  std::vector<std::int64_t> snapshots;  // positions that a fork may begin from
  std::string text_tail;
};

// Everything throws RequestError: 404 for a session that is not there, 409 for one that somebody works with.
class SessionStore {
 public:
  SessionStore(const Generator& generator, SessionStoreOptions options);

  // Throws 400 for an id that is none, 409 for one that is taken, 503 where there is no room.
  void require_free(const std::string& id) const;
  std::string new_id() const;
  SessionInfo add(const std::string& id, Session session);

  // For who goes on with it: until give_back() or release() nobody else does.
  Session take(const std::string& id);
  SessionInfo give_back(const std::string& id, Session session);  // where it was taken is a snapshot then
  void release(const std::string& id);

  SessionInfo info(const std::string& id) const;
  std::vector<SessionInfo> list() const;
  SessionInfo fork(const std::string& id, const std::string& to, std::optional<std::int64_t> at);
  void remove(const std::string& id);  // its file too
  SessionInfo save(const std::string& id);
  SessionInfo restore(const std::string& id);  // as its file has it
  bool is_saved(const std::string& id) const;  // whether it has a file
  // Those that are not saved as they are. Tells what went wrong, a line each.
  std::vector<std::string> save_all();

  std::uint64_t bytes() const;
  std::size_t size() const;
  const SessionOwner& owner() const { return owner_; }

  static bool is_id(const std::string& text);

 private:
  struct Entry {
    Session session;
    std::vector<Session> snapshots;  // in the order of their positions
    std::int64_t created = 0, last_used = 0;
    std::uint64_t bytes = 0;  // of all of it
    bool saved = false, taken = false;
  };
  static void count(Entry& entry);
  Entry& at(const std::string& id);
  const Entry& at(const std::string& id) const;
  Entry& free_at(const std::string& id);
  SessionInfo info_of(const std::string& id, const Entry& entry) const;
  std::string path_of(const std::string& id) const;
  std::uint64_t counted_bytes() const;
  void make_room();
  void require_room() const;
  void check_free(const std::string& id) const;
  SessionInfo insert(const std::string& id, Entry entry);

  const Generator& generator_;
  const SessionStoreOptions options_;
  const SessionOwner owner_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace cosformer::serve
