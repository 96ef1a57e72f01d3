# cmake -DOUT=FILE [-DWASM=FILE] -P join.cmake: the page as one file, from the sources beside this
# script.
#   with WASM     the page, with that module inside (compressed, as base64)
#   without it    the viewer around a recorded tape, where /*TRACE*/null stands for the trace;
#                 written as C, an array of bytes
set(web ${CMAKE_CURRENT_LIST_DIR})
# An order in which every file comes after those it imports from.
set(modules dom numbers names wasi engine tape layout plan wires heat kinks frame graph picture export source
    play stepper fold present forward softmax reverse reach tangents walks registers answer store calculate questions
    guess notes chart rewind memory cost presets lessons nudge end code link inputs refuse program page)

file(READ ${web}/index.html page)
file(READ ${web}/style.css style)
set(script "")
foreach(module ${modules})
    file(READ ${web}/js/${module}.js text)
    # In one file modules need neither imports nor exports.
    string(REGEX REPLACE "(^|\n)import [^\n]*" "" text "${text}")
    string(REGEX REPLACE "(^|\n)export " "\\1" text "${text}")
    string(APPEND script "\n${text}")
    # All of them share one scope, where a second function of a name would silently replace the
    # first.
    string(REGEX MATCHALL "\n(async function|const|let|function|class) [A-Za-z_]+" declared "\n${text}")
    foreach(line ${declared})
        string(REGEX REPLACE ".* " "" name "${line}")
        if(DEFINED declared_${name})
            message(FATAL_ERROR "${module}.js and ${declared_${name}}.js both declare ${name}; give one another name")
        endif()
        set(declared_${name} ${module})
    endforeach()
endforeach()
string(REPLACE "/*STYLE*/" "${style}" page "${page}")
string(REPLACE "/*SCRIPT*/" "(() => {\n\"use strict\";\n${script}})();" page "${page}")

if(WASM)
    execute_process(COMMAND gzip -9nc ${WASM} COMMAND base64 -w0 OUTPUT_VARIABLE packed COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "/*WASM*/" "${packed}" page "${page}")
    file(WRITE ${OUT} "${page}")
else()
    string(REPLACE "/*WASM*/" "" page "${page}")
    file(WRITE ${OUT}.html "${page}")
    file(READ ${OUT}.html bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n"
        bytes "${bytes}")
    file(WRITE ${OUT} "/* Made from web/ by web/join.cmake. */\n#include \"output/viewer.h\"\n\n"
        "static const unsigned char text[] = {\n${bytes}0x00};\n\n"
        "const char *viewer_template(void) { return (const char *)text; }\n")
endif()
