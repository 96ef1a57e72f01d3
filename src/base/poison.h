/* poison.h: tells AddressSanitizer about memory of ours that must not be read, and MemorySanitizer
 * about memory that is handed out again. Without sanitizers it does nothing.
 *
 * A tensor without elements has no byte that may be read, but its block has bytes: the header, the
 * alignment, and what sizes were rounded up by. With these poisoned a sanitizer build finds code
 * that reads element 0 of nothing, or a vector beyond the end. Kernels may touch only the payload
 * of a storage.
 *
 * Memory that the cache and the arena hand out again was written before. After cot__unwritten a
 * sanitizer build treats it as fresh, and finds code that reads it too early. Stores through a mask
 * it does not see: cot__written tells it. */
#ifndef COT_POISON_H
#define COT_POISON_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define COT__ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COT__ADDRESS_SANITIZER 1
#endif
#endif
#ifndef COT__ADDRESS_SANITIZER
#define COT__ADDRESS_SANITIZER 0
#endif

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define COT__MEMORY_SANITIZER 1
#endif
#endif
#ifndef COT__MEMORY_SANITIZER
#define COT__MEMORY_SANITIZER 0
#endif

#if COT__MEMORY_SANITIZER
void __msan_allocated_memory(const volatile void *p, size_t bytes);
void __msan_unpoison(const volatile void *p, size_t bytes);
static inline void cot__unwritten(const void *p, size_t bytes) { __msan_allocated_memory(p, bytes); }
static inline void cot__written(const void *p, size_t bytes) { __msan_unpoison(p, bytes); }
#else
static inline void cot__unwritten(const void *p, size_t bytes) { (void)p, (void)bytes; }
static inline void cot__written(const void *p, size_t bytes) { (void)p, (void)bytes; }
#endif

#if COT__ADDRESS_SANITIZER
void __asan_poison_memory_region(const volatile void *p, size_t bytes);
void __asan_unpoison_memory_region(const volatile void *p, size_t bytes);
static inline void cot__poison(const void *p, size_t bytes) { __asan_poison_memory_region(p, bytes); }
static inline void cot__unpoison(const void *p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
static inline void cot__poison(const void *p, size_t bytes) { (void)p, (void)bytes; }
static inline void cot__unpoison(const void *p, size_t bytes) { (void)p, (void)bytes; }
#endif

#endif
