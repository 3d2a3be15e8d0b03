# cmake -DCHECK= -DSCRATCH= -P red_threads.cmake: CHECK must pass where every test with threads is in a list
# and refuse each fault below.
cmake_minimum_required(VERSION 3.25)

# Expects CHECK to pass (<says> empty) or to fail with <says> when the test a_test has this source, and the
# lists of tests/threads.cmake are these.
function(expect source run left_out says)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/tests.txt "a_test tests/a/a_test.cc\nb_test tests/a/b_test.cc\n")
  file(WRITE ${SCRATCH}/tests/a/a_test.cc "${source}\n")
  file(WRITE ${SCRATCH}/tests/a/b_test.cc "int one;\n")
  file(WRITE ${SCRATCH}/tests/threads.cmake
       "set(INLAY_THREADS_TESTS ${run})\nset(INLAY_THREADS_LEFT_OUT ${left_out})\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -DTESTS=${SCRATCH}/tests.txt -P ${CHECK}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(says STREQUAL "")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "'${source}' was refused:\n${output}")
    endif()
  elseif(status EQUAL 0 OR NOT output MATCHES "${says}")
    message(SEND_ERROR "'${source}' was not refused with '${says}':\n${output}")
  endif()
endfunction()

set(thread "std::thread other([] {})")
expect("int two" "" "none" "")
expect("size_t cores = std::thread::hardware_concurrency()" "" "none" "")
expect("${thread}" "a_test" "none" "")
expect("${thread}" "" "a_.*" "")
foreach(threads "${thread}" "std::vector<std::thread> others" "std::jthread other([] {})"
                "Must(Service::Create(model))" "#include \"tests/serve/http/server_fixture.h\"")
  expect("${threads}" "b_test" "none" "tests/a/a_test.cc has threads, and a_test is in no list")
  expect("${threads}" "b_test" "_test" "a_test is in no list")
endforeach()
expect("${thread}" "a_test" "a_.*" "a_test is in both lists")
expect("int two" "c_test" "none" "tests/threads.cmake names c_test, which is no test")
