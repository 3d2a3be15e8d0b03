# `cmake --install`: the program, the libraries with their headers, and inlay-config.cmake, so that
# a user's project has find_package(inlay) and target_link_libraries(app inlay::inlay).
if(INLAY_FETCHED)
  message(STATUS "No install rules: ${INLAY_FETCHED} was fetched and is not installed with Inlay")
  return()
endif()
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/inlay)

# inlay::inlay: everything a user of the library needs.
add_library(inlay_inlay INTERFACE)
add_library(inlay::inlay ALIAS inlay_inlay)
target_link_libraries(inlay_inlay INTERFACE inlay::engine)
set_target_properties(inlay_inlay PROPERTIES EXPORT_NAME inlay)

get_property(libraries GLOBAL PROPERTY INLAY_LIBRARIES)
install(TARGETS ${libraries} inlay_inlay EXPORT inlay-targets)
install(EXPORT inlay-targets NAMESPACE inlay:: DESTINATION ${package})
foreach(folder configs ops cache io gemma_like)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/inlay
          FILES_MATCHING PATTERN "*.h")
endforeach()
if(TARGET inlay)
  install(TARGETS inlay)
endif()
# What inlay_add_model_binary() needs of the tree.
install(FILES ${PROJECT_SOURCE_DIR}/tools/cli.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/inlay/tools)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/InlayConfigs.cmake
  ${CMAKE_CURRENT_LIST_DIR}/InlayModelBinary.cmake DESTINATION ${package})
install(FILES ${PROJECT_SOURCE_DIR}/configs/config_list.txt DESTINATION ${package}/sources/configs)
install(FILES ${PROJECT_SOURCE_DIR}/gemma_like/config.cc.in
  ${PROJECT_SOURCE_DIR}/gemma_like/config_entries.cc.in DESTINATION ${package}/sources/gemma_like)
if(EXISTS ${PROJECT_SOURCE_DIR}/models)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/inlay
          FILES_MATCHING PATTERN "*.gguf")
endif()

# The Highway that scripts/setup built is of no use to others where it lies: it goes along.
string(FIND "${hwy_DIR}" "${PROJECT_SOURCE_DIR}/.deps/hwy/" at)
if(at EQUAL 0)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/.deps/hwy/ DESTINATION .
          PATTERN pkgconfig EXCLUDE PATTERN "stamp*" EXCLUDE)
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/inlay-config.cmake.in
  ${PROJECT_BINARY_DIR}/inlay-config.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/inlay-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/inlay-config.cmake ${PROJECT_BINARY_DIR}/inlay-config-version.cmake
  DESTINATION ${package})
