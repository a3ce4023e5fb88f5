// A data set as one file: written once, read whole afterwards. It is not mapped: cut short by somebody
// else, a mapped file would end the process where it is looked at.
//
// All numbers little-endian; every part begins at a multiple of 8 bytes, with zero bytes in between:
//     offset  0    8 bytes  "COSFDATA"
//             8    u32      version of the format: 1
//            12    u32      element type: 1 u8, 2 u16, 3 i32, 4 f32
//            16    u64      bytes of the description
//            24    u64      n, the number of examples
//            32    u64      s, the number of sequences: n, or 2n when an example is a pair
//            40    u64      e, the number of elements in all sequences
//            48    u32      CRC-32 of everything from offset 64 on
//            52    u32      CRC-32 of the bytes 0 to 51
//            56    u64      zero
//            64             the description: a JSON object in UTF-8 with the fields of DatasetInfo
//                  i32[n]   labels, -1 for none
//                  u64[s]   the end of each sequence among the elements (a pair's first, then its second)
//                           e elements
// A reader refuses a file of another version, size or checksum, and content that contradicts itself.
#pragma once

#include <memory>
#include <string>

#include "data/dataset/array_dataset.h"

namespace cosformer::data {

// Atomic: on an error a former file at `path` stays as it was. Throws UserError for an impossible path, Failure when
// the system fails.
void write_dataset(const std::string& path, const ArrayDataset& dataset);

// Throws UserError when the file is missing or not an intact data set, Failure when the system fails. What becomes of
// the file afterwards does not matter.
std::shared_ptr<const ArrayDataset> open_dataset(const std::string& path);

}  // namespace cosformer::data
