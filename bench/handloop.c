/* handloop.c -- the yardstick of bench/run: a lean hand-written event loop for one topology and nothing else.
 *
 *   Poisson, 1 request/ms -> random over 4 routers -> cable 5 ms -> least connections per router (uniform among
 *   ties) over 250 shared dynos -> cable 2 ms -> exclusive FIFO queue -> 20 ms + Exp(100 ms) -> back over both cables
 *
 * One event per step of a request (arrival, router in, dyno in, service done, dyno back, router back), none fused:
 * what a simulator of arbitrary topologies has to do, without any of its generality. Constant delays are FIFO lanes,
 * service completions a 4-ary heap of packed (time, dyno) words, least connections an array partitioned by count
 * (O(1) pick, up, down), exponentials by ziggurat, latencies a histogram (2^-11 relative). Times are integer ns.
 * Requests live in a recycled slab: memory does not grow with their number.
 *
 * Build: gcc -O2 -o handloop handloop.c -lm        Usage: handloop REQUESTS [SEED [REPLICATIONS]]
 * Other sizes: -DROUTERS=1 -DDYNOS=250000 (the arrival rate grows with the dynos; at most 1,048,575).
 * Prints one JSON line per replication; the middle half by order of arrival.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
#ifndef ROUTERS
#define ROUTERS 4
#endif
#ifndef DYNOS
#define DYNOS 250
#endif
#if DYNOS <= 256
typedef u16 Index;
enum { SLOTS = 1 << 16, RING = 1 << 10, DYNO_BITS = 8 };
#elif DYNOS < 1 << 18
typedef u32 Index;
enum { SLOTS = 1 << 19, RING = 1 << 16, DYNO_BITS = 18 };
#else
typedef u32 Index;
enum { SLOTS = 1 << 21, RING = 1 << 16, DYNO_BITS = 20 };
#endif
enum { LEVELS = 4096, HIST = 1 << 17, NONE = 0xffffffff };
#define MS 1000000ull
#define NEVER UINT64_MAX

static u64 S[4];
static inline u64 rotl(u64 x, int k) { return (x << k) | (x >> (64 - k)); }
static inline u64 rnd(void) {
    u64 r = rotl(S[0] + S[3], 23) + S[0], t = S[1] << 17;
    S[2] ^= S[0]; S[3] ^= S[1]; S[1] ^= S[2]; S[0] ^= S[3]; S[2] ^= t; S[3] = rotl(S[3], 45);
    return r;
}
static void reseed(u64 z) {
    for (int i = 0; i < 4; i++) {
        u64 x = z += 0x9e3779b97f4a7c15ull;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull; x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        S[i] = x ^ (x >> 31);
    }
}
static inline u32 below(u32 n) { return (u32)(((rnd() >> 32) * (u64)n) >> 32); }

/* Exp(1) by a 256-layer ziggurat (Marsaglia and Tsang 2000). */
static double zx[257], zf[257];
static void ziggurat_tables(void) {
    const double r = 7.69711747013104972, v = 0.0039496598225815571993;
    zx[0] = v / exp(-r); zx[1] = r;
    for (int i = 2; i < 256; i++) zx[i] = -log(v / zx[i - 1] + exp(-zx[i - 1]));
    zx[256] = 0;
    for (int i = 0; i <= 256; i++) zf[i] = exp(-zx[i]);
}
static inline double exp1(void) {
    for (;;) {
        u64 b = rnd();
        int i = b & 255;
        double u = (double)(b >> 11) * 0x1p-53, x = u * zx[i];
        if (x < zx[i + 1]) return x;
        if (i == 0) return zx[1] - log(((rnd() >> 11) + 0.5) * 0x1p-53);
        if (zf[i + 1] + (zf[i] - zf[i + 1]) * ((rnd() >> 11) * 0x1p-53) < exp(-x)) return x;
    }
}

