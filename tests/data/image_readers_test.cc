// Images from CIFAR-10, IDX and PNG files and the published Pathfinder folder; every kind of broken file.
#include "data/readers/images/image_readers.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"
#include "base/file_fixture.h"
#include "data/dataset_content.h"
#include "data/image_files.h"
#include "data/readers/images/png_image.h"

namespace cosformer::data {
namespace {

using cosformer::testing::idx_bytes;
using cosformer::testing::message_of;
using cosformer::testing::numpy_strings;
using cosformer::testing::png_bytes;
using cosformer::testing::TemporaryDirectory;
using cosformer::testing::text_of;
using cosformer::testing::write_bytes;
using ::testing::IsSubstring;

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(IsSubstring, part, text)

class ImageReaders : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = directory_.file(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_bytes(path, content);
    return path;
  }
  const TemporaryDirectory directory_;
};

template <typename Action>
std::string refusal(Action&& action) {
  return message_of<UserError>(action);
}

TEST_F(ImageReaders, CifarColourBecomesGray) {
  std::string record(3073, '\0');
  record[0] = 3;
  record[1] = '\xff';         // red of the first pixel
  record[1 + 1024 + 1] = 10;  // green of the second
  record[1 + 2048 + 2] = 20;  // blue of the third
  for (const int plane : {0, 1, 2}) record[static_cast<std::size_t>(1 + plane * 1024 + 3)] = '\xff';
  const Loaded loaded = load_cifar10({file("batch.bin", record + record), file("more.bin", record)});
  ASSERT_EQ(loaded.dataset->size(), 3U);
  const std::string pixels = text_of(loaded.dataset->get(2).first);
  ASSERT_EQ(pixels.size(), 1024U);
  // trunc(255.5 * weight * value / 255)
  EXPECT_EQ(static_cast<unsigned char>(pixels[0]), 76);
  EXPECT_EQ(static_cast<unsigned char>(pixels[1]), 5);
  EXPECT_EQ(static_cast<unsigned char>(pixels[2]), 2);
  EXPECT_EQ(static_cast<unsigned char>(pixels[3]), 255);
  EXPECT_EQ(pixels[4], 0);
  EXPECT_EQ(loaded.dataset->label(0), 3);
  EXPECT_EQ(loaded.dataset->info().classes.at(3), "cat");
  EXPECT_EQ(loaded.dataset->info().width, 32);
}

TEST_F(ImageReaders, CifarGrayAndBroken) {
  std::string record(1025, 'p');
  record[0] = 9;
  EXPECT_EQ(text_of(load_cifar10({file("gray.bin", record)}).dataset->get(0).first), std::string(1024, 'p'));
  EXPECT_HAS(refusal([&] { load_cifar10({file("cut.bin", record + "x")}); }),
             "its 1026 bytes are not a whole number of CIFAR-10 records; expected records of 3073 (colour) or 1025");
  EXPECT_HAS(refusal([&] { load_cifar10({file("empty.bin", "")}); }), "its 0 bytes");
  EXPECT_HAS(refusal([&] { load_cifar10({directory_.file("gray.bin")}, {.channels = 3, .rows = {}}); }),
             "expected records of 3073 bytes");
  EXPECT_HAS(refusal([&] { load_cifar10({directory_.file("gray.bin")}, {.channels = 2, .rows = {}}); }), "got 2");
  const std::string both(std::size_t{1025} * 3073, '\0');
  EXPECT_HAS(refusal([&] { load_cifar10({file("both.bin", both)}); }), "it could be colour or gray");
  EXPECT_EQ(load_cifar10({directory_.file("both.bin")}, {.channels = 1, .rows = {}}).dataset->size(), 3073U);

  std::string wrong = record;
  wrong[0] = 10;
  const std::string path = file("label.bin", record + wrong);
  EXPECT_HAS(refusal([&] { load_cifar10({path}); }), "'" + path + "' record 2: the label is 10; expected 0 to 9");
  const Loaded skipped = load_cifar10({path}, {.channels = 0, .rows = {.skip_bad_rows = true}});
  EXPECT_EQ(skipped.dataset->size(), 1U);
  EXPECT_EQ(skipped.report.rows_skipped, 1U);
}

TEST_F(ImageReaders, Idx) {
  const std::string images = file("images", idx_bytes({2, 2, 3}, "abcdefghijkl"));
  const std::string labels = directory_.file("labels.gz");
  const std::string label_bytes = idx_bytes({2}, std::string{4, 0});
  gzFile out = ::gzopen(labels.c_str(), "wb");
  ::gzwrite(out, label_bytes.data(), static_cast<unsigned>(label_bytes.size()));
  ::gzclose(out);
  const Loaded loaded = load_idx(images, labels);
  EXPECT_EQ(text_of(loaded.dataset->get(1).first), "ghijkl");
  EXPECT_EQ(loaded.dataset->label(0), 4);
  EXPECT_EQ(loaded.dataset->info().classes.size(), 5U);
  EXPECT_EQ(loaded.dataset->info().width, 3);
  EXPECT_EQ(loaded.dataset->info().height, 2);
  IdxOptions two;
  two.classes = {"a", "b"};
  EXPECT_HAS(refusal([&] { load_idx(images, labels, two); }), "record 1: the label is 4; expected 0 to 1");
}

TEST_F(ImageReaders, BrokenIdx) {
  const std::string labels = file("labels", idx_bytes({1}, std::string(1, '\0')));
  const auto reason = [&](const std::string& bytes) {
    return refusal([&] { load_idx(file("images", bytes), labels); });
  };
  EXPECT_HAS(reason("abc"), "it has 3 bytes; expected an IDX file of bytes with 3 dimensions");
  EXPECT_HAS(reason(std::string(40, 'x')), "it does not begin with 0, 0, 8");
  EXPECT_HAS(reason(idx_bytes({1, 2, 2, 1}, "abcd")), "it has 4 dimensions");
  EXPECT_HAS(reason(idx_bytes({1, 2, 2}, "abc")), "its dimensions do not agree with the 3 bytes");
  EXPECT_HAS(reason(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, "abc")), "its dimensions do not agree");
  EXPECT_HAS(reason(idx_bytes({2, 1, 1}, "ab")), "it has 1 labels; expected 2, one for each image");
  EXPECT_HAS(reason(idx_bytes({1, 0, 7}, "")), "its images have 7 x 0 pixels");
  EXPECT_HAS(reason(idx_bytes({0, 2, 2}, "")), "it has 1 labels; expected 0");
}

