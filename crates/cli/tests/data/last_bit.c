/* A C library whose log, exp, pow, sin and cos err in the last bit. Preloaded, it must change no byte of weir's results.
 * With -DPROBE: a program that shows whether it is in effect. */
#define _GNU_SOURCE
#include <stdio.h>

#ifdef PROBE
double log(double), exp(double), pow(double, double), sin(double), cos(double);

int main(int argc, char **argv) {
    double x = 1.0 + argc; /* not known to the compiler */
    (void)argv;
    printf("%a %a %a %a %a\n", log(x), exp(x), pow(x, 1.5), sin(x), cos(x));
    return 0;
}
#else
#include <dlfcn.h>
#include <string.h>

static double err(double y) {
    unsigned long long bits;
    memcpy(&bits, &y, sizeof bits);
    if (y != 0 && y - y == 0) bits ^= 1;
    memcpy(&y, &bits, sizeof y);
    return y;
}

#define ONE(name) \
    double name(double x) { \
        static double (*real)(double); \
        if (!real) real = (double (*)(double))dlsym(RTLD_NEXT, #name); \
        return err(real(x)); \
    }
ONE(log) ONE(exp) ONE(sin) ONE(cos)

double pow(double x, double y) {
    static double (*real)(double, double);
    if (!real) real = (double (*)(double, double))dlsym(RTLD_NEXT, "pow");
    return err(real(x, y));
}
#endif
