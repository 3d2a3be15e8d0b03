# cmake -DBUILD= -DSOURCE= -DSCRATCH= -DCOMPILER= -DGENERATOR= -P install.cmake: installs BUILD,
# then builds and runs examples/embed against the installed package alone.
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
# Away from the repository, so that no header is found in the tree.
file(COPY ${SOURCE}/examples/embed DESTINATION ${SCRATCH})
run(${CMAKE_COMMAND} -S ${SCRATCH}/embed -B ${SCRATCH}/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run(${SCRATCH}/build/embed ${SCRATCH}/prefix/share/inlay/models/bard.gguf)
message(STATUS "embed says: ${output}")
if(output STREQUAL "")
  message(FATAL_ERROR "the embedded model wrote no text")
endif()
