# For targets whose own code takes no time when it runs, the program and the tests: cosformer_compile_quickly(target).
# A quarter of the compiler's time on the headers that they use goes into optimising; half of it with sanitizers.
function(cosformer_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  if(COSFORMER_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  endif()
endfunction()
