# libtorch: the distribution's by default, any newer one through CMAKE_PREFIX_PATH.
find_package(Torch REQUIRED)

# Torch's own flags, as a target, so that nobody sets global flags.
add_library(cosformer_torch INTERFACE)
target_link_libraries(cosformer_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(cosformer_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
separate_arguments(cosformer_torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(cosformer_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${cosformer_torch_flags}>)

# torch brings libstdc++ as a shared library. A second one, linked statically because a compiler or CUDA's folders offer
# libstdc++.a first, would share some of its symbols with the first: numbers in error messages vanish, or crash. So the
# shared one is asked for by its name.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT APPLE)
  set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/shared_standard_library)
  file(WRITE ${probe}.cc "#include <iostream>\nint main() { std::cout << 1; }\n")
  try_compile(cosformer_finds_shared_standard_library ${probe} SOURCES ${probe}.cc LINK_LIBRARIES -l:libstdc++.so.6)
  if(NOT cosformer_finds_shared_standard_library)
    message(FATAL_ERROR
      "cosformer: ${CMAKE_CXX_COMPILER} finds no libstdc++.so.6, which libtorch uses; a static one beside it would "
      "crash. Configure with a compiler that does, such as -DCMAKE_CXX_COMPILER=/usr/bin/g++.")
  endif()
  target_link_libraries(cosformer_torch INTERFACE -l:libstdc++.so.6)
endif()

# What nearly every file that knows torch reads, compiled once. Not <torch/torch.h>: reading that back takes five
# seconds a file, three more than this, and files that know no torch should not read it at all.
set(COSFORMER_TORCH_HEADERS <ATen/ATen.h> <torch/csrc/autograd/custom_function.h> <torch/nn/module.h>
  <torch/nn/modules/embedding.h> <torch/nn/modules/linear.h> <fmt/core.h>)
