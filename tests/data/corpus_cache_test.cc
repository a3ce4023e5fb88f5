// The cache of a corpus: made once, noticed when it is damaged, whole whoever is killed or works beside.
#include "data/corpus/corpus_cache.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "data/corpus_fixture.h"
#include "data/corpus_folder.h"
#include "data/file_mutation.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

using cosformer::testing::random_prose;
using cosformer::testing::read_bytes;
using cosformer::testing::replace_bytes;

TEST_F(CorpusTest, IsMadeOnceAndAgainWhenAFileChanged) {
  write("a.txt", "first text");
  const Corpus made = open_corpus(options({"a.txt"}), byte_tokenizer());
  EXPECT_EQ(made.caches_built.size(), 1U);
  EXPECT_TRUE(open_corpus(options({"a.txt"}), byte_tokenizer()).caches_built.empty());
  // Another name with the same content is the same corpus; another tokenizer is not.
  write("b.txt", "first text");
  EXPECT_EQ(only_cache(open_corpus(options({"b.txt"}), byte_tokenizer())), only_cache(made));
  const TokenizerPointer words = parse_word_vocabulary("first\n", "w");
  EXPECT_NE(only_cache(open_corpus(options({"a.txt"}), words)), only_cache(made));
  // The same size, and the time of the change set back.
  struct stat before {};
  ASSERT_EQ(::stat(directory_.file("a.txt").c_str(), &before), 0);
  write("a.txt", "other text");
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, directory_.file("a.txt").c_str(), times, 0), 0);
  const Corpus changed = open_corpus(options({"a.txt"}), byte_tokenizer());
  EXPECT_EQ(documents_of(changed, changed.train), std::vector<std::string>{"other text"});
}

TEST_F(CorpusTest, EveryTornOrFlippedCacheIsNoticed) {
  write("a.txt", std::string(700, 'x') + "\n\nand more\n\n" + std::string(900, 'y'));
  const Corpus corpus = open_corpus(options({"a.txt"}, DocumentRule::kBlankLines), byte_tokenizer());
  const std::string path = only_cache(corpus), good = read_bytes(path);
  Sha256::Digest key;
  std::copy(good.begin() + 16, good.begin() + 48, key.begin());
  EXPECT_TRUE(TokenCache(path, key, true).intact());
  const std::string copy = directory_.file("copy");
  const auto is_refused = [&](const std::string& bytes) {
    replace_bytes(copy, bytes);
    try {
      TokenCache(copy, key, true);
      return false;
    } catch (const UserError&) {
      return true;
    }
  };
  EXPECT_FALSE(is_refused(good));
  std::mt19937 random(11);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << random() % 8));
    ASSERT_TRUE(is_refused(flipped)) << "byte " << at << " of " << good.size();
    ASSERT_TRUE(at % 4 != 0 || is_refused(good.substr(0, at))) << "cut to " << at;
  }
  EXPECT_TRUE(is_refused(good + '\0'));
  Sha256::Digest other = key;
  other[3] ^= 1;
  EXPECT_THROW(TokenCache(path, other, false), UserError);

  // Opened without looking at the tokens, a damaged one is noticed before they are used, and removed.
  std::string flipped = good;
  flipped[100] ^= 4;
  replace_bytes(copy, flipped);
  const TokenCache lazy(copy, key, false);
  std::int32_t token = 0;
  EXPECT_THROW(lazy.read(5, {&token, 1}), Failure);
  EXPECT_FALSE(std::filesystem::exists(copy));

  // A damaged or torn cache is made again.
  for (const std::string& bad : {flipped, good.substr(0, good.size() / 2), std::string()}) {
    replace_bytes(path, bad);
    const Corpus again = open_corpus(options({"a.txt"}, DocumentRule::kBlankLines), byte_tokenizer());
    EXPECT_EQ(again.caches_built.size(), 1U);
    EXPECT_TRUE(read_bytes(path) == good);
  }
}

TEST_F(CorpusTest, KilledWhileBuildingItIsBuiltAnew) {
  std::mt19937 random(12);
  write("a.txt", random_prose(60000, random));
  CorpusOptions with = options({"a.txt"}, DocumentRule::kBlankLines);
  const auto begin = std::chrono::steady_clock::now();
  const Corpus whole = open_corpus(with, byte_tokenizer());
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  const std::string path = only_cache(whole), good = read_bytes(path);
  int killed = 0;
  for (int round = 0; round < 10; ++round) {
    std::filesystem::remove(path);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        open_corpus(with, byte_tokenizer());
      } catch (...) {
        ::_exit(2);
      }
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<long>(random()) % time.count()));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status);
    // What is at the path is whole, or nothing is.
    ASSERT_TRUE(!std::filesystem::exists(path) || read_bytes(path) == good);
    const Corpus again = open_corpus(with, byte_tokenizer());
    ASSERT_TRUE(read_bytes(path) == good);
    for (const auto& item : std::filesystem::directory_iterator(with.cache_folder)) {
      ASSERT_NE(item.path().extension(), ".tmp") << "a leftover of the killed process";
    }
  }
  EXPECT_GT(killed, 0);
}

TEST_F(CorpusTest, OfSeveralProcessesOneBuilds) {
  std::mt19937 random(14);
  write("a.txt", random_prose(20000, random));
  const CorpusOptions with = options({"a.txt"}, DocumentRule::kBlankLines);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() != 0) continue;
    try {
      ::_exit(open_corpus(with, byte_tokenizer()).caches_built.empty() ? 10 : 11);
    } catch (...) {
      ::_exit(2);
    }
  }
  int opened = 0, built = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    opened += WIFEXITED(status) && WEXITSTATUS(status) == 10;
    built += WIFEXITED(status) && WEXITSTATUS(status) == 11;
  }
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(built, 1);
}

}  // namespace
}  // namespace cosformer::data
