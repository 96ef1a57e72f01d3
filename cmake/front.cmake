# What stands in front of the library: the expression language and the trace of a tape
# (cotangent_front), and the command. They use internals, so they are linked with the static
# library, and none of it is in libcotangent.so.
file(GLOB_RECURSE front_sources CONFIGURE_DEPENDS src/expr/*.c src/trace/*.c)
if(front_sources)
    # The functions that expressions can call, from the library's tables.
    add_executable(gen_expr_calls tools/gen_expr_calls.c)
    target_include_directories(gen_expr_calls PRIVATE src)
    target_link_libraries(gen_expr_calls PRIVATE cot_flags)
    set(expr_calls ${PROJECT_BINARY_DIR}/expr_calls.c)
    add_custom_command(OUTPUT ${expr_calls} COMMAND gen_expr_calls > ${expr_calls} DEPENDS gen_expr_calls VERBATIM)

    add_library(cotangent_front STATIC ${front_sources} ${expr_calls})
    target_include_directories(cotangent_front PUBLIC include src)
    target_link_libraries(cotangent_front PUBLIC cotangent_static PRIVATE cot_flags)
else()
    add_library(cotangent_front INTERFACE)
    target_link_libraries(cotangent_front INTERFACE cotangent_static)
endif()

# The command is a library too, but for its main: tests reach into its readers.
file(GLOB_RECURSE command_sources CONFIGURE_DEPENDS cli/*.c models/*.c)
list(FILTER command_sources EXCLUDE REGEX "/main\\.c$")
# The page of `trace --html`, from the sources of the web page.
set(viewer_template ${PROJECT_BINARY_DIR}/viewer_template.c)
file(GLOB page_sources CONFIGURE_DEPENDS web/*.html web/*.css web/js/*.js)
add_custom_command(OUTPUT ${viewer_template} DEPENDS ${page_sources} web/join.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUT=${viewer_template} -P ${PROJECT_SOURCE_DIR}/web/join.cmake)
add_library(cotangent_cli STATIC ${command_sources} ${viewer_template})
target_include_directories(cotangent_cli PUBLIC cli ${PROJECT_SOURCE_DIR})
target_link_libraries(cotangent_cli PUBLIC cotangent_front PRIVATE cot_flags)
add_executable(cotangent_command cli/main.c $<TARGET_OBJECTS:cotangent_lapack>)
set_target_properties(cotangent_command PROPERTIES OUTPUT_NAME cotangent RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_link_libraries(cotangent_command PRIVATE cotangent_cli cot_flags ${COT_DL_LIBS})
install(TARGETS cotangent_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES docs/man/cotangent.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES cli/completion/cotangent.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME
    cotangent)
install(FILES cli/completion/_cotangent DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
