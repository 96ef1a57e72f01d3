/* vmath_horner.h: HORNER(x, c_n, …, c_1, c_0) = c_0 + x (c_1 + x (…)) for 2 to 21 coefficients,
 * even and odd powers apart: two chains of FMA half as long as one, because loops over these
 * functions wait for results more than for free units. */
#ifndef COT_VMATH_HORNER_H
#define COT_VMATH_HORNER_H

/* y = x^2; p and q are the chains, p the one that takes the next coefficient. */
#define H2(x, y, p, q) FMA(p, x, q)
#define H3(x, y, p, q, c) H2(x, y, q, FMA(p, y, c))
#define H4(x, y, p, q, c, ...) H3(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H5(x, y, p, q, c, ...) H4(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H6(x, y, p, q, c, ...) H5(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H7(x, y, p, q, c, ...) H6(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H8(x, y, p, q, c, ...) H7(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H9(x, y, p, q, c, ...) H8(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H10(x, y, p, q, c, ...) H9(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H11(x, y, p, q, c, ...) H10(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H12(x, y, p, q, c, ...) H11(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H13(x, y, p, q, c, ...) H12(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H14(x, y, p, q, c, ...) H13(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H15(x, y, p, q, c, ...) H14(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H16(x, y, p, q, c, ...) H15(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H17(x, y, p, q, c, ...) H16(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H18(x, y, p, q, c, ...) H17(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H19(x, y, p, q, c, ...) H18(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H20(x, y, p, q, c, ...) H19(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define H21(x, y, p, q, c, ...) H20(x, y, q, FMA(p, y, c), __VA_ARGS__)
#define HORNER_PICK(c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21,    \
                    name, ...)                                                                                         \
    name
#define HORNER_(x, ...)                                                                                                \
    HORNER_PICK(__VA_ARGS__, H21, H20, H19, H18, H17, H16, H15, H14, H13, H12, H11, H10, H9, H8, H7, H6, H5, H4, H3,   \
                H2, H1, 0)                                                                                             \
    (x, (x) * (x), __VA_ARGS__)
/* after the list of coefficients has been expanded */
#define HORNER(x, ...) HORNER_(x, __VA_ARGS__)

#endif
