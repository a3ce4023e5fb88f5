// Images whose pixels are means of squares: what is trained on, and what a trained model is asked about.
#include "data/dataset/smaller_images.h"

#include <gtest/gtest.h>

#include "data/image_files.h"
#include "data/readers/images/image_sequence.h"
#include "data/readers/unlabelled/prediction_input.h"
#include "data/task_fixture.h"

namespace cosformer::data {
namespace {

using cosformer::testing::idx_bytes;

std::vector<int> pixels_of(const Dataset& dataset, std::size_t index) {
  const SequenceView view = dataset.get(index).first;
  const auto* bytes = static_cast<const std::uint8_t*>(view.data);
  return {bytes, bytes + view.size};
}

class SmallerImages : public cosformer::testing::TaskFixture {
 protected:
  // Ten images of 4 x 2: means of squares are 3 (2.5 rounded up) and 100 + the image's number.
  std::string images() const {
    std::string all;
    for (int at = 0; at < 10; ++at) {
      const char other = static_cast<char>(100 + at);
      all += std::string{'\1', '\2', other, other, '\3', '\4', other, other};
    }
    return write("x-images-idx3", idx_bytes({10, 2, 4}, all));
  }
  DataConfig shrunk(std::int64_t factor) const {
    images();
    write("x-labels-idx1", idx_bytes({10}, std::string{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
    DataConfig c = config("idx_images", "x-images-idx3");
    c.shrink = factor;
    return c;
  }
};

TEST_F(SmallerImages, APixelIsTheMeanOfASquare) {
  const TaskData data = open_task(shrunk(2));
  for (const DatasetPointer& part : {data.train, data.valid, data.test}) {
    EXPECT_EQ(part->info().width, 2);
    EXPECT_EQ(part->info().height, 1);
    EXPECT_EQ(part->info().max_length, 2);
    for (std::size_t at = 0; at < part->size(); ++at) {
      const std::vector<int> pixels = pixels_of(*part, at);
      ASSERT_EQ(pixels.size(), 2U);
      EXPECT_EQ(pixels[0], 3);
      EXPECT_EQ((pixels[1] - 100) % 2, part->label(at));
    }
  }
  EXPECT_EQ(data.max_length, 2);
}

TEST_F(SmallerImages, AModelIsAskedAboutImagesOfTheFilesSize) {
  const DatasetInfo info = describe_images("images", 2, 1, {"a", "b"});
  DataConfig c = shrunk(2);
  EXPECT_EQ(pixels_of(*read_prediction_input(images(), c, info).dataset, 4), (std::vector<int>{3, 104}));
  const std::string small = write("small", idx_bytes({1, 1, 2}, "ab"));
  EXPECT_HAS(cosformer::testing::message_of<UserError>([&] { read_prediction_input(small, c, info); }),
             "its images have 2 x 1 pixels; expected 4 x 2 as in training");
}

TEST_F(SmallerImages, WhatCannotBeShrunkIsRefused) {
  EXPECT_HAS(refusal(shrunk(4)), "data.shrink is 4, and the images of 'idx_images' have 4 x 2 pixels");
  write("train.tsv", "label\ttext\n0\ta\n1\tb\n0\tc\n1\td\n0\te\n1\tf\n");
  DataConfig text = config("text_files", "train.tsv");
  text.shrink = 2;
  EXPECT_HAS(refusal(text), "data.shrink is 2, but");
  EXPECT_HAS(refusal(text), "holds no images");
}

}  // namespace
}  // namespace cosformer::data
