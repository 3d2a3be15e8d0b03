# inlay_test(NAME name SOURCES a.cc ... [DEPS target ...] [ARGS arg ...] [LABELS label ...]
#            [TIMEOUT seconds])
#
# One GoogleTest binary, one ctest entry. It links gtest_main and runs in the repository's root, so
# that a test opens its data as "tests/golden/x.gguf" under CMake and Bazel alike.
#
# Most of what a fresh clone compiles is tests, so that their compilation has to be fast:
#
# - Tests are optimised less than what they test. At -O0 they take three quarters of the time that -O1
#   takes. At -O1 are those that compute much themselves, kernels' references and caches: their rooms
#   set INLAY_TEST_LEVEL to INLAY_TEST_MOST_LEVEL, which is 0 with clang's sanitizers of memory, where
#   the difference is largest. No result can depend on it, as expressions are never contracted
#   (InlayFlags.cmake).
# - Headers that every test reads are compiled once a level: reading them took two fifths of a test's
#   compilation. They are GoogleTest's and abseil's alone, so that a test still includes what it uses
#   of this project.
# - Tests are linked by lld or gold where there is one, in a quarter or half of the time of ld, unless
#   they are for another machine.
# - Of tests libFuzzer need not know the branches.
set(INLAY_TEST_LEVEL 0)
set(INLAY_TEST_MOST_LEVEL 1)
set(INLAY_TEST_COMPILE_OPTIONS)
if(INLAY_FUZZ)
  set(INLAY_TEST_COMPILE_OPTIONS -fno-sanitize=fuzzer-no-link)
endif()
if(INLAY_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(INLAY_TEST_MOST_LEVEL 0)
endif()
foreach(level RANGE ${INLAY_TEST_MOST_LEVEL})
  set(headers inlay_test_headers_${level})
  add_executable(${headers} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/test_headers.cc)
  target_link_libraries(${headers} PRIVATE absl::status absl::statusor absl::strings absl::str_format
                        GTest::gmock)
  target_compile_options(${headers} PRIVATE -O${level} ${INLAY_TEST_COMPILE_OPTIONS})
  target_precompile_headers(${headers} PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <absl/status/status.h> <absl/status/statusor.h>
    <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/string_view.h>)
endforeach()

include(CheckLinkerFlag)
set(INLAY_TEST_LINK_OPTIONS)
foreach(linker IN ITEMS lld gold)
  if(NOT INLAY_TEST_LINK_OPTIONS AND NOT CMAKE_CROSSCOMPILING)
    check_linker_flag(CXX -fuse-ld=${linker} INLAY_HAS_${linker})
    if(INLAY_HAS_${linker})
      set(INLAY_TEST_LINK_OPTIONS -fuse-ld=${linker})
    endif()
  endif()
endforeach()

function(inlay_test)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT" "SOURCES;DEPS;ARGS;LABELS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "inlay_test(${arg_NAME}): unknown arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(INLAY_SANITIZE)  # costs about a factor of ten
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${arg_NAME} PRIVATE -O${INLAY_TEST_LEVEL} ${INLAY_TEST_COMPILE_OPTIONS})
  target_link_options(${arg_NAME} PRIVATE ${INLAY_TEST_LINK_OPTIONS})
  target_precompile_headers(${arg_NAME} REUSE_FROM inlay_test_headers_${INLAY_TEST_LEVEL})
  # g++ forgets that what it reads precompiled are headers of the system, and shows warnings about
  # abseil and its own library that are wrong.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${arg_NAME} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

# inlay_compile_fail_test(NAME name SOURCE a.cc EXPECT "regular expression" [DEPS target ...]
#                         [DEFINES "NAME=value" ...])
#
# Passes when the compiler refuses the source with a single error and its output matches the
# expression. The source holds its fault inside `#if INLAY_COMPILE_FAIL`; it must compile without,
# so that the refusal is the fault's and not that of a mistyped header. DEPS (default inlay::engine)
# give the include folders, DEFINES tell apart the faults that share a source.
function(inlay_compile_fail_test)
  cmake_parse_arguments(arg "" "NAME;SOURCE;EXPECT" "DEPS;DEFINES" ${ARGN})
  if(NOT arg_NAME OR NOT arg_SOURCE OR NOT arg_EXPECT OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "inlay_compile_fail_test needs NAME, SOURCE and EXPECT, and no more")
  endif()
  if(NOT arg_DEPS)
    set(arg_DEPS inlay::engine)
  endif()
  # -I, not -isystem: compilers ignore a repeated -I/usr/include, which some packages ask for.
  set(folders)
  foreach(target IN LISTS arg_DEPS)
    list(APPEND folders $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  set(flags_file ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.flags)
  set(defines)
  foreach(define IN LISTS arg_DEFINES)
    string(APPEND defines "\"-D${define}\"\n")
  endforeach()
  # Quoted, as a folder's name may hold spaces; outside of $<...>, as it may hold a comma.
  file(GENERATE OUTPUT ${flags_file} CONTENT
    "-std=c++20\n${defines}\"-I${PROJECT_SOURCE_DIR}\"\n\"-I$<JOIN:$<REMOVE_DUPLICATES:${folders}>,\"\n\"-I>\"\n")
  cmake_path(ABSOLUTE_PATH arg_SOURCE)
  add_test(NAME ${arg_NAME}
    COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_CXX_COMPILER} -DFLAGS=${flags_file}
            -DSOURCE=${arg_SOURCE} "-DEXPECT=${arg_EXPECT}"
            -P ${PROJECT_SOURCE_DIR}/cmake/CompileFail.cmake)
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT 120 LABELS compile_fail)
endfunction()
