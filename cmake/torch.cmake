# libtorch: the distribution's by default, any newer one through CMAKE_PREFIX_PATH.
find_package(Torch REQUIRED)

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
