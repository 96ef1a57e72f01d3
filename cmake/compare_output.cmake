# cmake -DPROGRAM=... -DEXPECTED=... [-DARGUMENT=...] [-DREQUIRED=ON] -P compare_output.cmake
# Runs PROGRAM, with the argument if one is given; fails unless it exits with 0 and prints exactly
# what the file EXPECTED holds.
# Where that file does not exist the output goes uncompared, unless REQUIRED.
execute_process(COMMAND ${PROGRAM} ${ARGUMENT} OUTPUT_VARIABLE actual RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "${PROGRAM} ended with ${status} after printing:\n${actual}")
endif()
if(REQUIRED AND NOT EXISTS ${EXPECTED})
    message(FATAL_ERROR "${EXPECTED} does not exist")
elseif(NOT EXISTS ${EXPECTED})
    message("${actual}(nothing to compare with: ${EXPECTED} does not exist)")
    return()
endif()
file(READ ${EXPECTED} expected)
if(NOT actual STREQUAL expected)
    string(JOIN _ kept ${PROGRAM} ${ARGUMENT})
    file(WRITE ${kept}.actual.txt "${actual}")
    execute_process(COMMAND diff -u ${EXPECTED} ${kept}.actual.txt)
    message(FATAL_ERROR "output differs from ${EXPECTED}; if it is right, copy ${kept}.actual.txt there")
endif()
