// Images as sequences of gray pixels, row by row, from the formats in which they are published. Pixel values are kept
// as bytes; a value of 0 is a value like any other, not padding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset/row_report.h"

namespace cosformer::data {

// CIFAR-10's binary files: records of a label byte and 3,072 bytes (red, green, blue planes of 32 x 32), turned to gray
// as LRA does; or records of a label byte and 1,024 gray bytes. The files are read one after another.
struct CifarOptions {
  int channels = 0;  // 3 or 1; 0: told from the size of each file
  RowPolicy rows;
};
Loaded load_cifar10(const std::vector<std::string>& paths, const CifarOptions& options = {});

// A pair of IDX files, as of MNIST: u8 images (count x height x width) and u8 labels (count); gzip or not. Without a
// path of labels the images have none.
struct IdxOptions {
  std::string name = "images";
  std::vector<std::string> classes;  // empty: "0", "1", ... up to the greatest label
  RowPolicy rows;
};
Loaded load_idx(const std::string& images_path, const std::string& labels_path, const IdxOptions& options = {});

inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";  // of the Debian package
enum class MnistPart { kTrain, kTest };
// The four files of Fashion-MNIST as the distribution's package dataset-fashion-mnist installs them.
Loaded load_fashion_mnist(MnistPart part, const std::string& folder = kFashionMnistFolder);

// A folder for each class, named after it, with PNG files of one size; classes and files are taken in the order of
// their names. With `classes` given, other folders are an error and missing ones are not.
struct PngFolderOptions {
  std::string name = "images";
  std::vector<std::string> classes;
  RowPolicy rows;
};
Loaded load_png_folder(const std::string& folder, const PngFolderOptions& options = {});

// The published Pathfinder folder: metadata/*.npy (or *.txt) beside the images. Each line of a list is
// `<subfolder> <file> <number> <label> ...`; the published lists are text in spite of their name, real NumPy arrays of
// strings are read as well. Image files without a byte, of which there are some, are left out and counted.
Loaded load_pathfinder_folder(const std::string& folder, RowPolicy rows = {});

}  // namespace cosformer::data
