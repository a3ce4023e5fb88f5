// Folders, files and caches that are made to keep a reader busy for ever, to fill the memory or to end the process.
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/error.h"
#include "base/watchdog.h"
#include "data/corpus/corpus_cache.h"
#include "data/corpus/corpus_files.h"
#include "data/corpus/corpus_reader.h"
#include "data/corpus_fixture.h"
#include "data/dataset/array_dataset.h"
#include "data/dataset/dataset_file.h"
#include "data/file_mutation.h"
#include "data/readers/file_content.h"
#include "data/tokenizers/tokenizer_file.h"
#include "data/tokenizers/tokenizer_words.h"

namespace cosformer::data {
namespace {

namespace fs = std::filesystem;
using cosformer::testing::all_tokens;
using cosformer::testing::from_environment;
using cosformer::testing::message_of;
using cosformer::testing::mutated;
using cosformer::testing::read_bytes;
using cosformer::testing::replace_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::Watchdog;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

class HostileData : public ::testing::Test {
 protected:
  HostileData() { watchdog_.begin(0, 0); }

  CorpusOptions options(const std::string& name) const {
    CorpusOptions result;
    result.train = {directory_.file(name)};
    result.valid_fraction = 0;
    result.cache_folder = directory_.file("cache");
    result.threads = 2;
    return result;
  }

  void write_packed(const std::string& name, std::size_t megabytes, char byte) const {
    const gzFile out = ::gzopen(directory_.file(name).c_str(), "wb1");
    const std::string block(std::size_t{1} << 20, byte);
    for (std::size_t at = 0; at < megabytes; ++at) ::gzwrite(out, block.data(), static_cast<unsigned>(block.size()));
    ::gzclose(out);
  }

