// Every file of a run damaged thousands of times, checksums made right again where there are some: it is read, or
// refused with a clear error; nothing crashes, hangs or takes memory without bound. COSFORMER_FUZZ_SEED repeats a run,
// COSFORMER_FUZZ_ROUNDS lengthens it.
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/error.h"
#include "base/formats/safetensors.h"
#include "base/watchdog.h"
#include "cosformer/weights.h"
#include "data/file_mutation.h"
#include "models/language/language_model_file.h"
#include "nn/tensor_file.h"
#include "runs/checkpoint.h"
#include "runs/result_file.h"
#include "runs/trained_models.h"
#include "train/language_fixture.h"
#include "train/reports/metrics_log.h"

namespace cosformer::train {
namespace {

using cosformer::testing::from_environment;
using cosformer::testing::message_of;
using cosformer::testing::mutated;
using cosformer::testing::read_bytes;
using cosformer::testing::replace_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::Watchdog;
using cosformer::testing::write_bytes;
using nlohmann::json;
using ::testing::IsSubstring;

std::uint32_t crc_of(const std::string& text) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

// A finished run of a small language model, made once for all tests here.
class RunMutation : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory();
    write_bytes(folder_->file("text.txt"), random_text(3000));
    const runs::RunConfig config = small_language_run(*folder_, "lm", {"train.steps=6", "train.eval_every=3"});
    Watched watched;
    train_language_in(folder_->file("run"), config, watched);
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string run() { return folder_->file("run"); }
  static std::string file(const std::string& name) { return run() + "/" + name; }

