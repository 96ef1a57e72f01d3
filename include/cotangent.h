/* Placeholder: replaced by the real header. */
#ifndef COTANGENT_H
#define COTANGENT_H
#define COT_VERSION_MAJOR 0
#define COT_VERSION_MINOR 1
#define COT_VERSION_PATCH 0
#define COT_API __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
COT_API const char *cot_version(void); /* "major.minor.patch" of the library that is running */
#ifdef __cplusplus
}
#endif
#endif
