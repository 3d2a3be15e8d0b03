# cmake -DREADELF= -DCHECK= -DPROGRAM= -DSAYS= -DSCRATCH= -P red.cmake: CHECK must refuse the program
# with these words on one line, whatever the length of its path and with spaces in it.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${SCRATCH})
cmake_path(GET PROGRAM FILENAME name)
foreach(length 1 7 13 19 25 31 37 43 49 55 61 67 73 79 200)
  string(REPEAT "x" ${length} folder)
  set(folder "${SCRATCH}/one folder/${folder}")
  file(COPY ${PROGRAM} DESTINATION ${folder})
  execute_process(COMMAND ${CMAKE_COMMAND} -DREADELF=${READELF} -DPROGRAM=${folder}/${name} -P ${CHECK}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0 OR NOT output MATCHES "${SAYS}")
    message(SEND_ERROR "${name} in a folder of ${length} letters was not refused with '${SAYS}':\n${output}")
  endif()
endforeach()
file(REMOVE_RECURSE ${SCRATCH})
