# Parts for other programs: libpipesim.so with its headers, a CMake package and a pkg-config file
# (docs/how-to/build-on-pipesim.md).
option(PIPESIM_LIBRARY "Build and install libpipesim.so with its headers" ON)
if(NOT PIPESIM_LIBRARY)
  return()
endif()

# All objects of the house below the command line, the schedules among them, whether a program names
# them or not.
add_library(pipesim_shared SHARED)
foreach(part sim/core sim/mpi sim/pipeline sim/execution sim/planning schedules models sim/band sim/graph
             sim/engine sim/metrics sim/interop/torch sim/scenario sim/read sim/case sim/prepare
             sim/interop/megatron sim/interop/configurations sim/report sim/sweep sim/search sim/layouts
             sim/sensitivity sim/goodput sim/anchor sim/interop/json sim/interop/shell sim/interop/frameworks app/options app/shared library)
  string(REPLACE "/" "_" part pipesim_${part})
  target_sources(pipesim_shared PRIVATE $<TARGET_OBJECTS:${part}>)
endforeach()
target_link_libraries(pipesim_shared PRIVATE fmt::fmt yaml-cpp tomlplusplus::tomlplusplus SQLite::SQLite3 Threads::Threads
                                              ${CMAKE_DL_LIBS})
# Others see what the headers declare, and nothing else.
set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
target_link_options(pipesim_shared PRIVATE -Wl,--no-undefined -Wl,--version-script=${exports})
set_target_properties(pipesim_shared PROPERTIES LINK_DEPENDS ${exports})
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(pipesim_shared PROPERTIES
  OUTPUT_NAME pipesim VERSION ${PROJECT_VERSION} SOVERSION ${soversion} LINKER_LANGUAGE CXX)
install(TARGETS pipesim_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(DIRECTORY include/pipesim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/pipesim)
set(made ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(cmake/pipesimConfig.cmake.in ${made}/pipesimConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${made}/pipesimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${made}/pipesimConfig.cmake ${made}/pipesimConfigVersion.cmake DESTINATION ${package})
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/pipesim.pc.in ${made}/pipesim.pc @ONLY)
install(FILES ${made}/pipesim.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(PIPESIM_TESTS)
  add_test(NAME Package.InstallsMovesAndBuildsOthers
           COMMAND ${PROJECT_SOURCE_DIR}/tests/package/test_package ${PROJECT_BINARY_DIR})
  add_test(NAME Package.DebianAndTarball
           COMMAND ${PROJECT_SOURCE_DIR}/tests/package/test_packages ${PROJECT_BINARY_DIR})
  add_test(NAME Package.ListsNameEveryLibrary COMMAND ${PROJECT_SOURCE_DIR}/tests/package/check_lists)
  set_tests_properties(Package.InstallsMovesAndBuildsOthers Package.DebianAndTarball Package.ListsNameEveryLibrary
                       PROPERTIES LABELS package)
endif()
