#include "data/dataset/fingerprint.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/dataset/array_dataset.h"

namespace cosformer::data {
namespace {

struct Text {
  std::string text;
  int label;
};

DatasetPointer dataset_of(const std::vector<Text>& texts, const std::vector<std::string>& classes = {"a", "b"}) {
  DatasetBuilder builder(ElementType::kU8);
  for (const Text& t : texts) builder.add(t.text, t.label);
  DatasetInfo info;
  info.vocabulary = kByteVocabulary;
  info.classes = classes;
  return builder.finish(info);
}

TEST(Fingerprint, IsTheSameForTheSameDataAlone) {
  const std::vector<Text> texts{{"one", 0}, {"two", 1}, {"three", 1}};
  const std::string name = fingerprint(*dataset_of(texts));
  EXPECT_EQ(fingerprint(*dataset_of(texts)), name);
  std::set<std::string> names{name};
  names.insert(fingerprint(*dataset_of({{"one", 0}, {"two", 1}, {"threE", 1}})));
  names.insert(fingerprint(*dataset_of({{"one", 0}, {"two", 0}, {"three", 1}})));
  names.insert(fingerprint(*dataset_of({{"two", 1}, {"one", 0}, {"three", 1}})));
  names.insert(fingerprint(*dataset_of({{"onet", 0}, {"wo", 1}, {"three", 1}})));
  names.insert(fingerprint(*dataset_of({{"one", 0}, {"two", 1}})));
  names.insert(fingerprint(*dataset_of(texts, {"a", "c"})));
  EXPECT_EQ(names.size(), 7U);
}

// Of much data some examples are read, of all of them lengths and labels.
TEST(Fingerprint, OfMuchDataLooksAtSome) {
  std::vector<Text> texts(70, {std::string(1 << 20, 'x'), 0});
  const std::string name = fingerprint(*dataset_of(texts));
  texts[1].label = 1;
  const std::string other_label = fingerprint(*dataset_of(texts));
  texts[1] = texts[0];
  texts[0].text[7] = 'y';
  const std::string other_text = fingerprint(*dataset_of(texts));
  EXPECT_EQ(std::set<std::string>({name, other_label, other_text}).size(), 3U);
}

}  // namespace
}  // namespace cosformer::data
