#include "cli/terminal/gnuplot.h"

#include <csignal>
#include <cstdio>

#include <fmt/core.h>

#include "base/error.h"

namespace cosformer::cli {

std::string gnuplot_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

std::string gnuplot_data(const std::string& name, const std::string& lines) {
  return fmt::format("${} << EOD\n{}EOD\n", name, lines);
}

std::string gnuplot_step_axis(long long last) {
  const std::string format = last < 20'000 ? "%.0f" : "%.0s%c";
  return fmt::format("set xlabel 'step'\nset xrange [0:*]\nset xtics font ',9'\nset format x '{}'\n", format);
}

bool run_gnuplot(const std::string& script) {
  // Where gnuplot is missing its shell may be gone before all is written; that is no reason to be killed.
  void (*before)(int) = std::signal(SIGPIPE, SIG_IGN);
  std::FILE* gnuplot = ::popen("gnuplot 2> /dev/null", "w");
  bool done = false;
  if (gnuplot != nullptr) {
    std::fwrite(script.data(), 1, script.size(), gnuplot);
    done = ::pclose(gnuplot) == 0;
  }
  std::signal(SIGPIPE, before);
  return done;
}

void draw_with_gnuplot(const std::string& body, const std::string& path, const GnuplotSize& size) {
  const std::string pixels = std::to_string(size.width) + "," + std::to_string(size.height);
  std::string text = "set encoding utf8\n";
  for (const auto& [terminal, ending] : {std::pair{"svg noenhanced font 'sans,12' background 'white'", ".svg"},
                                         {"pngcairo noenhanced font 'sans,10' background 'white'", ".png"}}) {
    text += fmt::format("reset\nset terminal {} size {}\nset output {}\n{}\nunset output\n", terminal, pixels,
                        gnuplot_quoted(path + ending), body);
  }
  if (!run_gnuplot(text)) {
    throw Failure(fmt::format("gnuplot did not draw '{}': is it installed? (Debian package gnuplot-nox)", path));
  }
}

}  // namespace cosformer::cli
