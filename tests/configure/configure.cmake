# cmake -DSOURCE= -DSCRATCH= -DCOMPILER= -P configure.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${SCRATCH})

# Configures <source>; `status` and `output` are what comes of it.
function(try_configure source build)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${SCRATCH}/${build} -G Ninja
      -DCMAKE_CXX_COMPILER=${COMPILER} -DINLAY_BUILD_BENCH=OFF -DINLAY_HUB=OFF -DINLAY_MPI=OFF ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message(STATUS "${output}")
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The same, which must succeed.
function(configure source build)
  try_configure(${source} ${build} ${ARGN})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${build} cannot be configured")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# It must fail with these words, wherever CMake breaks the lines.
function(refuse words)
  try_configure(${SOURCE} refused -DINLAY_SERVER=OFF ${ARGN})
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(status EQUAL 0 OR NOT output MATCHES "${words}")
    message(FATAL_ERROR "${ARGN} is not refused with '${words}'")
  endif()
endfunction()

# A file of a build folder must have these words.
function(expect_words file words)
  file(STRINGS ${SCRATCH}/${file} lines REGEX "${words}" LIMIT_COUNT 1)
  if(NOT lines)
    message(FATAL_ERROR "${file} has no '${words}'")
  endif()
endfunction()

# A project that has compiled all that Inlay needs, and says no build type.
file(GLOB_RECURSE lists ${SOURCE}/*/CMakeLists.txt)
list(FILTER lists EXCLUDE REGEX "/build/")
set(targets)
foreach(list IN LISTS lists)
  file(STRINGS ${list} lines REGEX "absl::")
  string(REGEX MATCHALL "absl::[a-z_0-9]+" found "${lines}")
  list(APPEND targets ${found})
endforeach()
list(REMOVE_DUPLICATES targets)
file(WRITE ${SCRATCH}/above/main.cc "int main() {}\n")
file(WRITE ${SCRATCH}/above/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(above LANGUAGES CXX)
add_library(hwy INTERFACE)
foreach(target ${targets} CLI11::CLI11 nlohmann_json::nlohmann_json)
  string(REPLACE :: _ name \${target})
  add_library(\${name} INTERFACE)
  add_library(\${target} ALIAS \${name})
endforeach()
add_subdirectory(${SOURCE} inlay)
add_executable(app main.cc)
target_link_libraries(app PRIVATE inlay::inlay)
file(SIZE \"\${inlay_DEMO_MODEL}\" size)
inlay_add_model_binary(NAME shakespeare CONFIG bard WEIGHTS \${inlay_DEMO_MODEL})
")
configure(${SCRATCH}/above above-build)
if(NOT output MATCHES "CMAKE_BUILD_TYPE is empty")
  message(FATAL_ERROR "it is not told that nothing is optimised")
endif()
expect_words(above-build/CMakeCache.txt "^INLAY_SERVER:BOOL=OFF$")  # without Boost

# A project with libraries of its own, which link the abseil that it has found.
file(WRITE ${SCRATCH}/shared/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(above LANGUAGES CXX)
find_package(absl REQUIRED)
get_target_property(before absl::status LOCATION)
add_subdirectory(${SOURCE} inlay)
inlay_add_model_binary(NAME shakespeare CONFIG bard)
get_target_property(after absl::status LOCATION)
if(NOT before STREQUAL after)
  message(FATAL_ERROR \"abseil was \${before} and is \${after}\")
endif()
")
configure(${SCRATCH}/shared shared-build -DCMAKE_BUILD_TYPE=Release)
# Of Inlay only libraries are built that it may link.
expect_words(shared-build/build.ninja "^build inlay/all: phony.*inlay/gemma_like/all")
file(STRINGS ${SCRATCH}/shared-build/build.ninja lines
     REGEX "^build inlay/all: phony.*(tools|serve|libinlay[.]so|c_api_page)")
if(lines)
  message(FATAL_ERROR "the project above builds programs and servers: ${lines}")
endif()

# Highway is fetched: there is a libinlay.so, which waits for it, and what needs no Highway is installed.
file(WRITE ${SCRATCH}/hwy/hwy.cc "int hwy;\n")
file(WRITE ${SCRATCH}/hwy/CMakeLists.txt "
project(hwy LANGUAGES CXX)
add_library(hwy STATIC hwy.cc)
")
configure(${SOURCE} fetched -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON -DFETCHCONTENT_SOURCE_DIR_HWY=${SCRATCH}/hwy
          -DINLAY_CONFIGS=bard -DINLAY_SERVER=OFF)
if(NOT output MATCHES "No shared libraries of abseil")
  expect_words(fetched/build.ninja "^build libinlay[.]so[^:]*:.*libhwy[.]a")
  expect_words(fetched/cmake_install.cmake "inlay_c[.]h")
  expect_words(fetched/cmake_install.cmake "inlay-c[.]pc")
endif()
expect_words(fetched/cmake_install.cmake "/models\" FILES_MATCHING")
expect_words(fetched/CMakeCache.txt "^CMAKE_BUILD_TYPE:STRING=Release$")
expect_words(fetched/CMakeCache.txt "^INLAY_BUILD_TESTS:BOOL=OFF$")  # most take other configs
file(STRINGS ${SCRATCH}/fetched/cmake_install.cmake lines REGEX "inlay-config[.]cmake")
if(lines)
  message(FATAL_ERROR "the package that needs Highway is installed without it")
endif()

# The tests of a build of all configs stay when fewer are chosen, and it is said.
configure(${SOURCE} fewer -DINLAY_SERVER=OFF)
configure(${SOURCE} fewer -DINLAY_SERVER=OFF -DINLAY_CONFIGS=bard)
if(NOT output MATCHES "keeps INLAY_BUILD_TESTS=ON")
  message(FATAL_ERROR "it is not told that the tests of all configs stay")
endif()

refuse("no config is named" -DINLAY_CONFIGS=)
refuse("separated by ;" -DINLAY_CONFIGS=bard,gemma_3_1b)
refuse("'none' is not in configs/config_list.txt" -DINLAY_CONFIGS=none)
