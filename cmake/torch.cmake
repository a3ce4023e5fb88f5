# libtorch: the distribution's by default, any newer one through CMAKE_PREFIX_PATH.
find_package(Torch REQUIRED)

# torch brings libstdc++ as a shared library. A second one, linked statically into libcosformer.so, would share some of
# its symbols with the first, and the first number in an error message would crash.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/shared_standard_library)
  file(WRITE ${probe}.cc "#include <iostream>\nint main() { std::cout << 1; }\n")
  try_compile(cosformer_probe_links ${probe} SOURCES ${probe}.cc COPY_FILE ${probe}.out)
  if(cosformer_probe_links)
    file(STRINGS ${probe}.out shared REGEX "libstdc\\+\\+\\.so" LIMIT_COUNT 1)
    if(NOT shared)
      message(FATAL_ERROR
        "cosformer: ${CMAKE_CXX_COMPILER} links libstdc++ statically, while libtorch uses the shared one; both in one "
        "process would crash. Configure with a compiler that has libstdc++.so, such as "
        "-DCMAKE_CXX_COMPILER=/usr/bin/g++.")
    endif()
  endif()
endif()

# Torch's own flags, as a target, so that nobody sets global flags.
add_library(cosformer_torch INTERFACE)
target_link_libraries(cosformer_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(cosformer_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
separate_arguments(cosformer_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(cosformer_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${cosformer_torch_flags}>)

# What nearly every file that knows torch reads, compiled once. Not <torch/torch.h>: reading that back takes five
# seconds a file, three more than this, and files that know no torch should not read it at all.
set(COSFORMER_TORCH_HEADERS <ATen/ATen.h> <torch/csrc/autograd/custom_function.h> <torch/nn/module.h>
  <torch/nn/modules/embedding.h> <torch/nn/modules/linear.h>)
