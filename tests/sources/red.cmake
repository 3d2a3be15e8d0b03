# cmake -DCHECK= -DSCRATCH= -P red.cmake: CHECK must pass in a house where all is built and refuse each
# fault below.
cmake_minimum_required(VERSION 3.25)

# Expects CHECK to pass (<says> empty) or to fail with <says> when <file> in the house holds <line>.
function(expect file line says)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/built.txt "ops/norm.cc\ntests/ops/norm_test.cc\ntests/ops/quant/quant_test.cc\nio/gguf/gguf.cc\n")
  file(WRITE ${SCRATCH}/ops/norm.cc "")
  file(WRITE ${SCRATCH}/ops/BUILD.bazel "srcs = glob([\"*.cc\"])\n")
  file(WRITE ${SCRATCH}/tests/ops/norm_test.cc "")
  file(WRITE ${SCRATCH}/tests/ops/quant/quant_test.cc "")
  file(WRITE ${SCRATCH}/tests/ops/BUILD.bazel "inlay_tests()\n")
  file(WRITE ${SCRATCH}/${file} "${line}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -DBUILT=${SCRATCH}/built.txt -P ${CHECK}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(says STREQUAL "")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "'${line}' in ${file} was refused:\n${output}")
    endif()
  elseif(status EQUAL 0 OR NOT output MATCHES "${says}")
    message(SEND_ERROR "'${line}' in ${file} was not refused with '${says}':\n${output}")
  endif()
endfunction()

expect(ops/BUILD.bazel "exclude = [\"norm.cc\"]" "")
expect(ops/rope.cc "" "ops/rope.cc is in no CMakeLists.txt")
expect(tests/ops/rope_test.cc "" "tests/ops/rope_test.cc is in no CMakeLists.txt")
expect(tests/ops/BUILD.bazel "cc_test(srcs = glob([\"*.cc\"]))" "tests/ops/quant/quant_test.cc is in no package")
expect(io/gguf/gguf.cc "" "io/gguf/gguf.cc is in no package of Bazel's")
expect(ops/BUILD.bazel "exclude = [\"rope.cc\"]" "ops/BUILD.bazel names rope.cc, which is not there")
