# cmake -DBUILD= -DSOURCE= -DSCRATCH= -DCOMPILER= -DGENERATOR= -DREADELF= [-DPKG_CONFIG=] [-DPYTHON=] -P
# install.cmake: installs BUILD, then builds and runs the examples against the installed package alone.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
set(model ${SCRATCH}/prefix/share/inlay/models/bard.gguf)

# Builds an example, away from the repository so that no header is found in the tree.
function(build example)
  file(COPY ${SOURCE}/examples/${example} DESTINATION ${SCRATCH})
  build_copy(${example} ${ARGN})
endfunction()

# Builds the project in a folder of SCRATCH.
function(build_copy example)
  run(${CMAKE_COMMAND} -S ${SCRATCH}/${example} -B ${SCRATCH}/build/${example} -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Release ${ARGN})
  run(${CMAKE_COMMAND} --build ${SCRATCH}/build/${example})
endfunction()

# Its output must match.
function(expect_output regex)
  run(${ARGN})
  message(STATUS "${ARGN}: ${output}")
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "that does not match '${regex}'")
  endif()
endfunction()

# The licences, the manual pages and the completion scripts.
foreach(file LICENSE NOTICE)
  run(${CMAKE_COMMAND} -E compare_files ${SOURCE}/${file} ${SCRATCH}/prefix/share/doc/inlay/${file})
endforeach()
foreach(file man/man1/inlay.1 man/man1/inlay-generate.1 bash-completion/completions/inlay zsh/site-functions/_inlay
             fish/vendor_completions.d/inlay.fish)
  run(${CMAKE_COMMAND} -E compare_files ${BUILD}/share/${file} ${SCRATCH}/prefix/share/${file})
endforeach()

# The examples find the demo model wherever they run, and take another.
file(MAKE_DIRECTORY ${SCRATCH}/empty)
build(embed)
expect_output("." env -C ${SCRATCH}/empty ${SCRATCH}/build/embed/embed)
expect_output("." ${SCRATCH}/build/embed/embed ${model})

build(embed_c)
expect_output("[^\n].*--- or ---." env -C ${SCRATCH}/empty ${SCRATCH}/build/embed_c/embed_c)
expect_output("[^\n].*--- or ---." ${SCRATCH}/build/embed_c/embed_c ${model})

