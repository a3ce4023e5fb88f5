// make_language_run FOLDER ATTENTION MAX_LENGTH [gated]: a run of a byte model with random weights, for tests of the
// program; gated: with RMSNorm and a gated feed-forward part.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "byte_model.h"
#include "data/tokenizer_file.h"
#include "models/language_model_file.h"

int main(int argc, char** argv) {
  using namespace cosformer;
  if (argc < 4 || argc > 5) return 2;
  try {
    const std::string folder = argv[1];
    std::filesystem::create_directories(folder);
    models::LanguageModelConfig config = serve::byte_model_config(argv[2], std::atoll(argv[3]));
    if (argc == 5) {
      config.model.norm = "rms";
      config.model.activation = "gated";
    }
    const auto model = models::seeded_model(config);
    models::save_language_model(folder + "/best.safetensors", *model);
    data::save_tokenizer(folder + "/tokenizer", *data::byte_tokenizer());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
