// Every reader given thousands of damaged files: it reads them or refuses them with a UserError, and never crashes or
// hangs. COSFORMER_FUZZ_SEED repeats a run, COSFORMER_FUZZ_ROUNDS lengthens it.
#include <functional>
#include <iostream>
#include <random>

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"
#include "data/dataset_content.h"
#include "data/file_mutation.h"
#include "data/image_files.h"
#include "data/readers/images/image_readers.h"
#include "data/readers/images/image_sequence.h"
#include "data/readers/number_reader.h"
#include "data/readers/text_readers.h"
#include "data/readers/unlabelled/prediction_input.h"
#include "data/tasks/listops/listops_tsv.h"
#include "data/tasks/same_article.h"

namespace cosformer::data {
namespace {

using cosformer::testing::from_environment;
using cosformer::testing::idx_bytes;
using cosformer::testing::mutated;
using cosformer::testing::numpy_strings;
using cosformer::testing::png_bytes;
using cosformer::testing::replace_bytes;
using cosformer::testing::TemporaryDirectory;

using Load = std::function<Loaded(const std::string& path, RowPolicy policy)>;

// Damages the file at `path` again and again. Some rounds must be read, some refused: else the seed file is of no use.
void fuzz(const std::string& path, const std::string& good, const Load& load) {
  const auto seed = static_cast<std::uint32_t>(from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
  const unsigned long rounds = from_environment("COSFORMER_FUZZ_ROUNDS", 3000);
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  unsigned long read = 0, refused = 0;
  for (unsigned long round = 0; round < rounds; ++round) {
    replace_bytes(path, mutated(good, random));
    try {
      const Loaded loaded = load(path, {.skip_bad_rows = random() % 2 == 0});
      const Dataset& dataset = *loaded.dataset;
      ASSERT_EQ(loaded.report.rows_used, dataset.size());
      for (std::size_t i = 0; i < dataset.size(); ++i) {
        const Example example = dataset.get(i);
        ASSERT_GE(example.label, kNoLabel);
        ASSERT_LT(example.label, static_cast<std::int64_t>(dataset.info().classes.size()));
        ASSERT_GT(example.first.size, 0U);
        ASSERT_LE(example.first.size, static_cast<std::size_t>(dataset.info().max_length));
        if (dataset.info().vocabulary == 0) continue;
        for (const std::int32_t id : testing::token_ids(example.first)) {
          ASSERT_GE(id, kFirstToken);
          ASSERT_LT(id, dataset.info().vocabulary);
        }
      }
      ++read;
    } catch (const UserError& error) {
      ASSERT_LT(std::string(error.what()).size(), 1500U);
      ++refused;
    }
  }
  EXPECT_GT(read, 0U);
  EXPECT_GT(refused, 0U);
}

class ReaderFuzz : public ::testing::Test {
 protected:
  std::string folder(const std::string& name) const {
    std::filesystem::create_directories(directory_.file(name));
    return directory_.file(name);
  }
  const TemporaryDirectory directory_;
};

TEST_F(ReaderFuzz, ListOps) {
  fuzz(directory_.file("a.tsv"), "Source\tTarget\n( ( ( [MAX 2 ) 9 ) ] )\t9\n[MED 1 [SM 3 4 ] ]\t4\n",
       [](const std::string& path, RowPolicy policy) { return load_listops_tsv(path, policy); });
}

TEST_F(ReaderFuzz, TextTables) {
  const Load load = [](const std::string& path, RowPolicy policy) {
    TextOptions options;
    options.rows = policy;
    return load_text(path, options);
  };
  fuzz(directory_.file("a.csv"), "text,label,x\n\"a \"\"b\"\"\nc\",1,2\nplain,0,\"\"\n", load);
  fuzz(directory_.file("a.tsv"), "label\ttext\nham\thello\nspam\tbuy\n", load);
  fuzz(directory_.file("a.jsonl"), "{\"text\": \"a\\u00e9\", \"label\": 1}\n{\"text\": \"b\", \"label\": \"x\"}\n",
       load);
}

TEST_F(ReaderFuzz, PublishedText) {
  fuzz(
      directory_.file("imdb.tsv"), "0\t3\t17\tbad film\n1\t9\t18\tgood\n",
      [](const std::string& path, RowPolicy policy) { return load_imdb_tsv(path, {.max_length = 0, .rows = policy}); });
  fuzz(directory_.file("aan.tsv"), "1.0\tP1\tP2\tone\ttwo\n0.0\tP3\tP4\tx\ty\n",
       [](const std::string& path, RowPolicy policy) { return load_aan(path, {.max_length = 2, .rows = policy}); });
}

TEST_F(ReaderFuzz, Numbers) {
  for (const Content content : {Content::kTokens, Content::kValues}) {
    fuzz(directory_.file("n.csv"), content == Content::kTokens ? "0,1,300,7\n1,0,2\n" : "a,1.5,-2e3\nb,0.25,1e-3\n",
         [&](const std::string& path, RowPolicy policy) {
           NumberOptions options;
           options.content = content;
           options.rows = policy;
           return load_numbers(path, options);
         });
  }
}

TEST_F(ReaderFuzz, Idx) {
  const std::string labels = directory_.file("labels"), images = directory_.file("images");
  const std::string good_labels = idx_bytes({2}, std::string{1, 0}), good_images = idx_bytes({2, 2, 2}, "abcdefgh");
  const Load load = [&](const std::string&, RowPolicy policy) {
    IdxOptions options;
    options.rows = policy;
    return load_idx(images, labels, options);
  };
  replace_bytes(labels, good_labels);
  fuzz(images, good_images, load);
  replace_bytes(images, good_images);
  fuzz(labels, good_labels, load);
}

TEST_F(ReaderFuzz, Gzip) {
  // "text,label\nhello,x\nworld,y\n" packed.
  const std::string plain = "text,label\nhello,x\nworld,y\n";
  const std::string path = directory_.file("a.csv.gz");
  {
    const gzFile out = ::gzopen(path.c_str(), "wb");
    ::gzwrite(out, plain.data(), static_cast<unsigned>(plain.size()));
    ::gzclose(out);
  }
  fuzz(path, testing::read_bytes(path), [](const std::string& file, RowPolicy policy) {
    TextOptions options;
    options.rows = policy;
    return load_text(file, options);
  });
}

TEST_F(ReaderFuzz, Cifar) {
  fuzz(directory_.file("a.bin"), std::string(1025, '\1'),
       [](const std::string& path, RowPolicy policy) { return load_cifar10({path}, {.channels = 0, .rows = policy}); });
}

TEST_F(ReaderFuzz, PngFolder) {
  const std::string root = folder("images");
  folder("images/a");
  const std::string png = png_bytes(4, 3, PNG_FORMAT_RGB, std::vector<std::uint8_t>(36, 77));
  replace_bytes(root + "/a/0.png", png);
  fuzz(root + "/a/1.png", png, [&](const std::string&, RowPolicy policy) {
    PngFolderOptions options;
    options.rows = policy;
    return load_png_folder(root, options);
  });
}

TEST_F(ReaderFuzz, PathfinderFolder) {
  folder("metadata");
  folder("imgs/0");
  for (const int i : {0, 1}) {
    replace_bytes(directory_.file("imgs/0/s" + std::to_string(i)), png_bytes(2, 2, PNG_FORMAT_GRAY, {1, 2, 3, 4}));
  }
  const Load load = [&](const std::string&, RowPolicy policy) {
    return load_pathfinder_folder(directory_.path(), policy);
  };
  fuzz(directory_.file("metadata/0.npy"), "imgs/0 s0 0 1 1.0\nimgs/0 s1 1 0 1.0\n", load);
  fuzz(directory_.file("metadata/0.npy"), numpy_strings({{"imgs/0", "s0", "0", "1"}, {"imgs/0", "s1", "1", "0"}}),
       load);
}

// The reader of prediction inputs in the form of the others.
Load predicting(const std::string& task, const DatasetInfo& info) {
  return [=](const std::string& path, RowPolicy policy) {
    DataConfig config;
    config.task = task;
    PredictionInput input = read_prediction_input(path, config, info, {"auto", policy.skip_bad_rows});
    EXPECT_EQ(input.names.size(), input.dataset->size());
    return Loaded{std::dynamic_pointer_cast<const ArrayDataset>(input.dataset), std::move(input.report), {}};
  };
}

TEST_F(ReaderFuzz, PredictionInputs) {
  DatasetInfo text;
  text.vocabulary = kByteVocabulary;
  text.classes = {"ham", "spam"};
  DatasetInfo pairs = text;
  pairs.pairs = true;
  fuzz(directory_.file("a.csv"), "text,label\n\"a \"\"b\"\"\nc\",ham\nplain,\n", predicting("text_files", text));
  fuzz(directory_.file("a.jsonl"), "{\"text\": \"a\\u00e9\"}\n{\"text\": \"b\", \"label\": \"spam\"}\n",
       predicting("text", text));
  fuzz(directory_.file("a.txt"), "one\ttwo\nthree\tfour\n", predicting("text_pairs", pairs));
  DatasetInfo listops;
  listops.vocabulary = 17;
  listops.classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  fuzz(directory_.file("b.txt"), "( ( ( [MAX 2 ) 9 ) ] )\n[MED 1 [SM 3 4 ] ]\n", predicting("listops", listops));
  DatasetInfo tokens = text;
  tokens.vocabulary = 40;
  fuzz(directory_.file("n.csv"), "1,30,7\n0,2\n", predicting("token_sequences", tokens));
}

TEST_F(ReaderFuzz, PredictedImages) {
  const DatasetInfo info = describe_images("images", 4, 3, {"a", "b"});
  fuzz(directory_.file("a.png"), png_bytes(4, 3, PNG_FORMAT_RGB, std::vector<std::uint8_t>(36, 77)),
       predicting("png_images", info));
  fuzz(directory_.file("a.idx"), idx_bytes({2, 3, 4}, "abcdefghijklmnopqrstuvwx"), predicting("idx_images", info));
}

TEST_F(ReaderFuzz, Articles) {
  std::string articles;
  for (char c = 'a'; c < 'i'; ++c) articles += std::string(24, c) + "\n\n";
  fuzz(directory_.file("articles.txt"), articles, [](const std::string& path, RowPolicy) {
    const SameArticleOptions options = {.seed = 1,
                                        .train = 8,
                                        .valid = 4,
                                        .test = 4,
                                        .least_length = 2,
                                        .most_length = 12,
                                        .valid_fraction = 0.25,
                                        .test_fraction = 0.25};
    const SameArticleSplits splits = load_same_article(path, options);
    DatasetBuilder copies(ElementType::kU8, true);
    for (const DatasetPointer& part : {splits.train, splits.valid, splits.test}) {
      for (std::size_t i = 0; i < part->size(); ++i) {
        const Example example = part->get(i);
        copies.add_pair(testing::text_of(example.first), testing::text_of(example.second), example.label);
      }
    }
    Loaded loaded{copies.finish(splits.train->info()), {}, {}};
    loaded.report.rows_used = loaded.dataset->size();
    return loaded;
  });
}

}  // namespace
}  // namespace cosformer::data