typedef struct { u64 arrived; u32 next; u16 router; Index dyno; u32 counted; } Request;
static Request Q[SLOTS];
static u32 spare[SLOTS], spares;

typedef struct { u64 at[RING]; u32 who[RING]; u32 head, tail; } Lane;   /* constant delay: first in, first out */
static Lane lane[4];
enum { ARRIVAL, ROUTER_IN, DYNO_IN, DYNO_BACK, ROUTER_BACK, DONE, KINDS };
static u64 due[KINDS];                                                    /* the earliest time of each kind */
static inline void lane_push(int kind, u64 at, u32 who) {
    Lane *l = &lane[kind - 1];
    if (l->head == l->tail) due[kind] = at;
    else if (l->tail - l->head == RING) { fputs("a lane is full\n", stderr); exit(1); }
    l->at[l->tail & (RING - 1)] = at; l->who[l->tail++ & (RING - 1)] = who;
}
static inline u32 lane_pop(int kind) {
    Lane *l = &lane[kind - 1];
    u32 who = l->who[l->head++ & (RING - 1)];
    due[kind] = l->head == l->tail ? NEVER : l->at[l->head & (RING - 1)];
    return who;
}

static u64 heap[DYNOS + 1];                                               /* time << DYNO_BITS | dyno */
static u32 heaped;
static inline void sift_down(u64 x) {
    u32 i = 0;
    for (;;) {
        u32 c = 4 * i + 1, end = c + 4 < heaped ? c + 4 : heaped, best = c;
        if (c >= heaped) break;
        for (u32 j = c + 1; j < end; j++) if (heap[j] < heap[best]) best = j;
        if (heap[best] >= x) break;
        heap[i] = heap[best]; i = best;
    }
    heap[i] = x;
}
static inline void heap_push(u64 x) {
    u32 i = heaped++;
    while (i && heap[(i - 1) / 4] > x) { heap[i] = heap[(i - 1) / 4]; i = (i - 1) / 4; }
    heap[i] = x;
}

typedef struct { Index order[DYNOS], place[DYNOS], count[DYNOS], end[LEVELS]; } Router;   /* order is sorted by count */
static Router routers[ROUTERS];
static inline void put(Router *r, u32 i, u32 d) { r->order[i] = d; r->place[d] = i; }
static inline u32 pick(Router *r) {
    u32 level = 0;
    while (!r->end[level]) level++;
    u32 d = r->order[below(r->end[level])], i = r->place[d], last = --r->end[level];
    put(r, i, r->order[last]); put(r, last, d);
    r->count[d]++;
    return d;
}
static inline void release(Router *r, u32 d) {
    u32 level = --r->count[d], i = r->place[d], first = r->end[level]++;
    put(r, i, r->order[first]); put(r, first, d);
}

static u32 first_of[DYNOS], last_of[DYNOS];
static u64 hist[HIST];
static inline u64 service(void) { return 20 * MS + (u64)(exp1() * (100.0 * MS)); }

static double bucket_value(u32 b) { u64 w = ((u64)b + (1023ull << 11)) << 41; double x; memcpy(&x, &w, 8); return x; }
static inline void record(double ns) {
    u64 w; memcpy(&w, &ns, 8);
    hist[(w >> 41) - (1023ull << 11)]++;
}
static double quantile(u64 total, double p) {
    double rank = p * (total - 1) + 0.5; u64 below_ = 0;
    for (u32 b = 0; b < HIST; b++) {
        if (hist[b] && below_ + hist[b] > rank)
            return (bucket_value(b) + (bucket_value(b + 1) - bucket_value(b)) * (rank - below_) / hist[b]) / MS;
        below_ += hist[b];
    }
    return NAN;
}

