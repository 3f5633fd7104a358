/* CRC32-C (Castagnoli) of a byte range, the checksum Pulsar puts in front of every message.
 * Uses the processor's own instruction where there is one, a table where there is none. */
#ifndef LOADKIT_CRC32C_H
#define LOADKIT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

void crc32c_prepare(void);                             /* once, before the first sum */
uint32_t crc32c(const uint8_t *bytes, size_t size);
uint32_t crc32c_by_table(const uint8_t *bytes, size_t size);

#endif
