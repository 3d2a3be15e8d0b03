# How checks of the repository and of built programs end.

# Fails with a sentence on one line. An error's own text CMake would wrap at a width to which the
# lengths of paths are added.
function(inlay_check_failed sentence)
  message(NOTICE "${sentence}")
  message(FATAL_ERROR "The check has failed.")
endfunction()

# inlay_report_check(FILES FAULT FINE SENTENCE...) fails with FAULT after the sentences that say what
# is wrong, or says FINE of so many files.
function(inlay_report_check files fault fine)
  if(files EQUAL 0)
    inlay_check_failed("no source file under ${ROOT}")
  endif()
  if(ARGN)
    foreach(sentence IN LISTS ARGN)
      message(NOTICE "${sentence}")
    endforeach()
    message(FATAL_ERROR "${fault}")
  endif()
  message(STATUS "${files} ${fine}")
endfunction()
