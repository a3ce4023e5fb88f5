# The CUDA kernels' sources, for the libraries that are made of them: cosformer_cuda_sources for every device,
# cosformer_hopper_sources for sm_90a. Of the general sweep there is a generated one for each direction, padded head dim
# and kind of number.
set(cosformer_cuda_dir ${CMAKE_CURRENT_LIST_DIR})
set(cosformer_sweep_sources)
foreach(io IN ITEMS __nv_bfloat16 __half float)
  foreach(features IN ITEMS 32 64 128 256)
    foreach(direction IN ITEMS fwd bwd)
      set(COSFORMER_IO ${io})
      set(COSFORMER_FEATURES ${features})
      set(COSFORMER_ROLES "")
      if(direction STREQUAL fwd)
        set(instances kForward,kRun kForward,kSum kForward,kApply)
      else()
        set(instances kQueryGradient,kRun kQueryGradient,kApply kKeyGradient,kRun kKeyGradient,kApply
            kValueGradient,kRun kValueGradient,kSum kValueGradient,kApply)
      endif()
      foreach(instance IN LISTS instances)
        string(REPLACE "," ", " instance ${instance})
        string(APPEND COSFORMER_ROLES "COSFORMER_INSTANCE(${instance});\n")
      endforeach()
      string(REPLACE "__nv_bfloat16" "bf16" short ${io})
      string(REPLACE "__half" "fp16" short ${short})
      set(instance ${CMAKE_CURRENT_BINARY_DIR}/cuda_instances/sweep_${direction}_${features}_${short}.cu)
      configure_file(${cosformer_cuda_dir}/general/instance.cu.in ${instance} @ONLY)
      list(APPEND cosformer_sweep_sources ${instance})
    endforeach()
  endforeach()
endforeach()

set(cosformer_cuda_sources ${cosformer_sweep_sources})
foreach(source IN ITEMS attention.cc attention_bwd.cc attention_fwd.cc attention_run.cc convolution/short_convolution.cu
    decode/decode.cu embedding/embedding_gradient.cu embedding/embedding_rows.cu general/launch_table.cu
    hopper/launch.cc norm/row_norm.cu plan/states.cu)
  list(APPEND cosformer_cuda_sources ${cosformer_cuda_dir}/${source})
endforeach()
set(cosformer_hopper_sources)
foreach(source IN ITEMS tensor_maps.cc both_sides/both_sides_copied.cu both_sides/both_sides_masked.cu
    narrow/narrow_copied.cu narrow/narrow_masked.cu narrow/narrow_tma.cu wide/wide_copied.cu wide/wide_in_registers.cu
    wide/wide_masked.cu)
  list(APPEND cosformer_hopper_sources ${cosformer_cuda_dir}/hopper/${source})
endforeach()
