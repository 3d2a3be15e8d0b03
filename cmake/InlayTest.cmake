# inlay_test(NAME name SOURCES a.cc ... [DEPS target ...] [ARGS arg ...] [LABELS label ...] [TIMEOUT seconds])
#
# One GoogleTest binary, one ctest entry. It links gtest_main and runs in the repository's root, so that a test opens
# its data as "tests/golden/x.gguf" under CMake and Bazel alike.
function(inlay_test)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT" "SOURCES;DEPS;ARGS;LABELS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "inlay_test(${arg_NAME}): unknown arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
