# Headers, both libraries, pkg-config file and CMake package. Everything is found relative to
# itself, so an installed tree can be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cotangent)
file(RELATIVE_PATH PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" PC_TO_PREFIX ${PC_TO_PREFIX})
configure_file(cmake/cotangent.pc.in cotangent.pc @ONLY)
configure_package_config_file(cmake/cotangent-config.cmake.in cotangent-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(cotangent-config-version.cmake COMPATIBILITY SameMinorVersion)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS cotangent cotangent_static EXPORT cotangent-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT cotangent-targets NAMESPACE cotangent:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/cotangent-config.cmake ${PROJECT_BINARY_DIR}/cotangent-config-version.cmake
    DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/cotangent.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
