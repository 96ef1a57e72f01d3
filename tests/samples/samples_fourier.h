/* samples_fourier.h: transforms of lengths of each path (2, 3, 4, 5 and 7 points, cut, padded), and
 * convolution. */
#ifndef ROWS
SAMPLE(s_fft) { UNUSED; return cot_fft(x[0], 0, -1); }
SAMPLE(s_fft_first) { UNUSED; return cot_fft(x[0], 4, 0); }
SAMPLE(s_ifft) { UNUSED; return cot_ifft(x[0], 0, -1); }
SAMPLE(s_rfft) { UNUSED; return cot_rfft(x[0], 0, -1); }
SAMPLE(s_rfft_first) { UNUSED; return cot_rfft(x[0], 3, 0); }
SAMPLE(s_irfft) { UNUSED; return cot_irfft(x[0], 0, -1); }
SAMPLE(s_irfft_odd) { UNUSED; return cot_irfft(x[0], 5, -1); }
SAMPLE(s_convolve) { UNUSED; return cot_fft_convolve(x[0], x[1], 1, "same"); }
#else
    {"fft", s_fft, 1, {{2, 5, 2}}},
    {"fft", s_fft, 1, {{3, 2, 6, 2}}},
    {"fft", s_fft, 1, {{2, 7, 2}}},
    {"fft", s_fft_first, 1, {{3, 2, 3, 2}}},
    {"fft", s_ifft, 1, {{3, 2, 4, 2}}},
    {"rfft", s_rfft, 1, {{2, 2, 6}}},
    {"rfft", s_rfft, 1, {{1, 5}}},
    {"rfft", s_rfft, 1, {{1, 14}}},
    {"rfft", s_rfft_first, 1, {{2, 5, 2}}},
    {"irfft", s_irfft, 1, {{3, 2, 4, 2}}},
    {"irfft", s_irfft_odd, 1, {{2, 3, 2}}},
    {"irfft", s_irfft_odd, 1, {{2, 2, 2}}},
    {NULL, s_convolve, 2, {{2, 2, 5}, {1, 3}}},
#endif
