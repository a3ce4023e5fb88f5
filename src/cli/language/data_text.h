// The parts of `cosformer data` that are about language: tokenizers and corpora.
#pragma once

#include <CLI/CLI.hpp>

namespace cosformer::cli {

void add_data_tokenizer(CLI::App& app);
void add_data_corpus(CLI::App& app);

}  // namespace cosformer::cli