TEST_F(ImageReaders, FashionMnistLayout) {
  file("t10k-images-idx3-ubyte.gz", idx_bytes({1, 1, 2}, "ab"));  // gzip or not is told by the content
  file("t10k-labels-idx1-ubyte.gz", idx_bytes({1}, std::string(1, 9)));
  const Loaded loaded = load_fashion_mnist(MnistPart::kTest, directory_.path());
  EXPECT_EQ(loaded.dataset->info().classes.at(9), "Ankle boot");
  EXPECT_HAS(refusal([&] { load_fashion_mnist(MnistPart::kTrain, directory_.path()); }), "no such file");
}

TEST_F(ImageReaders, PngRoundTripAndColour) {
  const GrayImage image{3, 2, {0, 1, 127, 128, 254, 255}};
  write_png(directory_.file("a.png"), image);
  const GrayImage read = decode_png(testing::read_bytes(directory_.file("a.png")));
  EXPECT_EQ(read.width, 3);
  EXPECT_EQ(read.height, 2);
  EXPECT_EQ(read.pixels, image.pixels);
  const GrayImage colour = decode_png(png_bytes(2, 1, PNG_FORMAT_RGB, {255, 0, 0, 10, 20, 30}));
  EXPECT_EQ(colour.pixels, (std::vector<std::uint8_t>{gray_of(255, 0, 0), gray_of(10, 20, 30)}));
}