# In a project without C++, by the shared library.
file(GLOB_RECURSE shared ${SCRATCH}/prefix/*/libinlay.so)
if(shared)
  file(COPY ${SOURCE}/examples/embed_c/main.c DESTINATION ${SCRATCH}/only_c)
  file(WRITE ${SCRATCH}/only_c/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(only_c LANGUAGES C)
find_package(inlay REQUIRED)
add_executable(only_c main.c)
target_link_libraries(only_c PRIVATE inlay::c)
")
  build_copy(only_c)
  expect_output("[^\n].*--- or ---." ${SCRATCH}/build/only_c/only_c ${model})
endif()

# Eight conversations over the steps of generations.
build(schedule)
string(REPEAT "--- .*" 8 answers)
expect_output("${answers}[0-9]+ batches\n$" env -C ${SCRATCH}/empty
              ${SCRATCH}/build/schedule/schedule)

# A model that is a type answers as one that is found at run time.
build(typed)
run(${SCRATCH}/build/embed/embed ${model})
set(answer "${output}")
run(env -C ${SCRATCH}/empty ${SCRATCH}/build/typed/typed)
if(NOT output STREQUAL answer)
  message(FATAL_ERROR "typed answers '${output}', and embed '${answer}'")
endif()

# The public header opens the interface, and none of what is behind it.
file(WRITE ${SCRATCH}/headers.cc "#include \"inlay/inlay.h\"\n")
run(${COMPILER} -std=c++20 -I ${SCRATCH}/prefix/include -M ${SCRATCH}/headers.cc)
string(REPLACE "\\ " " " opened "${output}")  # spaces in a path
string(REGEX MATCHALL "/include/inlay/[a-z_/]+[.]h" opened "${opened}")
list(TRANSFORM opened REPLACE "/include/" "")
list(LENGTH opened count)
message(STATUS "inlay/inlay.h opens ${count} headers of the project: ${opened}")
if(count EQUAL 0 OR count GREATER 15)
  message(FATAL_ERROR "inlay/inlay.h opens ${count} headers, not 1 to 15")
endif()
foreach(behind gguf writer gemma_like/model[.]h hybrid_cache matmul)
  if(opened MATCHES "${behind}")
    message(FATAL_ERROR "inlay/inlay.h opens ${CMAKE_MATCH_0}")
  endif()
endforeach()

# From Python, by the shared library.
if(shared AND PYTHON)
  expect_output("^[0-9.]+ ." ${PYTHON} ${SOURCE}/tests/gemma_like/inlay_ctypes_test.py ${shared} ${model})
else()
  message(STATUS "The C API is not tested from Python: no Python 3, or no libinlay.so")
endif()

# The C header is C of every age and C++, and a C compiler needs no CMake.
set(strict -pedantic-errors -Wall -Wextra -Werror -fsyntax-only
    ${SCRATCH}/prefix/include/inlay/inlay_c.h)
foreach(standard c89 c99 c11 c17)
  run(${COMPILER} -x c -std=${standard} ${strict})
endforeach()
foreach(standard c++98 c++20)
  run(${COMPILER} -x c++ -std=${standard} ${strict})
endforeach()
# pkgconf escapes spaces in the prefix that it finds, and takes these for quotes.
if(PKG_CONFIG AND SCRATCH MATCHES "['\"\\$]")
  message(STATUS "inlay.pc is not tested in this folder: its name holds a quote")
elseif(PKG_CONFIG)
  file(GLOB_RECURSE pc ${SCRATCH}/prefix/*/inlay.pc)
  cmake_path(GET pc PARENT_PATH folder)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs inlay)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(cc ${SCRATCH}/embed_c/main.c ${flags} -o ${SCRATCH}/build/embed_pc)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --variable=demo_model inlay)
  separate_arguments(found UNIX_COMMAND "${output}")
  expect_output("[^\n].*--- or ---." ${SCRATCH}/build/embed_pc ${found})
  if(shared)
    run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} ${PKG_CONFIG} --cflags --libs inlay-c)
    separate_arguments(flags UNIX_COMMAND "${output}")
    run(cc ${SCRATCH}/embed_c/main.c ${flags} -o ${SCRATCH}/build/embed_c_pc)
    cmake_path(GET folder PARENT_PATH libraries)
    expect_output("[^\n].*--- or ---." ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries}
                  ${SCRATCH}/build/embed_c_pc ${model})
  endif()
endif()

# One file, alone in an empty folder and without an environment; in a project that has a library of its own,
# which links abseil's shared libraries where there are any.
file(COPY ${SOURCE}/examples/shakespeare DESTINATION ${SCRATCH})
if(shared)
  file(WRITE ${SCRATCH}/shakespeare/plugin.cc
       "#include <absl/status/status.h>\nabsl::Status Fail() { return absl::AbortedError(\"\"); }\n")
  file(APPEND ${SCRATCH}/shakespeare/CMakeLists.txt "
set(CMAKE_CXX_STANDARD 20)
add_library(plugin SHARED plugin.cc)
target_link_libraries(plugin PRIVATE absl::status)
")
endif()
build_copy(shakespeare)
file(COPY ${SCRATCH}/build/shakespeare/shakespeare DESTINATION ${SCRATCH}/empty)
expect_output("^To be..........+stopped by" env -i -C ${SCRATCH}/empty ./shakespeare "To be" -n 20)
expect_output("layers\nbard +bard +8\n$" env -i -C ${SCRATCH}/empty ./shakespeare configs)
# It did not ask for the server.
file(STRINGS ${SCRATCH}/empty/shakespeare found REGEX "text/event-stream" LIMIT_COUNT 1)
if(found)
  message(FATAL_ERROR "the program has the server's code: ${found}")
endif()
run(${CMAKE_COMMAND} -DREADELF=${READELF} -DPROGRAM=${SCRATCH}/empty/shakespeare
    -P ${SOURCE}/cmake/CheckNeeded.cmake)
message(STATUS "${output}")
