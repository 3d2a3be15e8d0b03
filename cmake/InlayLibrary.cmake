# inlay_library(<folder> [TARGET name] [SOURCES a.cc ...] [DEPS target ...])
#
# Defines the library of one folder of the house: target inlay_<name> with the alias inlay::<name>,
# where name is the folder's unless TARGET says otherwise. Its headers are included from the
# repository's root, as "ops/team.h", and by other projects as "inlay/ops/team.h", in the tree and
# installed alike. Without sources the library is header-only.
function(inlay_library folder)
  cmake_parse_arguments(arg "" "TARGET" "SOURCES;DEPS" ${ARGN})
  if(NOT arg_TARGET)
    set(arg_TARGET ${folder})
  endif()
  set(target inlay_${arg_TARGET})
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(inlay::${arg_TARGET} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  # Templates are instantiated in the user's code too, and there the numerics contract must hold as
  # well.
  target_compile_options(${target} ${scope} -ffp-contract=off)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} ${scope} ${arg_DEPS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_TARGET})
  set_property(GLOBAL APPEND PROPERTY INLAY_LIBRARIES ${target})
endfunction()

# The headers as other projects include them: the public ones as "inlay/inlay.h" and "inlay/inlay_c.h",
# all in their folders.
include(${CMAKE_CURRENT_LIST_DIR}/Arrows.cmake)  # house
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/inlay)
foreach(room IN LISTS house)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${room} ${PROJECT_BINARY_DIR}/include/inlay/${room}
       SYMBOLIC)
endforeach()
foreach(header inlay.h inlay_c.h)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/gemma_like/${header}
       ${PROJECT_BINARY_DIR}/include/inlay/${header} SYMBOLIC)
endforeach()

# For a library that computes little: more than -O1 would make it slower to build, not faster to run.
# With clang's AddressSanitizer -O1 takes twice as long to build as -O0.
function(inlay_optimise_little library)
  if(INLAY_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${library} PRIVATE -O0)
  else()
    target_compile_options(${library} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  endif()
endfunction()
