# `find_package(cosformer)` gives cosformer::cosformer.
include(CMakePackageConfigHelpers)

install(TARGETS cosformer EXPORT cosformerTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET cosformer_sentencepiece)
  install(TARGETS cosformer_sentencepiece LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET cosformer_cli)
  install(TARGETS cosformer_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY bench/peers DESTINATION ${CMAKE_INSTALL_DATADIR}/cosformer FILES_MATCHING PATTERN "*.py")
install(FILES examples/python/cosformer.py examples/python/load_run.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cosformer/python)
install(DIRECTORY include/cosformer DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT cosformerTargets NAMESPACE cosformer:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cosformer)
configure_package_config_file(cmake/cosformerConfig.cmake.in ${PROJECT_BINARY_DIR}/cosformerConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cosformer)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cosformerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cosformerConfig.cmake ${PROJECT_BINARY_DIR}/cosformerConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/cosformer)
