# cmake -D FOLDER=… -D OUTPUT=… -P embed_page.cmake: the files of a folder as one C++ source (serve/http/page_files.h).
file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT files)
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(extension ${file} LAST_EXT)
  if(extension STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(extension STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(extension STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  elseif(extension STREQUAL ".svg")
    set(type "image/svg+xml")
  elseif(extension STREQUAL ".png")
    set(type "image/png")
  else()
    continue()  # notes and the like are no part of the page
  endif()
  file(READ ${FOLDER}/${file} bytes HEX)
  file(SHA256 ${FOLDER}/${file} hash)
  string(SUBSTRING ${hash} 0 20 hash)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(path "/${file}")
  if(path STREQUAL "/index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr unsigned char kBytes${number}[] = {${bytes}0};\n")
  set(view "{reinterpret_cast<const char*>(kBytes${number}), ${size}}")
  string(APPEND table "    {\"${path}\", \"${type}\", \"\\\"${hash}\\\"\", ${view}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT}.new "// Made by cmake/embed_page.cmake.
#include \"serve/http/page_files.h\"

namespace cosformer::serve {
namespace {

${arrays}
}  // namespace

std::span<const PageFile> page_files() {
  static const PageFile files[] = {
${table}  };
  return files;
}

}  // namespace cosformer::serve
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
