/* poison.h: memory that is ours and must not be read, made known to AddressSanitizer, and memory
 * that is handed out again, made known to MemorySanitizer; nothing elsewhere.
 *
 * A tensor of no elements has no byte that may be read, but its block has: the header, the
 * alignment, what sizes were rounded up by. With these poisoned a sanitizer build finds code that
 * reads element 0 of nothing, or a vector beyond the end. Kernels are entitled to no slack: the
 * payload of a storage is all they may touch.
 *
 * What the cache and the arena hand out again was written by somebody before. With
 * cot__unwritten a sanitizer build takes it for fresh, and finds code that reads it too early. */
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
static inline void cot__unwritten(const void *p, size_t bytes) { __msan_allocated_memory(p, bytes); }
#else
static inline void cot__unwritten(const void *p, size_t bytes) { (void)p, (void)bytes; }
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
