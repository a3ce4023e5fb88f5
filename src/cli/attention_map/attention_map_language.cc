#include "cli/attention_map/attention_map_language.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "base/error.h"
#include "base/table.h"
#include "cli/attention_map/token_labels.h"
#include "data/tokenizers/stream_decoder.h"
#include "data/tokenizers/tokenizer.h"
#include "runs/run_folder.h"
#include "runs/run_tokenizer.h"
#include "runs/trained_models.h"
#include "train/inputs/language_data.h"

namespace cosformer::cli {
namespace {

std::string read_prompt(const PromptOptions& o) {
  if (!o.text.empty() && !o.file.empty()) throw UserError("give --prompt or --prompt-file, not both");
  if (!o.text.empty()) return o.text;
  if (o.file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  if (o.file.empty()) throw UserError("a language model reads a text: give --prompt TEXT or --prompt-file FILE");
  std::ifstream file(o.file, std::ios::binary);
  if (!file) throw UserError(fmt::format("--prompt-file: cannot read '{}'", o.file));
  return {std::istreambuf_iterator<char>(file), {}};
}

// What stands along the axes: <eod>, then the tokens as text. Of bytes the first of a character has all of it.
std::vector<std::string> labels_of(const std::vector<std::int32_t>& tokens, const std::string& text,
                                   const data::TokenizerPointer& tokenizer) {
  std::vector<std::string> labels;
  if (tokenizer->kind() == data::TokenizerKind::kBytes) {
    labels = byte_labels({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    labels.insert(labels.begin(), "<eod>");
    return labels;
  }
  for (const std::int32_t token : tokens) {
    data::StreamDecoder decoder(tokenizer);
    labels.push_back(token == tokenizer->end_of_document() ? "<eod>" : visible(decoder.push(token) + decoder.finish()));
  }
  return labels;
}

SeenModel look_at(const std::string& run, const std::string& text, long long layer) {
  if (!runs::is_language(runs::read_run(run))) {
    throw UserError(fmt::format("'{}' is no language model; look at models of one kind side by side", run));
  }
  const auto model = runs::load_trained_language_model(run);
  const data::TokenizerPointer tokenizer = runs::tokenizer_of_run(run, model->config().tokenizer);
  std::vector<std::int32_t> tokens{tokenizer->end_of_document()};
  tokenizer->encode(text, tokens);
  const auto count = static_cast<std::int64_t>(tokens.size());
  require_few_tokens(count);
  const std::int64_t longest = model->config().model.input.max_length;
  const std::string name = models::label_of(model->config().model);
  if (count > longest) {
    throw UserError(
        fmt::format("the text has {} tokens with the <eod> before it, and '{}' reads {}; give a shorter one",
                    with_commas(count), run, with_commas(longest)));
  }
  model->eval();
  const at::Tensor input = at::tensor(tokens, at::kInt).unsqueeze(0);
  SeenModel seen = look(*model, name, layer, [&] { model->hidden(input); });
  seen.tokens = labels_of(tokens, text, tokenizer);
  return seen;
}

}  // namespace

void map_language_models(const PromptOptions& prompt, const LookOptions& options,
                         const std::vector<std::string>& runs) {
  const std::string text = read_prompt(prompt);
  if (text.empty()) throw UserError("the text is empty; give one with --prompt or --prompt-file");
  std::vector<SeenModel> seen;
  for (const std::string& run : runs) seen.push_back(look_at(run, text, options.layer));
  write_looks(options, seen);
}

}  // namespace cosformer::cli
