// make_language_run FOLDER ATTENTION MAX_LENGTH [KEY=VALUE…]: a run of a byte model with random weights and these
// settings, for tests of the program.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include <ATen/ATen.h>

#include "base/settings.h"
#include "byte_model.h"
#include "data/tokenizers/tokenizer_file.h"
#include "models/language/language_model_file.h"

int main(int argc, char** argv) {
  using namespace cosformer;
  if (argc < 4) return 2;
  try {
    const std::string folder = argv[1];
    std::filesystem::create_directories(folder);
    models::LanguageModelConfig config = serve::byte_model_config(argv[2], std::atoll(argv[3]));
    Settings settings;
    models::add_settings(settings, config, true);
    for (int at = 4; at < argc; ++at) settings.assign(argv[at]);
    const auto model = models::seeded_model(config);
    const at::NoGradGuard no_grad;  // nothing stays one or zero, which would not be missed where it is not read
    for (const at::Tensor& parameter : model->parameters()) parameter.add_(at::randn_like(parameter), 0.05);
    models::save_language_model(folder + "/best.safetensors", *model);
    data::save_tokenizer(folder + "/tokenizer", *data::byte_tokenizer());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