static void run(u64 n, u64 seed, int rep) {
    reseed(seed * 1000003ull + rep);
    memset(hist, 0, sizeof hist); memset(routers, 0, sizeof routers); memset(lane, 0, sizeof lane);
    for (int k = 0; k < ROUTERS; k++) {
        for (u32 d = 0; d < DYNOS; d++) put(&routers[k], d, d);
        for (int l = 0; l < LEVELS; l++) routers[k].end[l] = DYNOS;
    }
    for (u32 d = 0; d < DYNOS; d++) first_of[d] = NONE;
    for (spares = 0; spares < SLOTS; spares++) spare[spares] = SLOTS - 1 - spares;
    for (int k = 0; k < KINDS; k++) due[k] = NEVER;
    heaped = 0; due[ARRIVAL] = 0;
    u64 issued = 0, finished = 0, from = n / 4, to = n / 4 + n / 2, selected = 0;
    double sum = 0;
    while (finished < n) {
        int kind = 0; u64 t = due[0];
        for (int k = 1; k < KINDS; k++) if (due[k] < t) { t = due[k]; kind = k; }
        switch (kind) {
        case ARRIVAL: {
            if (!spares) { fputs("too many requests in flight\n", stderr); exit(1); }
            u32 q = spare[--spares];
            Q[q] = (Request){.arrived = t, .next = NONE, .router = below(ROUTERS), .counted = issued >= from && issued < to};
            due[ARRIVAL] = ++issued < n ? t + (u64)(exp1() * (MS * 250.0 / DYNOS)) : NEVER;
            lane_push(ROUTER_IN, t + 5 * MS, q);
            break; }
        case ROUTER_IN: {
            u32 q = lane_pop(ROUTER_IN);
            Q[q].dyno = pick(&routers[Q[q].router]);
            lane_push(DYNO_IN, t + 2 * MS, q);
            break; }
        case DYNO_IN: {
            u32 q = lane_pop(DYNO_IN), d = Q[q].dyno;
            if (first_of[d] == NONE) {
                first_of[d] = q;
                heap_push((t + service()) << DYNO_BITS | d); due[DONE] = heap[0] >> DYNO_BITS;
            } else Q[last_of[d]].next = q;
            last_of[d] = q;
            break; }
        case DONE: {
            u32 d = heap[0] & ((1 << DYNO_BITS) - 1), q = first_of[d];
            lane_push(DYNO_BACK, t + 2 * MS, q);
            first_of[d] = Q[q].next;
            if (first_of[d] != NONE) sift_down((t + service()) << DYNO_BITS | d);
            else if (--heaped) sift_down(heap[heaped]);
            due[DONE] = heaped ? heap[0] >> DYNO_BITS : NEVER;
            break; }
        case DYNO_BACK: {
            u32 q = lane_pop(DYNO_BACK);
            release(&routers[Q[q].router], Q[q].dyno);
            lane_push(ROUTER_BACK, t + 5 * MS, q);
            break; }
        case ROUTER_BACK: {
            u32 q = lane_pop(ROUTER_BACK);
            if (Q[q].counted) { double l = (double)(t - Q[q].arrived); record(l); sum += l; selected++; }
            spare[spares++] = q; finished++;
            break; }
        }
    }
    printf("{\"rep\":%d,\"n\":%llu,\"sel\":%llu,\"success\":1,\"mean\":%.5f,\"p50\":%.4f,\"p95\":%.4f,\"p99\":%.4f}\n", rep, (unsigned long long)n,
           (unsigned long long)selected, sum / selected / MS, quantile(selected, .5), quantile(selected, .95), quantile(selected, .99));
}

int main(int argc, char **argv) {
    u64 n = argc > 1 ? strtoull(argv[1], 0, 10) : 100000, seed = argc > 2 ? strtoull(argv[2], 0, 10) : 1;
    int reps = argc > 3 ? atoi(argv[3]) : 1;
    if (n < 4 || reps < 1) { fputs("usage: handloop REQUESTS [SEED [REPLICATIONS]]\n", stderr); return 2; }
    ziggurat_tables();
    for (int rep = 0; rep < reps; rep++) run(n, seed, rep);
    return 0;
}
