# The text of the functions that exported C files hold: src/program/emit/text/exported.inc after the
# preprocessor, packed into a C file, EXPORTED_TEXT. Run as a script it makes lines of what the
# preprocessor gave.
#   cmake -DIN=exported.i -DOUT=exported.txt -P exported_text.cmake
if(CMAKE_SCRIPT_MODE_FILE)
    file(READ ${IN} text)
    # the operations' own functions: what an operation does is printed where it is used
    string(REGEX REPLACE "[^\n]*_value_f(64|32)[^\n]*\n" "" text "${text}")
    string(REGEX REPLACE "\n[ \n]*\n" "\n" text "${text}")
    # a macro that made several functions has put them on one line
    string(REGEX REPLACE "} (static|double cot__|float cot__)" "}\n\\1" text "${text}")
    file(WRITE ${OUT} "${text}")
    return()
endif()

set(EXPORTED_TEXT ${CMAKE_CURRENT_BINARY_DIR}/exported_text.c)
get_filename_component(exported_root ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
set(exported_from ${exported_root}/src/program/emit/text/exported.inc)
file(GLOB exported_parts CONFIGURE_DEPENDS ${exported_root}/src/base/math/* ${exported_root}/src/rules/words/*
    ${exported_root}/src/rules/*.h ${exported_root}/src/rules/*.def ${exported_root}/src/base/convert.h
    ${exported_root}/src/base/half.h ${exported_root}/src/base/random.* ${exported_root}/src/backend/cpu/linalg/*.inc
    ${exported_root}/src/program/memory/revolve.* ${exported_root}/src/program/emit/text/*.inc)
foreach(header cotangent float math stdbool stddef stdint string)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/exported_stubs/${header}.h "")
endforeach()
# The packer runs where the build does.
set(PACK_CC ${CMAKE_C_COMPILER})
if(CMAKE_CROSSCOMPILING)
    find_program(HOST_CC NAMES cc gcc clang REQUIRED)
    set(PACK_CC ${HOST_CC})
endif()
set(packer ${exported_root}/tools/pack_text.c)
add_custom_command(OUTPUT ${EXPORTED_TEXT}
    DEPENDS ${exported_from} ${exported_parts} ${packer} ${CMAKE_CURRENT_LIST_DIR}/exported_text.cmake
    COMMAND ${CMAKE_C_COMPILER} -E -P -undef -nostdinc -I${CMAKE_CURRENT_BINARY_DIR}/exported_stubs
        -I${exported_root}/src -x c ${exported_from} -o exported.i
    COMMAND ${CMAKE_COMMAND} -DIN=exported.i -DOUT=exported.txt -P ${CMAKE_CURRENT_LIST_DIR}/exported_text.cmake
    COMMAND ${PACK_CC} -O1 ${packer} -o pack_text
    COMMAND ./pack_text exported.txt ${EXPORTED_TEXT}
    COMMENT "Making the text of exported functions" VERBATIM)
