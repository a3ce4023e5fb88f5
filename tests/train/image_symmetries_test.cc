// Mirrored and turned images are those images, each possibility about as often as the others.
#include "train/inputs/image_symmetries.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace cosformer::train {
namespace {

// How often each of `possible` is among the rows of `found`; every row must be one of them.
std::vector<int> counted(const at::Tensor& found, const std::vector<at::Tensor>& possible) {
  std::vector<int> counts(possible.size(), 0);
  for (std::int64_t row = 0; row < found.size(0); ++row) {
    bool known = false;
    for (std::size_t i = 0; i < possible.size(); ++i) {
      if (!at::equal(found[row], possible[i].contiguous().view(-1))) continue;
      ++counts[i];
      known = true;
    }
    EXPECT_TRUE(known) << "row " << row;
  }
  return counts;
}

TEST(ImageSymmetries, HalfAreMirrored) {
  at::manual_seed(3);
  const at::Tensor image = at::arange(6, at::kInt).view({2, 3});
  const std::vector<int> counts =
      counted(mirrored(image.view({1, 6}).expand({400, 6}).contiguous(), 3, 2, at::ones({})), {image, image.flip(1)});
  for (const int count : counts) EXPECT_NEAR(count, 200, 50);
}

TEST(ImageSymmetries, QuarterTurnsAreEquallyLikely) {
  at::manual_seed(4);
  const at::Tensor image = at::arange(9, at::kFloat).view({3, 3});
  std::vector<at::Tensor> turns;
  for (int quarters = 0; quarters < 4; ++quarters) turns.push_back(at::rot90(image, quarters));
  const std::vector<int> counts =
      counted(rotated(image.view({1, 9}).expand({400, 9}).contiguous(), 3, at::ones({})), turns);
  for (const int count : counts) EXPECT_NEAR(count, 100, 40);
}

TEST(ImageSymmetries, MayBeOff) {
  at::manual_seed(5);
  const at::Tensor images = at::rand({50, 9});
  EXPECT_TRUE(at::equal(mirrored(images, 3, 3, at::zeros({})), images));
  EXPECT_TRUE(at::equal(rotated(images, 3, at::zeros({})), images));
}

}  // namespace
}  // namespace cosformer::train
