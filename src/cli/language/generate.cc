// `cosformer generate`: a trained language model continues a text.
#include <cstdio>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/atomic_file.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/terminal/numbers.h"
#include "cli/terminal/progress_line.h"
#include "data/readers/file_content.h"
#include "runs/device.h"
#include "runs/language_run.h"
#include "serve/text_writer.h"

namespace cosformer::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  std::string run, prompt, prompt_file, session, save_session, device = "auto";
  serve::SamplingOptions sampling;
  std::vector<std::string> stops;
  std::uint64_t seed = 0;
  bool seed_given = false, json = false, logits = false, past_end = false;
  long long samples = 1, max_tokens = 256;
};

std::string read_prompt(const Options& o) {
  if (o.prompt_file.empty()) return o.prompt;
  return data::read_content(o.prompt_file == "-" ? "/dev/stdin" : o.prompt_file);
}

serve::WritingOptions writing_options(const Options& o) {
  return {o.sampling, o.max_tokens, o.stops, o.past_end, /*is_continued=*/!o.save_session.empty()};
}

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void report(const serve::WrittenText& sample, const serve::Session& session) {
  const double rate = static_cast<double>(sample.tokens.size()) / std::max(sample.seconds, 1e-9);
  std::fprintf(stderr, "cosformer: %s tokens, %s a second; the state after %s tokens takes %s bytes; ended by %s\n",
               with_commas(static_cast<long long>(sample.tokens.size())).c_str(), significant(rate, 3).c_str(),
               with_commas(session.consumed()).c_str(),
               with_commas(static_cast<long long>(session.state.bytes())).c_str(),
               serve::name_of(sample.ended_by).c_str());
}

void print_json(const Options& o, const serve::WrittenText& sample, const serve::Session& after,
                std::int64_t prompt_tokens, const at::Tensor& logits) {
  ordered_json json{{"text", sample.text},
                    {"tokens", sample.tokens},
                    {"prompt_tokens", prompt_tokens},
                    {"ended_by", serve::name_of(sample.ended_by)},
                    {"seed", after.seed},
                    {"seconds", sample.seconds},
                    {"consumed", after.consumed()},
                    {"state_bytes", after.state.bytes()}};
  if (o.logits)
    json["logits"] = std::vector<float>(logits.data_ptr<float>(), logits.data_ptr<float>() + logits.numel());
  std::printf("%s\n", json.dump(-1, ' ', false, ordered_json::error_handler_t::replace).c_str());
}

