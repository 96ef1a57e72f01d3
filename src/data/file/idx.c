/* idx.c: the IDX format of MNIST and its successors: two zero bytes, a type, the number of axes,
 * an extent of four bytes for each axis, the elements; the first byte of a number comes first. */
#include "data/file/listing.h"

bool cot__idx_list(cot__source *s, cot__tensors *l, cot__trouble *t) {
    static const struct {
        uint8_t     code;
        cot__coding format;
    } types[] = {{8, {'u', 1, true}},  {9, {'i', 1, true}},  {11, {'i', 2, true}},
                 {12, {'i', 4, true}}, {13, {'f', 4, true}}, {14, {'f', 8, true}}};
    uint8_t            head[4 + 4 * COT_MAX_NDIM];
    cot__element_place p = {0};
    if (s->size < 4) return cot__trouble_file(t, "%s is no IDX file: it has fewer than 4 bytes", s->path);
    if (!cot__source_read(s, 0, head, 4, t)) return false;
    for (int k = 0; k < COUNTOF(types); k++)
        if (types[k].code == head[2]) p.format = types[k].format;
    if (head[0] || head[1] || !p.format.kind)
        return cot__trouble_file(t, "%s is no IDX file: it begins with %d, %d and the type %d (at byte 2)", s->path,
                                 head[0], head[1], head[2]);
    if (head[3] > COT_MAX_NDIM)
        return cot__trouble_file(t, "%s has %d axes (at byte 3); an array has at most %d", s->path, head[3],
                                 COT_MAX_NDIM);
    p.shape.ndim = head[3];
    p.at         = 4 + 4 * (uint64_t)p.shape.ndim;
    if (s->size < p.at)
        return cot__trouble_file(t, "%s is truncated: its %d axes take %llu bytes, and the file has %llu", s->path,
                                 p.shape.ndim, (unsigned long long)p.at, (unsigned long long)s->size);
    if (!cot__source_read(s, 4, head + 4, (size_t)p.at - 4, t)) return false;
    for (int k = 0; k < p.shape.ndim; k++)
        for (int i = 0; i < 4; i++) p.shape.dim[k] = p.shape.dim[k] << 8 | head[4 + 4 * k + i];
    int64_t  count;
    uint64_t bytes;
    if (!cot__elements_count(&p.shape, p.format.size, &count, &bytes))
        return cot__trouble_file(t, "%s has a shape with too many elements", s->path);
    if (bytes != s->size - p.at)
        return cot__trouble_file(t, "%s %s: its shape takes %llu bytes, and %llu follow its head at byte %llu", s->path,
                                 bytes > s->size - p.at ? "is truncated" : "has bytes left over",
                                 (unsigned long long)bytes, (unsigned long long)(s->size - p.at),
                                 (unsigned long long)p.at);
    cot__tensor_entry *e = cot__tensors_add(l, "");
    if (!e) return cot__trouble_memory(t);
    e->place = p;
    e->end   = s->size;
    return true;
}
