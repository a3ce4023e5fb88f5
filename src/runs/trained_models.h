// The trained models of runs, ready to be asked.
#pragma once

#include <memory>
#include <string>

#include "models/classifier.h"
#include "models/language/language_model.h"
#include "models/text_to_text/encoder_decoder.h"

namespace cosformer::runs {

// The trained model of a run, by its kind: its best weights so far. Throws UserError when there are none yet, and for a
// run of another kind.
std::shared_ptr<models::Classifier> load_trained_classifier(const std::string& folder);
std::shared_ptr<models::LanguageModel> load_trained_language_model(const std::string& folder);
std::shared_ptr<models::LanguageModel> load_trained_recall_model(const std::string& folder);  // of the task recall
std::shared_ptr<models::EncoderDecoder> load_trained_encoder_decoder(const std::string& folder);

}  // namespace cosformer::runs
