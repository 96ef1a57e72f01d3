/* The library reports the version that its header declares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <cotangent.h>

static void the_version_is_the_headers(void **state) {
    (void)state;
    int  major = -1, minor = -1, patch = -1;
    char rest = 0;
    assert_int_equal(sscanf(cot_version(), "%d.%d.%d%c", &major, &minor, &patch, &rest), 3);
    assert_int_equal(major, COT_VERSION_MAJOR);
    assert_int_equal(minor, COT_VERSION_MINOR);
    assert_int_equal(patch, COT_VERSION_PATCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_version_is_the_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
