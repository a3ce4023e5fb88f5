// Texts of the task recall (multi-query associative recall, Arora et al. 2023; a needle in a haystack): each is a pure
// function of the settings, the seeds, its part and its number, so that no files are needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batches/lm_batches.h"
#include "data/tasks/recall/recall_config.h"

namespace cosformer::data {

struct RecallQuery {
  std::int64_t place = 0;     // of the key; its value is the token behind it
  std::int64_t distance = 0;  // from the key of the pair to this one, in tokens
};

struct RecallText {
  std::vector<std::int32_t> tokens;
  std::int64_t pairs = 0;
  std::vector<RecallQuery> queries;  // by their places
};

// Of a text with so many pairs; with config.pairs the most that a text has.
std::int64_t queries_of(const RecallConfig& config, std::int64_t pairs);

// The parts draw from streams of their own. `training_seed` is train.seed: runs of different seeds train on different
// texts, and are judged by the same.
enum class RecallPart { kTrain, kValid, kTest };
struct RecallSeeds {
  std::uint64_t generate = 0, training = 0;
};

// The text `number` of a part; of training texts there are as many as anybody asks for. The config must be possible.
RecallText recall_text(const RecallConfig& config, const RecallSeeds& seeds, RecallPart part, std::uint64_t number);

// Texts as rows that a language model reads: targets are the values behind queried keys, kNoTarget elsewhere. `starts`
// has what `numbers` says. Without positions in a run.
LmBatch recall_batch(const std::vector<RecallText>& texts, std::vector<std::uint64_t> numbers);

// "v5 .2 k7 v0" for people: k keys, v values, dots fillers.
std::string in_words(const RecallText& text, const RecallConfig& config);

}  // namespace cosformer::data