TEST_F(ImageReaders, PngFolder) {
  const auto gray = [](std::uint8_t value) { return png_bytes(2, 2, PNG_FORMAT_GRAY, {value, 1, 2, 3}); };
  file("images/cat/10.png", gray(10));
  file("images/cat/9.png", gray(9));
  file("images/ant/1.png", gray(1));
  file("images/ant/readme.txt", "not an image");
  const std::string folder = directory_.file("images");
  const Loaded loaded = load_png_folder(folder);
  ASSERT_EQ(loaded.dataset->size(), 3U);
  EXPECT_EQ(loaded.dataset->info().classes, (std::vector<std::string>{"ant", "cat"}));
  EXPECT_EQ(text_of(loaded.dataset->get(1).first)[0], 9);
  EXPECT_EQ(loaded.dataset->label(1), 1);

  const std::string wide = file("images/cat/wide.png", png_bytes(4, 1, PNG_FORMAT_GRAY, {1, 2, 3, 4}));
  EXPECT_HAS(refusal([&] { load_png_folder(folder); }),
             "'" + wide + "': it has 4 x 1 pixels; expected 2 x 2 as the first image");
  const std::string broken = file("images/ant/2.png", "no image");
  EXPECT_HAS(refusal([&] { load_png_folder(folder); }), "'" + broken + "': it is not a readable PNG");
  file("images/cow/1.png", gray(3));
  PngFolderOptions options;
  options.classes = {"dog", "cat", "ant"};
  options.rows.skip_bad_rows = true;
  const Loaded part = load_png_folder(folder, options);
  EXPECT_EQ(part.dataset->size(), 3U);
  EXPECT_EQ(part.report.rows_skipped, 3U);
  EXPECT_EQ(part.dataset->label(0), 2) << "labels are those of the given classes";
  EXPECT_HAS(refusal([&] { load_png_folder(directory_.file("none")); }), "there is no such folder");
  std::filesystem::create_directory(directory_.file("nothing"));
  EXPECT_HAS(refusal([&] { load_png_folder(directory_.file("nothing")); }), "no usable row");
}

TEST_F(ImageReaders, PathfinderFolder) {
  const auto image = [](std::uint8_t value) { return png_bytes(2, 2, PNG_FORMAT_GRAY, {value, 0, 0, 0}); };
  for (const int i : {0, 1, 2})
    file("imgs/0/sample_" + std::to_string(i) + ".png", image(static_cast<std::uint8_t>(i)));
  file("imgs/0/sample_3.png", "");
  file("imgs/1/sample_0.png", image(9));
  file("metadata/0.npy",
       "imgs/0 sample_0.png 0 1 1.0 14 4 2 0.5 1 1\nimgs/0 sample_1.png 1 0 1.0\nimgs/0 sample_3.png 3 0 1.0\n");
  file("metadata/1.npy", numpy_strings({{"imgs/1", "sample_0.png", "0", "1"}}));
  file("metadata/2.txt", "imgs/0 sample_2.png 2 1\n");
  const Loaded loaded = load_pathfinder_folder(directory_.path());
  ASSERT_EQ(loaded.dataset->size(), 4U);
  EXPECT_EQ(loaded.report.empty_images, 1U);
  EXPECT_EQ(loaded.report.rows_skipped, 0U);
  std::vector<int> seen;
  for (std::size_t i = 0; i < 4; ++i) {
    seen.push_back(text_of(loaded.dataset->get(i).first)[0]);
    seen.push_back(loaded.dataset->label(i));
  }
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 1, 0, 9, 1, 2, 1}));
}

TEST_F(ImageReaders, BrokenPathfinderFolder) {
  const auto reason = [&](const std::string& list) {
    file("metadata/0.npy", list);
    return refusal([&] { load_pathfinder_folder(directory_.path()); });
  };
  EXPECT_HAS(refusal([&] { load_pathfinder_folder(directory_.path()); }), "metadata': there is no such folder");
  std::filesystem::create_directory(directory_.file("metadata"));
  EXPECT_HAS(refusal([&] { load_pathfinder_folder(directory_.path()); }), "it holds no list of images");
  EXPECT_HAS(reason("imgs/0 a.png 0\n"), "line 1: it has 3 fields; expected at least 4");
  EXPECT_HAS(reason("imgs/0 a.png 0 2\n"), "the label is '2'; expected 0 or 1");
  EXPECT_HAS(reason("imgs/../.. a.png 0 1\n"), "expected one inside the folder");
  EXPECT_HAS(reason("/etc a.png 0 1\n"), "expected one inside the folder");
  EXPECT_HAS(reason("imgs/0 a.png 0 1\n"), "imgs/0/a.png': cannot read");
  std::string array = numpy_strings({{"imgs/0", "a.png", "0", "1"}});
  EXPECT_HAS(reason(array.substr(0, 11)), "it was cut short");
  EXPECT_HAS(reason(array.substr(0, array.size() - 4)), "its shape does not agree");
  EXPECT_HAS(reason(array.replace(array.find("<U12"), 4, "<f8 ")), "its header is not that of such an array");
}

}  // namespace
}  // namespace cosformer::data
