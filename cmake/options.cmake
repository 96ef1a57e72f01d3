# How everything of ours is compiled. `cot_flags` is linked privately and never installed.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # vector types; POSIX threads and clocks

add_library(cot_flags INTERFACE)
target_compile_options(cot_flags INTERFACE
    -ffp-contract=off # the same bits from every compiler: no multiply-add behind our back
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual
    -Wwrite-strings
    -Wvla -Wundef -Wimplicit-fallthrough
    # a misspelt word in a rule is an error at its line and column
    -Werror=implicit-function-declaration
    $<$<BOOL:${COT_WERROR}>:-Werror>)

if(COT_SANITIZE)
    list(JOIN COT_SANITIZE "," sanitizers)
    add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${sanitizers})
    # Each of some 250 programs holds the library as the sanitizers have made it: where there is an
    # lld that the compiler takes, linking takes half of the time.
    include(CheckLinkerFlag)
    check_linker_flag(C -fuse-ld=lld COT_LINKS_BY_LLD)
    if(COT_LINKS_BY_LLD)
        add_link_options(-fuse-ld=lld)
    endif()
endif()
