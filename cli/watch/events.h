/* events.h: event files as TensorBoard reads them: records with checksums, each an Event in the
 * wire format of protocol buffers, with numbers by name (scalars). */
#ifndef COT_CLI_EVENTS_H
#define COT_CLI_EVENTS_H

#include "io/append.h"
#include "watch/watch.h"

/* Makes the folder if it is missing, and a new file in it. A run that was resumed after some steps
 * says so, and readers drop what older files say about later steps. `date` is in seconds since
 * 1970. */
bool events_open(append_file *a, const char *folder, int64_t resumed, double date, failure *f);
/* An event with n numbers. False where the first record is missed. */
bool events_row(append_file *a, double date, int64_t step, int n, const watch_number *numbers);

/* CRC-32C (Castagnoli) of n bytes, as RFC 3720 defines it. */
uint32_t events_crc(const void *bytes, size_t n);

#endif
