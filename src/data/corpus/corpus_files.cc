#include "data/corpus/corpus_files.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/files/file_lock.h"
#include "base/files/regular_file.h"
#include "base/formats/json_text.h"
#include "base/formats/sha256.h"
#include "base/parallel.h"
#include "data/readers/file_content.h"

namespace cosformer::data {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kHashedAtOnce = std::uint64_t{4} << 20;
constexpr std::uint64_t kMostRemembered = std::uint64_t{1} << 30;  // bytes of files.json
constexpr std::size_t kMostFiles = 10'000'000;
constexpr std::int64_t kNanoseconds = 1'000'000'000;
// File systems' clocks step by a few milliseconds, some network ones by two seconds.
constexpr std::int64_t kFreshNs = 3 * kNanoseconds;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * kNanoseconds + time.tv_nsec;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string hash_content(const std::string& path, std::uint64_t size, unsigned threads,
                         const std::function<void(std::uint64_t)>& done) {
  const RegularFile file(path);
  const std::uint64_t pieces = (size + kHashedAtOnce - 1) / kHashedAtOnce;
  Sha256 whole;
  whole.add(&size, sizeof(size));
  const std::uint64_t round = std::uint64_t{8} * threads;
  for (std::uint64_t first = 0; first < pieces; first += round) {
    std::vector<Sha256::Digest> digests(static_cast<std::size_t>(std::min(round, pieces - first)));
    run_pieces(digests.size(), threads, [&](std::size_t i) {
      const std::uint64_t begin = (first + i) * kHashedAtOnce;
      std::string bytes(static_cast<std::size_t>(std::min(kHashedAtOnce, size - begin)), '\0');
      file.read(begin, bytes.data(), bytes.size());
      digests[i] = sha256(bytes);
    });
    for (const Sha256::Digest& digest : digests) whole.add(digest.data(), digest.size());
    done(std::min(size, (first + digests.size()) * kHashedAtOnce) - first * kHashedAtOnce);
  }
  return hexadecimal(whole.finish());
}

struct Remembered {
  FileStamp stamp;
  std::string hash;
};

// What cannot be read is as good as not remembered.
std::map<std::string, Remembered> recall(const std::string& path) {
  std::map<std::string, Remembered> known;
  if (!is_file(path)) return known;
  try {
    const Json files = parse_json(read_regular_file(path, kMostRemembered), path);
    for (const auto& [name, entry] : files.at("files").items()) {
      Remembered file;
      file.stamp = {entry.at("size").get<std::uint64_t>(), entry.at("device").get<std::uint64_t>(),
                    entry.at("inode").get<std::uint64_t>(), entry.at("modified_ns").get<std::int64_t>(),
                    entry.at("changed_ns").get<std::int64_t>()};
      file.hash = entry.at("hash").get<std::string>();
      if (file.hash.size() == 64) known.emplace(name, std::move(file));
    }
  } catch (const std::exception&) {
    known.clear();
  }
  return known;
}

void remember(const std::string& path, const std::map<std::string, Remembered>& known) {
  Json files = Json::object();
  for (const auto& [name, file] : known) {
    files[name] = {{"size", file.stamp.size},
                   {"device", file.stamp.device},
                   {"inode", file.stamp.inode},
                   {"modified_ns", file.stamp.modified_ns},
                   {"changed_ns", file.stamp.changed_ns},
                   {"hash", file.hash}};
  }
  const std::string text =
      Json{{"files", std::move(files)}}.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const FileLock lock(path);
  lock.remove_leftovers();
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

using FolderIdentity = std::pair<dev_t, ino_t>;

// `inside`: the folders that this one lies in. A link to one of them leads in circles and is not followed.
void add_folder(const std::string& folder, std::vector<FolderIdentity>& inside, std::vector<std::string>& files) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) throw file_failure("examine", folder, errno);
  const FolderIdentity identity{status.st_dev, status.st_ino};
  if (std::find(inside.begin(), inside.end(), identity) != inside.end()) return;
  for (const std::string& name : names_in_folder(folder, "")) files.push_back(folder + "/" + name);
  if (files.size() > kMostFiles) {
    throw UserError(
        fmt::format("the folder '{}' and those around it hold more than {} files; join small files into larger ones",
                    folder, kMostFiles));
  }
  inside.push_back(identity);
  for (const std::string& name : folders_in_folder(folder)) add_folder(folder + "/" + name, inside, files);
  inside.pop_back();
}

}  // namespace

FileStamp file_stamp(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      throw UserError(fmt::format("cannot read '{}': there is no such file; check the path", path));
    }
    throw file_failure("examine", path, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    throw UserError(fmt::format("cannot read '{}': it is not a regular file; give files or folders of text", path));
  }
  return {static_cast<std::uint64_t>(status.st_size), static_cast<std::uint64_t>(status.st_dev),
          static_cast<std::uint64_t>(status.st_ino), nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

std::vector<HashedFile> hash_files(const std::vector<std::string>& paths, const std::string& folder,
                                   const CorpusOptions& options) {
  const std::string memory = folder + "/files.json";
  std::map<std::string, Remembered> known = recall(memory);
  std::vector<HashedFile> files;
  std::vector<std::string> names;  // as they are remembered
  std::uint64_t total = 0;
  for (const std::string& path : paths) {
    HashedFile file{path, file_stamp(path), ""};
    names.push_back(std::filesystem::absolute(path).lexically_normal().string());
    const auto found = known.find(names.back());
    if (found != known.end() && found->second.stamp == file.stamp) {
      file.hash = found->second.hash;
    } else {
      total += file.stamp.size;
    }
    files.push_back(std::move(file));
  }
  if (std::all_of(files.begin(), files.end(), [](const HashedFile& file) { return !file.hash.empty(); })) return files;

  const Progress progress = options.progress ? options.progress("reading") : Progress();
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    HashedFile& file = files[i];
    if (!file.hash.empty()) continue;
    const std::int64_t begun = now_ns();
    file.hash = hash_content(file.path, file.stamp.size, thread_count(options.threads), [&](std::uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, total);
    });
    if (file_stamp(file.path) != file.stamp) {
      throw Failure(fmt::format("'{}' was changed while it was read; run again when it is complete", file.path));
    }
    known.erase(names[i]);
    if (std::max(file.stamp.modified_ns, file.stamp.changed_ns) < begun - kFreshNs) {
      known.emplace(names[i], Remembered{file.stamp, file.hash});
    }
  }
  try {
    remember(memory, known);
  } catch (const std::runtime_error&) {
    // A folder that cannot be written to may still hold the caches; what is not remembered is hashed again.
  }
  return files;
}

std::vector<std::string> corpus_files(const std::vector<std::string>& files_and_folders) {
  std::vector<std::string> files;
  for (const std::string& path : files_and_folders) {
    if (!is_folder(path)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    std::vector<FolderIdentity> inside;
    add_folder(path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path, inside, files);
    if (files.size() == before)
      throw UserError(fmt::format("the folder '{}' holds no files; give files or folders of text", path));
  }
  return files;
}

std::string default_cache_folder() {
  const auto from = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string cache = from("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/cosformer/corpora";
  if (const std::string home = from("HOME"); home.starts_with('/')) return home + "/.cache/cosformer/corpora";
  throw UserError("no folder for caches is known: neither XDG_CACHE_HOME nor HOME is set; give a cache folder");
}

}  // namespace cosformer::data
