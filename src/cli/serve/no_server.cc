// `cosformer serve` in a program that was built without the server.
#include "base/error.h"
#include "cli/command.h"

namespace cosformer::cli {

void add_serve(CLI::App& app) {
  app.allow_extras();
  app.footer("This program was built without the server, for want of Boost or prometheus-cpp.");
  app.callback([] {
    throw UserError(
        "this program was built without the server; install Boost and prometheus-cpp (on Debian: apt-get install "
        "libboost-dev prometheus-cpp-dev) and build it again");
  });
}

}  // namespace cosformer::cli