void run_generate(const Options& o) {
  o.sampling.require_possible();
  if (o.samples > 1 && !o.save_session.empty()) {
    throw UserError(fmt::format("--save-session keeps one text, and --samples {} are asked for", o.samples));
  }
  if (!o.save_session.empty()) require_writable(o.save_session);
  if (o.logits && !o.json) throw UserError("--logits needs --json, which it adds to");
  const runs::LanguageRun run = runs::open_language_run(o.run);
  runs::TrainConfig where;
  where.device = o.device;
  run.model->to(runs::device_of(where));
  const serve::Generator generator(run.model, run.tokenizer);
  const bool keeps = !o.session.empty() || !o.save_session.empty();
  const serve::SessionOwner owner = keeps ? generator.owner() : serve::SessionOwner{};
  serve::Session session =
      o.session.empty() ? generator.begin(o.seed) : serve::load_session(o.session, *run.model, owner);
  if (o.seed_given) session.seed = o.seed;
  const std::vector<std::int32_t> prompt = run.tokenizer->encode(read_prompt(o));
  generator.read(session, prompt, progress_line("prompt", "tokens", prompt.size()));
  const std::optional<std::int64_t> room = generator.room(session);
  if (room.has_value() && *room < o.max_tokens) {
    std::fprintf(
        stderr,
        "cosformer: the model's horizon is %s tokens, of which %s are behind the text: %s more can be written, "
        "not %s\n",
        with_commas(*run.model->longest_stream()).c_str(), with_commas(session.consumed()).c_str(),
        with_commas(*room).c_str(), with_commas(o.max_tokens).c_str());
  }
  const std::uint64_t first_seed = session.seed;
  for (long long at = 0; at < o.samples; ++at) {
    serve::Session own = session;
    own.seed = first_seed + static_cast<std::uint64_t>(at);
    if (!o.json && o.samples > 1) std::printf("%s--- sample %lld\n", at > 0 ? "\n" : "", at + 1);
    const serve::WrittenText sample =
        serve::write_text(generator, own, writing_options(o), o.json ? std::function<void(std::string_view)>() : show);
    if (o.json) {
      print_json(o, sample, own, static_cast<std::int64_t>(prompt.size()), session.logits);
    } else {
      if (!sample.text.ends_with('\n')) std::printf("\n");
      report(sample, own);
    }
    if (!o.save_session.empty()) serve::save_session(o.save_session, own, owner);
  }
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  serve::SamplingOptions& s = o->sampling;
  app.add_option("RUN", o->run, "The folder of a language model's run, or its bundle.")->required();
  CLI::Option* prompt =
      app.add_option("--prompt", o->prompt, "Continues this text; by default a text is begun from nothing.");
  app.add_option("--prompt-file", o->prompt_file, "Continues the text of this file, or of standard input: -.")
      ->excludes(prompt);
  app.add_option("--max-tokens", o->max_tokens, "Ends after this many tokens.")
      ->check(whole_number(0, 1LL << 40))
      ->capture_default_str();
  app.add_option("--temperature", s.temperature,
                 "Divides the logits by this number: lower is less surprising; 0 always takes the likeliest token.")
      ->check(real_number())
      ->capture_default_str();
  app.add_option("--top-k", s.top_k, "Chooses among this many of the likeliest tokens; 0: among all.")
      ->check(whole_number())
      ->capture_default_str();
  app.add_option("--top-p", s.top_p, "Chooses among the likeliest tokens that together reach this probability.")
      ->check(real_number())
      ->capture_default_str();
  app.add_option("--min-p", s.min_p, "Chooses among tokens at least this likely, relative to the likeliest one.")
      ->check(real_number())
      ->capture_default_str();
  app.add_option("--repetition-penalty", s.repetition_penalty,
                 "Makes tokens that are among the last 1,024 less likely by this factor; 1: leaves them.")
      ->check(real_number())
      ->capture_default_str();
  app.add_option("--stop", o->stops, "Ends before this text; it may be given several times.")
      ->check(
          [](const std::string& text) { return text.empty() ? std::string("expected a text; got an empty one") : ""; })
      ->allow_extra_args(false);
  app.add_flag("--past-end", o->past_end, "Goes on after the end of a document.");
  CLI::Option* seed = app.add_option("--seed", o->seed,
                                     "The random choices follow from this number: the same seed gives the same text.")
                          ->check(seed_number())
                          ->capture_default_str();
  app.add_option("--samples", o->samples, "Writes this many continuations of the same prompt.")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  app.add_option("--session", o->session, "Goes on with the text of this session file; a prompt is added to it.");
  app.add_option("--save-session", o->save_session, "Writes a file from which --session goes on exactly.");
  app.add_option("--device", o->device, "Computes on this device; auto takes a GPU where there is one.")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--json", o->json, "Prints one JSON object for each sample, when it is done.");
  app.add_flag("--logits", o->logits, "With --json: also prints the logits of the token after the prompt.");
  app.footer(
      "The prompt is read in long stretches, then each token costs the same whatever came before (with softmax\n"
      "attention: more and more). Filters apply in the order: repetition penalty, temperature, top-k, top-p, min-p.");
  app.callback([o, seed] {
    o->seed_given = seed->count() > 0;
    run_generate(*o);
  });
}

}  // namespace cosformer::cli
