// Batches made on other threads: in order, bounded, stopped cleanly, failures delivered; and streams over epochs.
#include "data/batches/prefetcher.h"

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/batches/batch_stream.h"
#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

using cosformer::testing::message_of;
using ::testing::IsSubstring;

// Jobs 0 to count - 1, each taking a random short time; `before` runs inside the job.
Prefetcher::NextJob numbered_jobs(std::uint32_t count, std::function<void(std::uint32_t)> before = {}) {
  return [count, before, next = std::uint32_t{0}]() mutable -> Prefetcher::Job {
    if (next == count) return {};
    return [before, number = next++] {
      std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(number)() % 200));
      if (before) before(number);
      Batch batch;
      batch.examples = {number};
      return batch;
    };
  };
}

TEST(Prefetcher, DeliversInOrderWhateverTheThreads) {
  for (const unsigned threads : {1U, 2U, 5U}) {
    for (const std::size_t ahead : {1, 3, 16}) {
      Prefetcher prefetcher(numbered_jobs(60), {threads, ahead});
      for (std::uint32_t i = 0; i < 60; ++i) {
        const auto batch = prefetcher.next();
        ASSERT_TRUE(batch);
        ASSERT_EQ(batch->examples.at(0), i);
      }
      EXPECT_FALSE(prefetcher.next());
      EXPECT_FALSE(prefetcher.next());
    }
  }
}

TEST(Prefetcher, KeepsWithinItsBound) {
  std::atomic<std::uint32_t> begun{0};
  Prefetcher prefetcher(numbered_jobs(100, [&](std::uint32_t) { ++begun; }), {4, 3});
  for (std::uint32_t i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_LE(begun.load(), i + 3);
    ASSERT_TRUE(prefetcher.next());
  }
}

TEST(Prefetcher, FailureComesInItsTurn) {
  Prefetcher prefetcher(numbered_jobs(100,
                                      [](std::uint32_t number) {
                                        if (number >= 5) throw std::runtime_error("job " + std::to_string(number));
                                      }),
                        {3, 4});
  for (std::uint32_t i = 0; i < 5; ++i) ASSERT_EQ(prefetcher.next()->examples.at(0), i);
  EXPECT_EQ(message_of<std::runtime_error>([&] { prefetcher.next(); }), "job 5");
  EXPECT_EQ(message_of<std::runtime_error>([&] { prefetcher.next(); }), "job 5");
}

TEST(Prefetcher, FailureToFindAJobIsDelivered) {
  Prefetcher prefetcher(
      [count = 0]() mutable -> Prefetcher::Job {
        if (++count == 3) throw std::runtime_error("no third job");
        return [] { return Batch{}; };
      },
      {2, 2});
  EXPECT_TRUE(prefetcher.next());
  EXPECT_TRUE(prefetcher.next());
  EXPECT_EQ(message_of<std::runtime_error>([&] { prefetcher.next(); }), "no third job");
}

TEST(Prefetcher, StopsCleanlyAtAnyMoment) {
  for (std::uint32_t round = 0; round < 50; ++round) {
    Prefetcher prefetcher(numbered_jobs(1000), {3, 4});
    for (std::uint32_t i = 0; i < round % 7; ++i) ASSERT_TRUE(prefetcher.next());
  }
}

TEST(Prefetcher, NeedsThreadsAndRoom) {
  EXPECT_THROW(Prefetcher(numbered_jobs(1), {0, 1}), UserError);
  EXPECT_THROW(Prefetcher(numbered_jobs(1), {1, 0}), UserError);
}

DatasetPointer texts(std::size_t size) {
  DatasetBuilder builder(ElementType::kU8);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < size; ++i)
    builder.add(std::string(1 + random() % 50, 'a'), static_cast<std::int32_t>(i % 2));
  DatasetInfo info;
  info.vocabulary = kByteVocabulary;
  info.classes = {"even", "odd"};
  return builder.finish(info);
}

BatchOptions by_tokens() {
  BatchOptions options;
  options.batch_size = 8;
  options.token_budget = 200;
  return options;
}

TEST(BatchStream, IsThePlanEpochAfterEpoch) {
  const DatasetPointer dataset = texts(100);
  BatchStream stream(dataset, by_tokens(), 9, {}, 3, {2, 5});
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    const EpochPlan plan = plan_epoch(lengths_of(*dataset), by_tokens(), 9, epoch);
    if (epoch == 0) {
      EXPECT_EQ(stream.batches_in_first_epoch(), plan.batches());
    }
    for (std::size_t b = 0; b < plan.batches(); ++b) {
      const auto batch = stream.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->position, (StreamPosition{epoch, b}));
      EXPECT_EQ(batch->next, b + 1 == plan.batches() ? (StreamPosition{epoch + 1, 0}) : (StreamPosition{epoch, b + 1}));
      EXPECT_EQ(batch->examples, (std::vector<std::uint32_t>(plan.batch(b).begin(), plan.batch(b).end())));
      EXPECT_EQ(batch->labels.at(0), static_cast<std::int32_t>(batch->examples[0] % 2));
    }
  }
  EXPECT_FALSE(stream.next());
}

TEST(BatchStream, GoesOnFromAnyBatch) {
  const DatasetPointer dataset = texts(60);
  std::vector<Batch> whole;
  BatchStream stream(dataset, by_tokens(), 4, {}, 2);
  while (auto batch = stream.next()) whole.push_back(std::move(*batch));
  for (std::size_t done = 1; done < whole.size(); ++done) {
    BatchStream resumed(dataset, by_tokens(), 4, whole[done - 1].next, 2, {3, 2});
    for (std::size_t i = done; i < whole.size(); ++i) {
      const auto batch = resumed.next();
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->examples, whole[i].examples);
      ASSERT_EQ(batch->first.tokens, whole[i].first.tokens);
      ASSERT_EQ(batch->position, whole[i].position);
    }
    ASSERT_FALSE(resumed.next());
  }
}

TEST(BatchStream, WithoutEndAndRefusals) {
  BatchStream endless(texts(3), by_tokens(), 4);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(endless.next());
  EXPECT_PRED_FORMAT2(IsSubstring, "has no batch", message_of<UserError>([] {
                        BatchOptions options = by_tokens();
                        options.drop_last = true;
                        BatchStream stream(texts(3), options, 4);
                      }));
  EXPECT_PRED_FORMAT2(IsSubstring, "cannot go on at batch 77 of epoch 1", message_of<UserError>([] {
                        BatchStream stream(texts(3), by_tokens(), 4, {1, 77});
                      }));
}

}  // namespace
}  // namespace cosformer::data
