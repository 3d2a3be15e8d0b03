# `cmake --install`: the program, the libraries with their headers, inlay-config.cmake, so that a
# user's project has find_package(inlay) and target_link_libraries(app inlay::inlay), and inlay.pc for
# those who build otherwise.
#
# Users of the libraries need the same Highway and abseil: where one of these was fetched, the libraries
# and headers are left out. Users of the program do not, and what else was fetched stays inside.
if(TARGET inlay)
  install(TARGETS inlay)
endif()
if(TARGET inlay_share)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(EXISTS ${PROJECT_SOURCE_DIR}/models)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/inlay
          FILES_MATCHING PATTERN "*.gguf" PATTERN train EXCLUDE)
endif()

set(not_installed ${INLAY_FETCHED})
list(FILTER not_installed INCLUDE REGEX "^(hwy|absl)$")
if(not_installed)
  list(JOIN not_installed " and " not_installed)
  set(words "The static libraries and headers are not installed: ${not_installed}, which their users \
need, was fetched")
  message(STATUS "${words}")
  install(CODE "message(STATUS \"${words}\")")
  return()
endif()
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/inlay)

get_property(libraries GLOBAL PROPERTY INLAY_LIBRARIES)
install(TARGETS ${libraries} inlay_inlay EXPORT inlay-targets)
install(EXPORT inlay-targets NAMESPACE inlay:: DESTINATION ${package})
if(TARGET inlay_shared)
  install(EXPORT inlay-c-targets NAMESPACE inlay:: DESTINATION ${package})
endif()
# What inlay_add_model_binary() needs of tools/ is one header, and of serve/ none.
set(rooms ${house})
list(REMOVE_ITEM rooms serve tools)
install(CODE "set(ROOMS \"${rooms}\")
set(SOURCE [==[${PROJECT_SOURCE_DIR}]==])
set(STAGED [==[${PROJECT_BINARY_DIR}/installed-headers]==])
set(INCLUDE [==[${CMAKE_INSTALL_INCLUDEDIR}]==])
include([==[${CMAKE_CURRENT_LIST_DIR}/InstallHeaders.cmake]==])")
# What inlay_add_model_binary() needs of the tree.
install(FILES ${PROJECT_SOURCE_DIR}/tools/cli.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/inlay/tools)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/InlayConfigs.cmake
  ${CMAKE_CURRENT_LIST_DIR}/InlayModelBinary.cmake
  ${CMAKE_CURRENT_LIST_DIR}/InlayStaticAbseil.cmake DESTINATION ${package})
install(FILES ${PROJECT_SOURCE_DIR}/tools/no_hub_hooks.cc
  ${PROJECT_SOURCE_DIR}/tools/no_server_hooks.cc DESTINATION ${package}/sources/tools)
install(FILES ${PROJECT_SOURCE_DIR}/configs/config_list.txt DESTINATION ${package}/sources/configs)
install(FILES ${PROJECT_SOURCE_DIR}/gemma_like/config.cc.in
  ${PROJECT_SOURCE_DIR}/gemma_like/config_entries.cc.in DESTINATION ${package}/sources/gemma_like)

# The Highway that scripts/setup built is of no use to others where it lies: it goes along.
string(FIND "${hwy_DIR}" "${PROJECT_SOURCE_DIR}/.deps/hwy/" at)
if(at EQUAL 0)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/.deps/hwy/ DESTINATION .
          PATTERN pkgconfig EXCLUDE PATTERN "stamp*" EXCLUDE)
endif()

set(INLAY_DEMO_MODEL ${CMAKE_INSTALL_DATADIR}/inlay/models/bard.gguf)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/inlay-config.cmake.in
  ${PROJECT_BINARY_DIR}/inlay-config.cmake
  INSTALL_DESTINATION ${package} PATH_VARS INLAY_DEMO_MODEL NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/inlay-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/inlay-config.cmake ${PROJECT_BINARY_DIR}/inlay-config-version.cmake
  DESTINATION ${package})

# inlay.pc: the libraries, each before those that it uses, and abseil's modules, which are named like
# its targets.
set(downloads)
if(INLAY_HUB)
  set(downloads " -linlay_download")
endif()
set(INLAY_PC_LIBRARIES "-linlay_engine${downloads} -linlay_cache -linlay_io -linlay_ops -linlay_base -lhwy")
if(INLAY_HIREDIS_LIBRARY)
  string(APPEND INLAY_PC_LIBRARIES " ${INLAY_HIREDIS_LIBRARY}")
endif()
set(modules)
foreach(library IN LISTS libraries)
  get_target_property(linked ${library} INTERFACE_LINK_LIBRARIES)
  list(APPEND modules ${linked})
endforeach()
list(FILTER modules INCLUDE REGEX "^absl::")
list(REMOVE_DUPLICATES modules)
list(TRANSFORM modules REPLACE "::" "_")
list(JOIN modules " " INLAY_PC_MODULES)
file(RELATIVE_PATH INLAY_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/inlay.pc.in ${PROJECT_BINARY_DIR}/inlay.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/inlay.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
