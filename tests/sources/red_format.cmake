# cmake -DCHECK= -DSCRATCH= -P red_format.cmake: CHECK must pass a comment that names the functions and
# refuse a call of either.
cmake_minimum_required(VERSION 3.25)

# Expects CHECK to pass (<says> empty) or to fail with <says> when io/gguf/gguf.cc holds <line>.
function(expect line says)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/io/gguf/gguf.cc "${line}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CHECK}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(says STREQUAL "")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "'${line}' was refused:\n${output}")
    endif()
  elseif(status EQUAL 0 OR NOT output MATCHES "${says}")
    message(SEND_ERROR "'${line}' was not refused with '${says}':\n${output}")
  endif()
endfunction()

expect("return Format(\"%d\", x)  // as absl::StrFormat would" "")
expect("return absl::StrFormat(\"%d\", x)" "io/gguf/gguf.cc calls absl::StrFormat")
expect("absl::StrAppendFormat(&text, \"%d\", x)" "io/gguf/gguf.cc calls absl::StrFormat")