  const TemporaryDirectory directory_;
  Watchdog watchdog_{60};
};

long peak_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

TEST_F(HostileData, LinksOfAFolderToItselfAreNotFollowed) {
  fs::create_directories(directory_.file("texts/deep"));
  write_bytes(directory_.file("texts/a.txt"), "one\n");
  write_bytes(directory_.file("texts/deep/b.txt"), "two\n");
  fs::create_directory_symlink(".", directory_.file("texts/x"));
  fs::create_directory_symlink(directory_.file("texts"), directory_.file("texts/y"));
  fs::create_directory_symlink("..", directory_.file("texts/deep/z"));
  EXPECT_EQ(corpus_files({directory_.file("texts")}),
            (std::vector<std::string>{directory_.file("texts/a.txt"), directory_.file("texts/deep/b.txt")}));
  // A link to another folder is no circle, and may come twice.
  fs::create_directory_symlink("../texts/deep", directory_.file("texts/deep2"));
  EXPECT_EQ(corpus_files({directory_.file("texts")}).size(), 3U);
}

TEST_F(HostileData, PipesAndDevicesInPlaceOfDataAreRefusedAtOnce) {
  const std::string pipe = directory_.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero"), std::string("/dev/full")}) {
    const std::vector<std::function<void()>> readers = {
        [&] { read_content(path); },
        [&] { open_dataset(path); },
        [&] { UnpackedFile file(path); },
        [&] { TokenCache cache(path, {}, true); },
    };
    for (const auto& reader : readers) {
      EXPECT_PRED_FORMAT2(IsSubstring, "not a regular file", message_of<UserError>(reader));
    }
    EXPECT_THROW(open_tokenizer(path), UserError);
    CorpusOptions corpus = options("unused");
    corpus.train = {path};
    EXPECT_PRED_FORMAT2(IsSubstring, "not a regular file",
                        message_of<UserError>([&] { open_corpus(corpus, byte_tokenizer()); }));
  }
  EXPECT_EQ(read_content("/proc/self/maps"), "");  // made up by the system while it is read: no end is known
}

TEST_F(HostileData, MoreThanAHundredTimesItsSizeIsNotUnpacked) {
  write_packed("zeros.txt.gz", 300, '\0');
  const long before = peak_megabytes();
  EXPECT_PRED_FORMAT2(IsSubstring, "unpack it (gunzip)",
                      message_of<UserError>([&] { open_corpus(options("zeros.txt.gz"), byte_tokenizer()); }));
  EXPECT_LT(peak_megabytes() - before, 600) << "tokens are kept";
  for (const auto& item : fs::directory_iterator(directory_.file("cache"))) {
    EXPECT_NE(item.path().extension(), ".tmp") << item.path();
  }
  EXPECT_PRED_FORMAT2(IsSubstring, "unpack it (gunzip)",
                      message_of<UserError>([&] { read_content(directory_.file("zeros.txt.gz")); }));
  write_packed("small.txt.gz", 20, 'a');  // below the size at which it matters
  EXPECT_EQ(read_content(directory_.file("small.txt.gz")).size(), std::size_t{20} << 20);
}

TEST_F(HostileData, ALineThatIsTooLongNamesTheSettingToRaise) {
  write_bytes(directory_.file("a.txt"), "short\n" + std::string(3 << 20, 'x') + "\n");
  write_bytes(directory_.file("a.jsonl"), "{\"text\": \"" + std::string(3 << 20, 'x') + "\"}\n");
  const TokenizerPointer words = parse_word_vocabulary("short\n", "w");
  const auto complaint = [&](const std::string& name, const TokenizerPointer& tokenizer, DocumentRule rule) {
    CorpusOptions corpus = options(name);
    corpus.documents = rule;
    corpus.longest_line = std::uint64_t{2} << 20;
    return message_of<UserError>([&] { open_corpus(corpus, tokenizer); });
  };
  for (const std::string& message :
       {complaint("a.txt", words, DocumentRule::kFiles), complaint("a.txt", byte_tokenizer(), DocumentRule::kLines),
        complaint("a.jsonl", byte_tokenizer(), DocumentRule::kFiles)}) {
    EXPECT_PRED_FORMAT2(IsSubstring, "a line in it is longer than 2 MB", message);
    EXPECT_PRED_FORMAT2(IsSubstring, "data.max_line_megabytes", message);
  }
  // Where text is cut anywhere a line may have any length, and with room for it in any case.
  EXPECT_EQ(complaint("a.txt", byte_tokenizer(), DocumentRule::kFiles), "(nothing was thrown)");
  CorpusOptions corpus = options("a.txt");
  EXPECT_EQ(open_corpus(corpus, words).train.counts().words, 2U);
}

// Each segment of it is looked through once, not all that is left of the line.
TEST_F(HostileData, ALineOfManyMegabytesTakesSeconds) {
  const std::size_t size = std::size_t{40} << 20;
  write_bytes(directory_.file("a.txt"), std::string(size, 'x') + "\n");
  CorpusOptions lines = options("a.txt");
  lines.documents = DocumentRule::kLines;
  watchdog_.begin(0, 0);
  EXPECT_EQ(open_corpus(lines, byte_tokenizer()).train.tokens(), size + 1);
}

TEST_F(HostileData, ACacheThatIsCutShortWhileItIsReadIsAnError) {
  std::mt19937 random(5);
  write_bytes(directory_.file("a.txt"), testing::random_prose(40'000, random));
  const Corpus corpus = open_corpus(options("a.txt"), byte_tokenizer());
  ASSERT_GT(corpus.train.tokens(), 500'000U);
  fs::resize_file(corpus.cache_files.at(0), 4096);
  std::vector<std::int32_t> tokens(100);
  EXPECT_PRED_FORMAT2(IsSubstring, "became shorter",
                      message_of<Failure>([&] { corpus.train.read(corpus.train.tokens() - 100, tokens); }));
  std::vector<std::uint64_t> starts;
  corpus.train.document_starts(0, corpus.train.tokens(), starts);
  EXPECT_EQ(starts.size(), 1U);
  // The next time it is made anew.
  EXPECT_EQ(open_corpus(options("a.txt"), byte_tokenizer()).caches_built.size(), 1U);
}

TEST_F(HostileData, ADataSetThatIsCutShortWhileItIsReadStaysAsItWas) {
  DatasetBuilder builder(ElementType::kU8);
  for (int at = 0; at < 3; ++at) builder.add(std::string(100'000, static_cast<char>('a' + at)), 0);
  DatasetInfo info;
  info.vocabulary = kByteVocabulary;
  info.classes = {"only"};
  write_dataset(directory_.file("d"), *builder.finish(info));
  const auto dataset = open_dataset(directory_.file("d"));
  fs::resize_file(directory_.file("d"), 100);
  const Example example = dataset->get(2);
  EXPECT_EQ(std::string(static_cast<const char*>(static_cast<const void*>(example.first.data)), 100'000),
            std::string(100'000, 'c'));
}

// Bits of a cache's numbers changed, its checksums made right again.
TEST_F(HostileData, CachesWithOtherNumbersAndRightChecksumsAreReadOrRefused) {
  write_bytes(directory_.file("a.txt"), "one two\n\nthree\n\n" + std::string(3000, 'x'));
  CorpusOptions blank = options("a.txt");
  blank.documents = DocumentRule::kBlankLines;
  const Corpus corpus = open_corpus(blank, byte_tokenizer());
  const std::string good = read_bytes(corpus.cache_files.at(0)), copy = directory_.file("copy");
  const auto seal = [](std::string& bytes, std::size_t begin, std::size_t end) {
    const auto sum =
        static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data() + begin), end - begin));
    std::memcpy(bytes.data() + end, &sum, 4);
  };
  const auto seed = static_cast<std::uint32_t>(from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  unsigned long read = 0, refused = 0;
  const unsigned long rounds = from_environment("COSFORMER_FUZZ_ROUNDS", 3000);
  for (unsigned long round = 0; round < rounds; ++round) {
    watchdog_.begin(seed, round);
    std::string bytes = good;
    const bool in_footer = random() % 2 == 0;
    const std::size_t begin = in_footer ? bytes.size() - 64 : 64, size = in_footer ? 60 : bytes.size() - 128;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      bytes[begin + random() % size] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    if (bytes.size() > 128) {
      std::uint64_t tokens = 0;
      std::memcpy(&tokens, bytes.data() + bytes.size() - 56, 8);
      const std::size_t body = 64 + std::min<std::size_t>(bytes.size() - 128, (tokens * 2 + 7) / 8 * 8);
      const auto sum = static_cast<std::uint32_t>(
          ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data() + body), bytes.size() - 64 - body));
      std::memcpy(bytes.data() + bytes.size() - 32, &sum, 4);
      seal(bytes, bytes.size() - 64, bytes.size() - 4);
    }
    replace_bytes(copy, bytes);
    Sha256::Digest key{};
    if (good.size() > 48) std::copy(good.begin() + 16, good.begin() + 48, key.begin());
    try {
      const auto cache = std::make_shared<TokenCache>(copy, key, random() % 2 == 0);
      const CorpusPart part(cache);
      all_tokens(part);
      testing::all_starts(part);
      ++read;
    } catch (const UserError&) {
      ++refused;
    } catch (const Failure&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 0U);
  EXPECT_GT(refused, 0U);
}

TEST_F(HostileData, ADamagedMemoryOfHashesIsNone) {
  write_bytes(directory_.file("a.txt"), "some text");
  const std::string memory = directory_.file("files.json"), file = directory_.file("a.txt");
  const std::string hash = hash_files({file}, directory_.path(), options("a.txt")).at(0).hash;
  const std::string good = "{\"files\": {\"" + file +
                           "\": {\"size\": 9, \"device\": 1, \"inode\": 2, \"modified_ns\": 3, " +
                           "\"changed_ns\": 4, \"hash\": \"" + std::string(64, 'a') + "\"}}}";
  std::string deep;
  for (int at = 0; at < 100'000; ++at) deep += "{\"files\":";
  const auto seed = static_cast<std::uint32_t>(from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (unsigned long round = 0; round < 500; ++round) {
    watchdog_.begin(seed, round);
    replace_bytes(memory, round == 0 ? deep : mutated(good, random));
    ASSERT_EQ(hash_files({file}, directory_.path(), options("a.txt")).at(0).hash, hash);
  }
}

}  // namespace
}  // namespace cosformer::data
