# libinlay.so: the C API as a shared library, for languages that load one (Python's ctypes).
#
# It holds Inlay and Highway, and needs abseil's shared libraries: archives of programs, as Debian has
# them, cannot go into a library. Where abseil is compiled with Inlay or is there as archives only, there
# is none.
if(INLAY_SANITIZE)
  return()
endif()
if("absl" IN_LIST INLAY_FETCHED)
  message(STATUS "No shared libraries of abseil, which was fetched: no libinlay.so")
  return()
endif()
get_target_property(abseil absl::status IMPORTED_LOCATION_NOCONFIG)
if(NOT abseil)
  get_target_property(abseil absl::status LOCATION)
endif()
cmake_path(GET abseil PARENT_PATH folder)
file(GLOB abseil ${folder}/libabsl_*.so)
if(NOT abseil)
  message(STATUS "No shared libraries of abseil here: no libinlay.so")
  return()
endif()
set(map ${PROJECT_SOURCE_DIR}/gemma_like/inlay_c.map)
add_library(inlay_shared SHARED ${map})
add_library(inlay::c ALIAS inlay_shared)
target_include_directories(inlay_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_dependencies(inlay_shared hwy::hwy)
set(archives)
set(redis)
if(INLAY_HIREDIS_LIBRARY)
  set(redis ${INLAY_HIREDIS_LIBRARY})
endif()
set(rooms engine cache io ops base)
if(INLAY_HUB)
  list(INSERT rooms 1 download)
endif()
foreach(room IN LISTS rooms)
  list(APPEND archives $<TARGET_FILE:inlay_${room}>)
  add_dependencies(inlay_shared inlay_${room})
endforeach()
target_link_libraries(inlay_shared PRIVATE ${archives} $<TARGET_FILE:hwy::hwy>
  -Wl,--as-needed ${abseil} ${redis} ${CMAKE_DL_LIBS}
  Threads::Threads)
# All functions of the C API come with one of each of its sources.
foreach(function version cache_length detokenize forward generate pull render_chat)
  target_link_options(inlay_shared PRIVATE -Wl,--undefined=inlay_${function})
endforeach()
# It looks for what it needs beside itself too, and so do the libraries that it needs, as DT_RPATH
# holds for these: the wheel of python/ has them there. (A BUILD_RPATH would end in a colon, which
# stands for the current folder.)
set_target_properties(inlay_shared PROPERTIES INSTALL_RPATH "\$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
target_link_options(inlay_shared PRIVATE
  -Wl,--version-script=${map} -Wl,--no-undefined -Wl,--disable-new-dtags)
set_target_properties(inlay_shared PROPERTIES LINKER_LANGUAGE CXX
  OUTPUT_NAME inlay EXPORT_NAME c VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${map} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
if(unless_needed)
  set_target_properties(inlay_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
# Its header and inlay-c.pc are there whether or not the static libraries are installed. They find what
# they name from where they lie.
if(INLAY_INSTALL)
  install(TARGETS inlay_shared EXPORT inlay-c-targets)
  install(FILES ${PROJECT_SOURCE_DIR}/gemma_like/inlay_c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/inlay)
  file(RELATIVE_PATH INLAY_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/inlay-c.pc.in ${PROJECT_BINARY_DIR}/inlay-c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/inlay-c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

# The reference of its interface, made of the header.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "No Python here: no reference of the C interface")
  return()
endif()
set(page ${PROJECT_BINARY_DIR}/c-api.html)
set(header ${PROJECT_SOURCE_DIR}/gemma_like/inlay_c.h)
add_custom_command(OUTPUT ${page}
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/c-api-page ${header} ${page}
  DEPENDS ${header} ${PROJECT_SOURCE_DIR}/scripts/c-api-page VERBATIM)
if(unless_needed)
  add_custom_target(inlay_c_api_page DEPENDS ${page})
else()
  add_custom_target(inlay_c_api_page ALL DEPENDS ${page})
endif()
if(INLAY_INSTALL)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
