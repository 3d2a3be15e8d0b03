# cmake -DCOMPILER= -DFLAGS= -DSOURCE= -DEXPECT= -P CompileFail.cmake: the script behind
# inlay_compile_fail_test(). FLAGS is a response file, EXPECT a regular expression.
cmake_minimum_required(VERSION 3.25)

# Compiles SOURCE with INLAY_COMPILE_FAIL set to <fault>; sets <status> and <output>.
function(compile fault status output)
  execute_process(COMMAND ${COMPILER} @${FLAGS} -DINLAY_COMPILE_FAIL=${fault} -fsyntax-only ${SOURCE}
    RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${status} "${result}" PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

file(STRINGS ${SOURCE} guarded REGEX "INLAY_COMPILE_FAIL")
if(NOT guarded)
  message(FATAL_ERROR "${SOURCE} has no '#if INLAY_COMPILE_FAIL' around its fault")
endif()
compile(0 status output)
if(NOT status EQUAL 0)
  message(NOTICE "${output}")
  message(FATAL_ERROR "${SOURCE} must compile without its fault")
endif()
compile(1 status output)
if(status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with its fault")
endif()
if(NOT output MATCHES "${EXPECT}")
  message(NOTICE "${output}")
  message(FATAL_ERROR "${SOURCE} is refused, but without the words '${EXPECT}'")
endif()
