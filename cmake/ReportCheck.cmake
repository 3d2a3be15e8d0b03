# How checks of the repository end: inlay_report_check(FILES FAULT FINE SENTENCE...) fails with FAULT
# after the sentences that say what is wrong, or says FINE of so many files.
function(inlay_report_check files fault fine)
  if(files EQUAL 0)
    message(FATAL_ERROR "no source file under ${ROOT}")
  endif()
  if(ARGN)
    foreach(sentence IN LISTS ARGN)
      message(NOTICE "${sentence}")
    endforeach()
    message(FATAL_ERROR "${fault}")
  endif()
  message(STATUS "${files} ${fine}")
endfunction()
