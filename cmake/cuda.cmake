# The CUDA kernels need nvcc and neither torch nor a GPU. AUTO builds them where they will be used: with a libtorch that
# has CUDA. The preset `cuda-kernels` builds them and their tests by themselves, so that they cannot rot elsewhere.
set(cosformer_want_cuda ${COSFORMER_CUDA})
if(COSFORMER_CUDA STREQUAL "AUTO")
  set(hints)
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
    list(APPEND hints ${prefix}/lib ${prefix}/../../lib)  # the second is where Python packages keep it
  endforeach()
  find_library(COSFORMER_TORCH_CUDA_LIBRARY torch_cuda HINTS ${hints})
  set(cosformer_want_cuda OFF)
  if(COSFORMER_TORCH AND COSFORMER_TORCH_CUDA_LIBRARY)
    set(cosformer_want_cuda ON)
  endif()
endif()

if(cosformer_want_cuda)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "cosformer: the CUDA kernels are wanted, but no nvcc was found. "
                        "Put it on PATH, or configure with -DCOSFORMER_CUDA=OFF for the CPU alone.")
  endif()
  enable_language(CUDA)
  # CMake before 3.29 does not know how CUDA 13's compiler spells its standards.
  foreach(kind STANDARD EXTENSION)
    if(NOT DEFINED CMAKE_CUDA20_${kind}_COMPILE_OPTION)
      set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
    endif()
  endforeach()
  # Before libtorch is found: its CMake files add flags for every GPU generation that it knows.
  add_subdirectory(src/kernels/cuda)
  if(COSFORMER_TESTS)
    add_subdirectory(tests/kernels/cuda)
    add_subdirectory(bench/kernels)
  endif()
endif()
