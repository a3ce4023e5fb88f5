#include "cli/gnuplot.h"

#include "base/error.h"
#include "cli/gnuplot_pipe.h"

namespace cosformer::cli {

std::string gnuplot_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

std::string gnuplot_data(const std::string& name, const std::string& lines) {
  return "$" + name + " << EOD\n" + lines + "EOD\n";
}

void draw_with_gnuplot(const std::string& body, const std::string& path, const GnuplotSize& size) {
  const std::string pixels = std::to_string(size.width) + "," + std::to_string(size.height);
  std::string text = "set encoding utf8\n";
  for (const auto& [terminal, ending] : {std::pair{"svg noenhanced font 'sans,12' background 'white'", ".svg"},
                                         {"pngcairo noenhanced font 'sans,10' background 'white'", ".png"}}) {
    text += std::string("reset\nset terminal ") + terminal + " size " + pixels + "\nset output " +
            gnuplot_quoted(path + ending) + "\n" + body + "\nunset output\n";
  }
  if (!feed_gnuplot(text)) {
    throw Failure("gnuplot did not draw '" + path + "': is it installed? (Debian package gnuplot-nox)");
  }
}

}  // namespace cosformer::cli
