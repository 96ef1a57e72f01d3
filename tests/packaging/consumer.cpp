// The same from C++.
#include <cotangent.h>
#include <cstdio>

int main() { return std::printf("cotangent %s from C++\n", cot_version()) < 0; }
