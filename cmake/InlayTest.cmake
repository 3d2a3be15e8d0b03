# inlay_tests(PROGRAM name PREFIX prefix TESTS [folder/]name ... [DEPS target ...])
#
# A GoogleTest program of many sources, [folder/]NAME_test.cc, and a ctest entry PREFIX_NAME_test for
# each, which runs the tests that this source defines. The target of that name builds the program.
#
# inlay_test(NAME name SOURCES a.cc ... [DEPS target ...] [ARGS arg ...])
#
# A program for one entry: of tests that replace functions of the C or C++ library, or that compile their
# source once for each instruction set.
#
# All run in the repository's root, so that a test opens its data as "tests/golden/x.gguf" under CMake
# and Bazel alike. tests/threads.cmake says which have the label "threads".
#
# Most of what a fresh clone compiles is tests, so that their compilation has to be fast:
#
# - Where CMAKE_UNITY_BUILD is set, as CI's presets do, eight sources of a program are compiled as one:
#   that takes six tenths of the time. So the names in a program's sources must differ, in unnamed namespaces
#   too.
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
include(${PROJECT_SOURCE_DIR}/tests/threads.cmake)
# Seconds after which an entry hangs: the longest take a minute on a quiet machine, and a busy one may be 20
# times slower for a while. What a test waits for has a limit of its own (tests/wait_until.h).
set(INLAY_TEST_TIMEOUT 1800)
if(INLAY_SANITIZE)  # costs about a factor of ten
  set(INLAY_TEST_TIMEOUT 7200)
endif()
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

# Runs one source's tests of a program that has those of many.
add_library(inlay_test_main STATIC ${PROJECT_SOURCE_DIR}/tests/test_main.cc)
target_link_libraries(inlay_test_main PUBLIC GTest::gmock PRIVATE absl::strings)

# The program `name` of a test or of many, without its main().
function(inlay_test_program name sources deps)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${deps})
  target_compile_options(${name} PRIVATE -O${INLAY_TEST_LEVEL} ${INLAY_TEST_COMPILE_OPTIONS})
  target_link_options(${name} PRIVATE ${INLAY_TEST_LINK_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM inlay_test_headers_${INLAY_TEST_LEVEL})
  # g++ forgets that what it reads precompiled are headers of the system, and shows warnings about
  # abseil and its own library that are wrong.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# The ctest entry `name` of the command in ARGN, which runs the tests in `source`.
function(inlay_test_entry name source)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${INLAY_TEST_TIMEOUT})
  if(name IN_LIST INLAY_THREADS_TESTS)
    set_tests_properties(${name} PROPERTIES LABELS threads)
  endif()
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${source}")  # and no object of another target
    file(RELATIVE_PATH source ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    set_property(GLOBAL APPEND_STRING PROPERTY INLAY_TEST_SOURCES "${name} ${source}\n")
  endif()
endfunction()

function(inlay_test)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;DEPS;ARGS" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "inlay_test(${arg_NAME}): unknown arguments '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  inlay_test_program(${arg_NAME} "${arg_SOURCES}" "${arg_DEPS};GTest::gmock;GTest::gtest_main")
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD OFF)
  list(GET arg_SOURCES 0 source)
  inlay_test_entry(${arg_NAME} ${source} ${arg_NAME} ${arg_ARGS})
endfunction()

function(inlay_tests)
  cmake_parse_arguments(arg "" "PROGRAM;PREFIX" "TESTS;DEPS" ${ARGN})
  if(NOT arg_PROGRAM OR NOT arg_PREFIX OR NOT arg_TESTS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "inlay_tests(${arg_PROGRAM}) needs PROGRAM, PREFIX and TESTS, and knows no '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  list(TRANSFORM arg_TESTS APPEND _test.cc OUTPUT_VARIABLE sources)
  inlay_test_program(${arg_PROGRAM} "${sources}" "${arg_DEPS};inlay_test_main")
  set_target_properties(${arg_PROGRAM} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    set(name ${arg_PREFIX}_${name})
    inlay_test_entry(${name} ${source} ${arg_PROGRAM} --source=${folder}/${source})
    add_custom_target(${name} DEPENDS ${arg_PROGRAM})
  endforeach()
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
  set_tests_properties(${arg_NAME} PROPERTIES TIMEOUT ${INLAY_TEST_TIMEOUT} LABELS compile_fail)
endfunction()
