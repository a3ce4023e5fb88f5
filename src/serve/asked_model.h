// Models that answer a text at once, as the server asks them. One request at a time.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cosformer::serve {

struct ClassifiedText {
  std::vector<float> probabilities;  // of each class
  bool truncated = false;            // the model reads less of it than there is
};

class TextClassifier {
 public:
  virtual ~TextClassifier() = default;
  virtual const std::vector<std::string>& classes() const = 0;
  virtual bool pairs() const = 0;  // each input is two texts; otherwise the second one is empty
  virtual std::vector<ClassifiedText> classify(const std::vector<std::pair<std::string, std::string>>& texts) = 0;
};

struct WrittenAnswer {
  std::string text;
  std::size_t source_tokens = 0, tokens = 0;
  bool truncated = false;
};

class TextAnswerer {
 public:
  virtual ~TextAnswerer() = default;
  virtual WrittenAnswer answer(const std::string& source) = 0;
};

struct GapCandidate {
  std::string token;
  double probability = 0;
};

class GapFiller {
 public:
  virtual ~GapFiller() = default;
  // Of each "[MASK]" in the text the likeliest tokens. Throws UserError when the text is too long or has no gap.
  virtual std::vector<std::vector<GapCandidate>> fill(const std::string& text, std::size_t top) = 0;
};

}  // namespace cosformer::serve
