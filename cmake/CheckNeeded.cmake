# cmake -DREADELF=<readelf> -DPROGRAM=<file> [-DALLOWED="a.so;b.so"] -P CheckNeeded.cmake: fails where
# a program needs shared libraries beyond those allowed, which are the C and C++ runtimes unless
# said otherwise.
cmake_minimum_required(VERSION 3.25)
if(NOT DEFINED ALLOWED)
  set(ALLOWED libc.so.6 libm.so.6 libstdc++.so.6 libgcc_s.so.1)
endif()
execute_process(COMMAND ${READELF} -dW ${PROGRAM} OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${READELF} cannot read ${PROGRAM}")
endif()
string(REGEX MATCHALL "NEEDED[^\n]*" lines "${output}")
set(needed)
foreach(line IN LISTS lines)
  string(REGEX REPLACE ".*\\[(.*)\\].*" "\\1" library "${line}")
  list(APPEND needed ${library})
endforeach()
set(beyond ${needed})
list(REMOVE_ITEM beyond ${ALLOWED})
list(FILTER beyond EXCLUDE REGEX "^ld-linux")  # the loader, which a program that uses it names too
if(beyond)
  message(FATAL_ERROR "${PROGRAM} needs ${beyond}")
endif()
message(STATUS "${PROGRAM} needs no more than ${needed}")
