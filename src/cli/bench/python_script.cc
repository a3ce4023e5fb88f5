#include "cli/bench/python_script.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <dlfcn.h>
#include <fmt/core.h>

#include "base/error.h"
#include "ops/device_info.h"

namespace cosformer::cli {

namespace fs = std::filesystem;

std::string shell_quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return safe + "'";
}

std::string library_path() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&ops::has_cuda_kernels), &info) == 0 || info.dli_fname == nullptr) {
    throw Failure("cannot find the path of libcosformer.so");
  }
  return fs::absolute(info.dli_fname).string();
}

fs::path find_script(const std::string& what, const std::string& name, const std::string& folder) {
  std::vector<fs::path> places;
  if (!folder.empty()) {
    places.emplace_back(folder);
  } else {
    const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
    places = {program / "../share/cosformer/peers", program / "../../bench/peers"};
  }
  std::string looked;
  for (const fs::path& place : places) {
    if (fs::exists(place / name)) return fs::canonical(place / name);
    looked += "\n  " + place.lexically_normal().string();
  }
  throw UserError(fmt::format("{}: no {} found in{}\nGive its folder with --scripts", what, name, looked));
}

namespace {

bool runs(const std::string& python, const std::string& code) {
  const std::string command = fmt::format("{} -c {} > /dev/null 2>&1", shell_quoted(python), shell_quoted(code));
  return std::system(command.c_str()) == 0;
}

}  // namespace

bool has_torch(const std::string& python) {
  return runs(python, "import torch");
}

bool has_our_torch(const std::string& python) {
  return runs(python, fmt::format("import torch; torch.ops.load_library(\"{}\")", library_path()));
}

std::string find_python_with_torch(const std::string& what, const std::string& python) {
  std::vector<std::string> candidates{"python3", "/usr/bin/python3"};
  if (!python.empty()) candidates = {python};
  for (const std::string& candidate : candidates) {
    if (has_our_torch(candidate)) return candidate;
  }
  throw UserError(what +
                  ": no Python found whose torch is the one this program was built with; install python3-torch or name "
                  "one with --python");
}

std::string measured_python(const std::string& python) {
  return "env "
         "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.hugetlb=1 " +
         shell_quoted(python);
}

bool run_json_lines(const std::string& command, const std::function<void(nlohmann::json line)>& handle) {
  std::fflush(stdout);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw Failure("cannot start: " + command);
  std::string text;
  std::array<char, 4096> block{};
  while (std::fgets(block.data(), block.size(), pipe.get()) != nullptr) {
    text += block.data();
    if (text.empty() || text.back() != '\n') continue;
    nlohmann::json line = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    text.clear();
    if (line.is_object()) handle(std::move(line));
  }
  return pclose(pipe.release()) == 0;
}

}  // namespace cosformer::cli
