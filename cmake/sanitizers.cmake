# COSFORMER_SANITIZE=address,undefined (or thread) instruments everything in this build.
if(COSFORMER_SANITIZE)
  add_compile_options(-fsanitize=${COSFORMER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${COSFORMER_SANITIZE})
endif()
