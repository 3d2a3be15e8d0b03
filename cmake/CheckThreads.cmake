# cmake -DROOT=<repository> -DTESTS=<file> -P CheckThreads.cmake: fails where a test that has threads is in
# neither list of tests/threads.cmake, or where a name there is no test's or is in both.
#
# TESTS has a line "<name> <source>" for each test. Whether one has threads is seen in its source: it starts
# them, or makes what has threads of its own.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/ReportCheck.cmake)
include(${ROOT}/tests/threads.cmake)
set(has_threads "std::j?thread[ >(]|std::async|pthread_create|HttpServer::Start|Service::Create")
string(APPEND has_threads "|[^a-z_]Scheduler::Create|SharedPrefixes::Create|StoreThread|SessionExpiry"
       "|CheckConcurrentUse|server_fixture[.]h|session_routes_fixture[.]h|thread_ranks[.]h|evil_server[.]h"
       "|hub_server[.]h|hub_test[.]h")
list(JOIN INLAY_THREADS_LEFT_OUT "|" left_out)

file(STRINGS ${TESTS} tests)
set(wrong "")
set(names "")
foreach(test IN LISTS tests)
  string(REPLACE " " ";" test "${test}")
  list(GET test 0 name)
  list(GET test 1 source)
  list(APPEND names ${name})
  set(is_left_out FALSE)
  if(name MATCHES "^(${left_out})$")
    set(is_left_out TRUE)
  endif()
  if(name IN_LIST INLAY_THREADS_TESTS)
    if(is_left_out)
      list(APPEND wrong "${name} is in both lists of tests/threads.cmake")
    endif()
    continue()
  endif()
  file(READ ${ROOT}/${source} text)
  if(text MATCHES "${has_threads}" AND NOT is_left_out)
    list(APPEND wrong "${source} has threads, and ${name} is in no list of tests/threads.cmake")
  endif()
endforeach()
foreach(name IN LISTS INLAY_THREADS_TESTS)
  if(NOT name IN_LIST names)
    list(APPEND wrong "tests/threads.cmake names ${name}, which is no test")
  endif()
endforeach()
list(LENGTH names tests_seen)
inlay_report_check(${tests_seen} "tests/threads.cmake and the tests differ." "tests are listed where they have threads"
                   ${wrong})