  // Puts `damage(random)` into the file again and again, calls `read`, and puts back what was there.
  void fuzz(const std::string& path, unsigned long usual_rounds,
            const std::function<std::string(std::mt19937&)>& damage, const std::function<void()>& read) {
    const std::string good = read_bytes(path);
    const auto seed = static_cast<std::uint32_t>(from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
    std::cout << path.substr(run().size() + 1) << ": seed " << seed << "\n";
    std::mt19937 random(seed);
    Watchdog watchdog(20);
    unsigned long refused = 0;
    for (unsigned long round = 0; round < from_environment("COSFORMER_FUZZ_ROUNDS", usual_rounds); ++round) {
      watchdog.begin(seed, round);
      replace_bytes(path, damage(random));
      try {
        read();
      } catch (const UserError& error) {
        const std::string message = error.what();
        ASSERT_EQ(message.find("json.exception"), std::string::npos) << message;
        ASSERT_LT(message.size(), 20'000U);
        ++refused;
      } catch (const Failure&) {
        ++refused;
      }
    }
    replace_bytes(path, good);
    EXPECT_GT(refused, 0U);
    read();
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss >> 10, 2000) << "megabytes were needed";
  }

  void fuzz(const std::string& path, unsigned long usual_rounds, const std::function<void()>& read) {
    const std::string good = read_bytes(path);
    fuzz(
        path, usual_rounds, [good](std::mt19937& random) { return mutated(good, random); }, read);
  }

  static const TemporaryDirectory* folder_;
};

const TemporaryDirectory* RunMutation::folder_ = nullptr;

TEST_F(RunMutation, Settings) {
  fuzz(file("config.toml"), 2000, [] { require_possible(runs::read_run(run())); });
}

// Numbers in them replaced by absurd ones: the model is refused before it is built.
TEST_F(RunMutation, SettingsWithAbsurdNumbers) {
  const std::string good = read_bytes(file("config.toml"));
  const auto damage = [good](std::mt19937& random) {
    static const char* const kNumbers[] = {"9223372036854775807",
                                           "-9223372036854775808",
                                           "4611686018427387904",
                                           "1e308",
                                           "-1",
                                           "0",
                                           "999",
                                           "1000000007",
                                           "1e-308",
                                           "nan",
                                           "inf"};
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at + 3 < good.size(); ++at) {
      if (good.compare(at, 2, "= ") == 0 && (std::isdigit(good[at + 2]) != 0)) places.push_back(at + 2);
    }
    const std::size_t begin = places[random() % places.size()], end = good.find('\n', begin);
    return good.substr(0, begin) + kNumbers[random() % 11] + good.substr(end);
  };
  fuzz(file("config.toml"), 150, damage, [] {
    runs::RunConfig config = runs::read_run(run());
    require_possible(config);
    config.train.device = "cpu";
    const LanguageData data = open_text(config, run());
    LanguageJob job(config, data);
    job.begin({}, false);
    if (config.text.window * std::max<std::int64_t>(config.train.batch_size, 1) < 1 << 20) job.next();
  });
}

// The state in checkpoint.json changed, its checksum made right.
TEST_F(RunMutation, CheckpointWithRightChecksums) {
  const std::int64_t step = runs::checkpoint_steps(run()).back();
  const std::string path = runs::checkpoint_path(run(), step) + "/checkpoint.json", good = read_bytes(path);
  const auto damage = [good](std::mt19937& random) {
    json description = json::parse(good);
    json& body = description["checkpoint"];
    static const std::vector<json> kValues = {nullptr,
                                              true,
                                              "text",
                                              -1,
                                              1e300,
                                              std::numeric_limits<std::uint64_t>::max(),
                                              (std::uint64_t{1} << 63) + 1,
                                              std::numeric_limits<std::int64_t>::max(),
                                              json::array({1, "x"}),
                                              json::object({{"a", 1}}),
                                              0.5};
    if (random() % 4 == 0) return mutated(good, random);
    json& part = random() % 4 == 0 ? body["files"] : body["state"];
    auto item = part.begin();
    std::advance(item, static_cast<std::ptrdiff_t>(random() % part.size()));
    if (random() % 8 == 0) {
      part.erase(item);
    } else {
      item.value() = kValues[random() % kValues.size()];
    }
    if (random() % 16 == 0) part["../../config.toml"] = 1;
    return json{{"checkpoint", body}, {"crc32", crc_of(body.dump())}}.dump(1);
  };
  const runs::RunConfig config = runs::read_run(run());
  const LanguageData data = open_text(config, run());
  const std::string folder = runs::checkpoint_path(run(), step);
  const runs::CheckpointContent content{nn::read_all_tensors(folder + "/model.safetensors"),
                                        nn::read_all_tensors(folder + "/optimizer.safetensors"),
                                        "",
                                        {}};
  LanguageJob job(config, data);
  const std::string name = job.data_name();
  fuzz(path, 1500, damage, [&] {
    const runs::TrainState state = runs::load_checkpoint(run(), step, content, name);
    ASSERT_GE(state.step, 0);
    ASSERT_LE(state.step, state.total_steps);
    ASSERT_LT(state.total_steps, std::int64_t{1} << 60);
    job.begin(state.position, false);
    job.next();
  });
}

TEST_F(RunMutation, TensorsOfACheckpoint) {
  const std::int64_t step = runs::checkpoint_steps(run()).back();
  const std::string folder = runs::checkpoint_path(run(), step);
  for (const char* name : {"/model.safetensors", "/optimizer.safetensors"}) {
    const nn::NamedTensors tensors = nn::read_all_tensors(folder + name);
    fuzz(folder + name, 700, [&] {
      nn::read_tensors(folder + name, tensors);
      nn::read_all_tensors(folder + name);
    });
  }
}

TEST_F(RunMutation, CheckpointNestedDeeply) {
  const std::int64_t step = runs::checkpoint_steps(run()).back();
  const std::string path = runs::checkpoint_path(run(), step) + "/checkpoint.json", good = read_bytes(path);
  std::string deep = "{\"checkpoint\": ";
  for (int at = 0; at < 100'000; ++at) deep += "{\"a\":";
  replace_bytes(path, deep + "1" + std::string(100'000, '}') + ", \"crc32\": 1}");
  EXPECT_PRED_FORMAT2(IsSubstring, "nested deeper",
                      message_of<UserError>([&] { runs::load_checkpoint(run(), step, {}, ""); }));
  replace_bytes(path, good);
}

TEST_F(RunMutation, Result) {
  fuzz(file("result.json"), 3000, [] {
    runs::read_result_summary(run());
    runs::read_result(run());
  });
  const std::string good = read_bytes(file("result.json"));
  for (const char* other : {"{\"parameters\": \"many\"}", "{\"seconds\": [1]}", "[]", "7", "{\"parameters\": 1e300}"}) {
    replace_bytes(file("result.json"), other);
    EXPECT_PRED_FORMAT2(IsSubstring, "result.json' is not as it was written",
                        message_of<UserError>([] { runs::read_result_summary(run()); }));
  }
  replace_bytes(file("result.json"), good);
}

TEST_F(RunMutation, Metrics) {
  const std::string good = read_bytes(file("metrics.jsonl"));
  fuzz(file("metrics.jsonl"), 2000, [] { for_each_metrics(run(), [](auto, const json&, auto) {}); });
  for (const char* other : {"{\"step\": \"x\"}\n", "[1]\n", "{}\n", "{\"step\": 1e300}\n", "nonsense\n"}) {
    replace_bytes(file("metrics.jsonl"), good + other);
    EXPECT_PRED_FORMAT2(IsSubstring, "is not as it was written", message_of<UserError>([] { MetricsLog(run(), 100); }));
  }
  replace_bytes(file("metrics.jsonl"), good + "{\"step\": ");  // a torn last line is none
  for_each_metrics(run(), [](auto, const json&, auto) {});
  replace_bytes(file("metrics.jsonl"), good);
}

TEST_F(RunMutation, Weights) {
  fuzz(file("best.safetensors"), 600, [] { runs::load_trained_language_model(run()); });
}

// The description of the model in its metadata changed, everything around it right.
TEST_F(RunMutation, WeightsThatDescribeAnotherModel) {
  const std::string path = file("best.safetensors");
  const nn::NamedTensors tensors = nn::read_all_tensors(path);
  const safetensors::Metadata metadata = safetensors::Reader(path).metadata();
  const std::string description = metadata.at(models::kLanguageModelKey), scratch = folder_->file("scratch");
  const auto damage = [&](std::mt19937& random) {
    std::string text = description;
    if (random() % 2 == 0) {
      text = mutated(text, random);
    } else {
      std::vector<std::size_t> places;
      for (std::size_t at = 0; at + 2 < text.size(); ++at) {
        if (text.compare(at, 2, "= ") == 0 && (std::isdigit(text[at + 2]) != 0)) places.push_back(at + 2);
      }
      text.insert(places[random() % places.size()], std::to_string(1 + random() % 1'000'000));
    }
    safetensors::Metadata changed = metadata;
    changed[models::kLanguageModelKey] = text;
    try {
      nn::write_tensors(scratch, tensors, changed);
    } catch (const UserError&) {  // not UTF-8, which the format requires
      return read_bytes(path);
    }
    return read_bytes(scratch);
  };
  const std::string good = read_bytes(path);
  const auto rounds = from_environment("COSFORMER_FUZZ_ROUNDS", 300);
  const auto seed = static_cast<std::uint32_t>(from_environment("COSFORMER_FUZZ_SEED", std::random_device{}()));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  Watchdog watchdog(20);
  unsigned long refused = 0;
  for (unsigned long round = 0; round < rounds; ++round) {
    watchdog.begin(seed, round);
    const std::string bytes = damage(random);
    replace_bytes(path, bytes);
    try {
      runs::load_trained_language_model(run());
    } catch (const UserError&) {
      ++refused;
    }
    replace_bytes(path, good);
  }
  EXPECT_GT(refused, rounds / 4);
}

TEST_F(RunMutation, AFlippedBitAmongTheNumbersOfTheWeightsIsNoticed) {
  const std::string path = file("best.safetensors"), good = read_bytes(path);
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    std::string bytes = good;
    const std::size_t at = 8 + header + random() % (bytes.size() - 8 - header);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    replace_bytes(path, bytes);
    ASSERT_PRED_FORMAT2(IsSubstring, "the checksum differs",
                        message_of<UserError>([] { runs::load_trained_language_model(run()); }));
  }
  // Files from before there was a checksum, and those of other programs, are as good.
  const nn::NamedTensors tensors = nn::read_all_tensors(path);
  safetensors::Metadata metadata = safetensors::Reader(path).metadata();
  ASSERT_EQ(metadata.erase(nn::kChecksumKey), 1U);
  nn::write_tensors(path, tensors, metadata);
  runs::load_trained_language_model(run());
  replace_bytes(path, good);
}

TEST_F(RunMutation, WeightsThatAreNotFiniteAreRefused) {
  const std::string path = file("best.safetensors"), good = read_bytes(path);
  const auto model = runs::load_trained_language_model(run());
  const safetensors::Metadata metadata = safetensors::Reader(path).metadata();
  {
    at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters()) parameter.fill_(std::nan(""));
  }
  save_weights(path, *model, metadata);
  EXPECT_PRED_FORMAT2(IsSubstring, "not finite numbers",
                      message_of<UserError>([] { runs::load_trained_language_model(run()); }));
  replace_bytes(path, good);
}

TEST_F(RunMutation, PipesAndDevicesInPlaceOfItsFilesAreRefusedAtOnce) {
  const std::int64_t step = runs::checkpoint_steps(run()).back();
  const std::string folder = runs::checkpoint_path(run(), step) + "/";
  const runs::CheckpointContent content{nn::read_all_tensors(folder + "model.safetensors"),
                                        nn::read_all_tensors(folder + "optimizer.safetensors"),
                                        "",
                                        {}};
  const std::vector<std::pair<std::string, std::function<void()>>> readers = {
      {file("config.toml"), [] { runs::read_run(run()); }},
      {file("result.json"), [] { runs::read_result(run()); }},
      {file("metrics.jsonl"), [] { MetricsLog(run(), 3); }},
      {file("best.safetensors"), [] { runs::load_trained_language_model(run()); }},
      {file("tokenizer"), [] { runs::tokenizer_of_run(run()); }},
      {folder + "checkpoint.json", [&] { runs::load_checkpoint(run(), step, content, ""); }},
      {folder + "model.safetensors", [&] { runs::load_checkpoint(run(), step, content, ""); }},
      {folder + "optimizer.safetensors", [&] { runs::load_checkpoint(run(), step, content, ""); }},
  };
  Watchdog watchdog(20);
  for (const auto& [path, read] : readers) {
    const std::string kept = folder_->file("kept");
    std::filesystem::rename(path, kept);
    for (const bool pipe : {true, false}) {
      watchdog.begin(0, 0);
      if (pipe) {
        ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
      } else {
        std::filesystem::create_symlink("/dev/zero", path);
      }
      EXPECT_THROW(read(), UserError) << path;
      std::filesystem::remove(path);
    }
    std::filesystem::rename(kept, path);
  }
}

}  // namespace
}  // namespace cosformer::train
