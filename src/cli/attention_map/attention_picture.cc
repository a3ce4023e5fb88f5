#include "cli/attention_map/attention_picture.h"

#include <algorithm>
#include <sstream>

#include <ATen/ATen.h>
#include <fmt/core.h>

#include "cli/attention_map/token_labels.h"
#include "cli/terminal/gnuplot.h"

namespace cosformer::cli {
namespace {

constexpr std::int64_t kMostCells = 400;  // a side: more than the picture has pixels
// The largest few weights would leave all others black.
constexpr double kScaleQuantile = 0.995;

struct Cells {
  std::string lines;
  double greatest = 0, least = 0;
  std::int64_t side = 0;  // tokens of a cell
};

Cells cells_of(const at::Tensor& weights) {
  Cells cells;
  cells.side = (weights.size(0) + kMostCells - 1) / kMostCells;
  at::Tensor w = weights.to(at::kDouble).cpu();
  if (cells.side > 1) {
    w = at::avg_pool2d(w.view({1, 1, w.size(0), w.size(1)}), {cells.side, cells.side}, {}, {0, 0}, /*ceil_mode=*/true,
                       /*count_include_pad=*/false)
            .squeeze();
  }
  w = w.contiguous();
  std::vector<double> values(w.data_ptr<double>(), w.data_ptr<double>() + w.numel());
  std::ostringstream text;
  for (std::size_t at = 0; at < values.size(); ++at) {
    text << values[at] << ((static_cast<std::int64_t>(at) + 1) % w.size(1) == 0 ? '\n' : ' ');
  }
  cells.lines = text.str();
  cells.least = *std::min_element(values.begin(), values.end());
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(kScaleQuantile * static_cast<double>(values.size()));
  const auto nth = std::min(place, values.end() - 1);
  std::nth_element(values.begin(), nth, values.end());
  cells.greatest = *nth;
  return cells;
}

constexpr int kLeastSide = 460, kMargin = 140, kLabelPixels = 11;

// Room for every label, where each token has one.
int side_of(const AttentionPicture& picture) {
  if (!all_have_room(picture.tokens)) return 2 * kLeastSide;
  return std::max(kLeastSide, kMargin + kLabelPixels * static_cast<int>(picture.tokens.size()));
}

std::string axes_of(const AttentionPicture& picture) {
  if (picture.tokens.empty()) return "set xtics norotate autofreq\nset ytics autofreq\n";
  const std::string tics = token_tics(picture.tokens);
  return fmt::format("set xtics {} font ',7' {}\nset ytics font ',7' {}\n",
                     all_have_room(picture.tokens) ? "norotate" : "rotate by 90 right", tics, tics);
}

}  // namespace

std::string draw_attention(const std::vector<AttentionPicture>& pictures, const std::string& path) {
  std::string data, plots;
  double greatest = 0, least = 0;
  int side_length = 0;
  for (std::size_t at = 0; at < pictures.size(); ++at) {
    const Cells cells = cells_of(pictures[at].weights);
    greatest = std::max(greatest, cells.greatest);
    least = std::min(least, cells.least);
    const std::string side = std::to_string(cells.side);
    std::string block = "w";
    block += std::to_string(at);
    data += gnuplot_data(block, cells.lines);
    side_length = std::max(side_length, side_of(pictures[at]));
    plots += fmt::format("{}set title {}\nplot ${} matrix using ($1*{}+1):($2*{}+1):3 with image notitle\n",
                         axes_of(pictures[at]), gnuplot_quoted(pictures[at].title), block, side, side);
  }
  if (greatest <= 0) greatest = 1;
  std::ostringstream scale;
  // Below zero blue, above from white to dark red; one scale for all.
  if (least < 0) {
    scale << "set cbrange [" << -greatest << ":" << greatest
          << "]\nset palette defined (-1 '#1f4e8c', 0 '#ffffff', 0.35 '#f4a582', 0.7 '#c44e52', 1 '#4a0d16')\n";
  } else {
    scale << "set cbrange [0:" << greatest
          << "]\nset palette defined (0 '#ffffff', 0.35 '#f4a582', 0.7 '#c44e52', 1 '#4a0d16')\n";
  }
  const auto count = static_cast<int>(pictures.size());
  const std::string body = fmt::format(
      "{}{}set multiplot layout 1,{}\nset size ratio 1\nset tics out nomirror\nset xlabel 'token'\nset ylabel "
      "'query'\nset yrange [*:*] reverse\nset xrange [*:*]\nset autoscale fix\nset colorbox\n{}unset multiplot\n",
      data, scale.str(), count, plots);
  draw_with_gnuplot(body, path, {(side_length + 60) * count, side_length});
  return path + ".png";
}

}  // namespace cosformer::cli
