# Fuzzing the readers of .npy and .safetensors files, in the way of fuzz/CMakeLists.txt, which looks for libFuzzer.
add_executable(replay_files fuzz/fuzz_files.c fuzz/replay.c)
target_link_libraries(replay_files PRIVATE cotangent_cli cotangent_front cotangent_static cot_flags)
add_test(NAME replay_files COMMAND replay_files ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus_files 20000)

if(COT_HAS_LIBFUZZER AND NOT COT_SANITIZE)
    set(readers npy safetensors json_scan elements source failure)
    list(TRANSFORM readers REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/cli/\\1.c")
    add_executable(fuzz_files fuzz/fuzz_files.c ${readers} ${PROJECT_SOURCE_DIR}/src/expr/nearest.c)
    target_include_directories(fuzz_files PRIVATE ${PROJECT_SOURCE_DIR}/cli ${PROJECT_SOURCE_DIR}/src)
    target_compile_options(fuzz_files PRIVATE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
    target_link_options(fuzz_files PRIVATE -fsanitize=fuzzer,address,undefined)
    target_link_libraries(fuzz_files PRIVATE cotangent_static cot_flags)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found_files)
    add_test(NAME fuzz_files COMMAND fuzz_files -max_total_time=10 -max_len=512 -seed=1 -timeout=20 -rss_limit_mb=1024
        -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/ ${CMAKE_CURRENT_BINARY_DIR}/found_files ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus_files)
    set_tests_properties(fuzz_files PROPERTIES TIMEOUT 120)
endif()
