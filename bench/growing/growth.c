/* growth.c -- the origin and the clients of bench/growth. One thread each, epoll, loopback only.
 *
 *   growth origin PORT                                       answers on every address of 127.0.0.0/8
 *   growth load PORT CLIENTS SECONDS REQUESTS UPLOAD GAP_US  asks until SECONDS are over or REQUESTS are answered (0: any)
 *   growth hold PORT CLIENTS                                 connects, asks once on each connection, and keeps them
 *   growth run FILE COMMAND...                               runs a command, and writes into FILE what it has taken
 *
 * The origin answers `.../N` with N bytes as soon as it has read the whole body of the request. `load` and `hold` read the
 * head of their request from standard input; UPLOAD is how many bytes follow it. A client sends its next request when it
 * has had the answer, GAP_US later if that is not 0. `load` prints one line of JSON; SIGTERM ends it early. Every
 * answer must be a 200 and complete, otherwise it counts as failed, and so does a request on a connection that was closed. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 512, HEAD_MAX = 1 << 17, BLOCK = 1 << 18, FAILED_MAX = 10000 };

static int ep;
static char block[BLOCK];   /* what bodies are read into */
static char zeros[BLOCK];   /* what bodies are made of */
static volatile sig_atomic_t ending;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void end(int number) {
    (void)number;
    ending = 1;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void watch(int fd, void *of, uint32_t events, int how) {
    struct epoll_event ev = {.events = events, .data.ptr = of};
    if (epoll_ctl(ep, how, fd, &ev) < 0) die("epoll_ctl");
}

/* The value of a field with a number, or `otherwise`. `head` ends with a zero. */
static long number_of(const char *head, const char *field, long otherwise) {
    const char *at = strcasestr(head, field);
    return at ? strtol(at + strlen(field), NULL, 10) : otherwise;
}

/* --- The origin --- */

struct exchange {
    int fd, wants_out;
    long body_left;         /* of the request: to be read before the answer */
    long answer_left;       /* of the answer's body; -1: nothing to send */
    size_t have, head_len, head_sent;
    char answer[256];
    char in[HEAD_MAX + 1];
};

/* Takes the request whose head has come: what is to be read, and what is to be answered. */
static void take(struct exchange *x, size_t len) {
    char saved = x->in[len], *line, *space, *slash;
    x->in[len] = 0;
    x->body_left = number_of(x->in, "\r\ncontent-length:", 0);
    int chunked = strcasestr(x->in, "\r\ntransfer-encoding:") != NULL;
    line = strchr(x->in, '\r');
    *line = 0;
    space = strrchr(x->in, ' ');
    *space = 0;
    slash = strrchr(x->in, '/');
    long size = slash && slash[1] >= '0' && slash[1] <= '9' && !chunked ? strtol(slash + 1, NULL, 10) : -1;
    x->head_len = sprintf(x->answer, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %ld\r\n\r\n",
                          size < 0 ? "404 Not Found" : "200 OK", size < 0 ? 0 : size);
    x->answer_left = size < 0 ? 0 : size;
    x->head_sent = 0;
    x->in[len] = saved;
    x->have -= len;
    memmove(x->in, x->in + len, x->have);
    long early = (long)x->have < x->body_left ? (long)x->have : x->body_left;
    x->body_left -= early;
    x->have -= early;
    memmove(x->in, x->in + early, x->have);
}

/* 1: the answer is sent, 0: the socket is full, -1: the connection is gone. */
static int answer(struct exchange *x) {
    while (x->head_sent < x->head_len || x->answer_left > 0) {
        size_t head = x->head_len - x->head_sent;
        struct iovec parts[2] = {{x->answer + x->head_sent, head},
                                 {zeros, x->answer_left < BLOCK ? x->answer_left : BLOCK}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(x->fd, &message, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN ? 0 : -1;
        size_t of_head = (size_t)n < head ? (size_t)n : head;
        x->head_sent += of_head;
        x->answer_left -= n - of_head;
    }
    x->answer_left = -1;
    return 1;
}

static int read_some(struct exchange *x) {
    if (x->body_left > 0) {
        ssize_t n = recv(x->fd, block, x->body_left < BLOCK ? x->body_left : BLOCK, 0);
        if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
        x->body_left -= n;
        return 1;
    }
    ssize_t n = recv(x->fd, x->in + x->have, HEAD_MAX - x->have, 0);
    if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
    x->have += n;
    return 1;
}

/* Goes on with a connection until it would wait; -1: it is gone. */
static int serve(struct exchange *x) {
    for (int turn = 0;; turn++) {
        if (x->answer_left >= 0 && x->body_left == 0) {
            int sent = answer(x);
            if (sent < 0) return -1;
            if (sent == 0) {
                if (!x->wants_out) watch(x->fd, x, EPOLLOUT, EPOLL_CTL_MOD);
                x->wants_out = 1;
                return 0;
            }
            if (x->wants_out) watch(x->fd, x, EPOLLIN, EPOLL_CTL_MOD);
            x->wants_out = 0;
        }
        char *head_end = x->answer_left < 0 && x->have >= 4 ? memmem(x->in, x->have, "\r\n\r\n", 4) : NULL;
        if (head_end) {
            take(x, head_end + 4 - x->in);
            continue;
        }
        if (x->have == HEAD_MAX) return -1;
        /* One read for a small request: a second one would only find nothing. */
        if (turn && x->body_left == 0) return 0;
        int r = read_some(x);
        if (r <= 0) return r;
    }
}

static void admit(int listener) {
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct exchange *x = malloc(sizeof *x);
        if (!x) die("malloc");
        x->fd = fd;
        x->wants_out = 0;
        x->body_left = 0;
        x->answer_left = -1;
        x->have = x->head_len = x->head_sent = 0;
        watch(fd, x, EPOLLIN, EPOLL_CTL_ADD);
    }
}

static int origin(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    /* All of 127.0.0.0/8 and nothing else: any address, but of this device. */
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2) < 0) die("origin: bind to lo");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 4096) < 0) die("origin: listen");
    watch(fd, NULL, EPOLLIN, EPOLL_CTL_ADD);
    struct epoll_event events[BATCH];
    while (!ending) {
        int n = epoll_wait(ep, events, BATCH, -1);
        for (int i = 0; i < n; i++) {
            struct exchange *x = events[i].data.ptr;
            if (!x) {
                admit(fd);
            } else if (serve(x) < 0) {
                close(x->fd);
                free(x);
            }
        }
    }
    return 0;
}

/* --- The clients --- */

struct client {
    int fd, wants_out, has_head;
    size_t sent, have;      /* of the request's head; of the answer's head */
    long upload_left, body_left;
    double begun;
    char in[8192];
};

static char request[HEAD_MAX];
static size_t request_len;
static int port_to;
static long upload, failed, moved, done, wanted;
static uint32_t *times_us;
static size_t times_room;
static char why[128];       /* what was wrong with the first that failed */

static void note_time(double seconds) {
    if ((size_t)done == times_room) {
        times_room = times_room ? times_room * 2 : 1 << 16;
        times_us = realloc(times_us, times_room * sizeof *times_us);
        if (!times_us) die("realloc");
    }
    times_us[done++] = seconds * 1e6 < 4e9 ? seconds * 1e6 : 4e9;
}

/* Sends what it can of the request; -1: the connection is gone. */
static int send_some(struct client *c) {
    while (c->sent < request_len || c->upload_left > 0) {
        struct iovec parts[2] = {{request + c->sent, request_len - c->sent},
                                 {zeros, c->upload_left < BLOCK ? c->upload_left : BLOCK}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) return -1;
        if (n < 0) {
            if (!c->wants_out) watch(c->fd, c, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            c->wants_out = 1;
            return 0;
        }
        size_t of_head = (size_t)n < request_len - c->sent ? (size_t)n : request_len - c->sent;
        c->sent += of_head;
        c->upload_left -= n - of_head;
        moved += n - of_head;
    }
    if (c->wants_out) watch(c->fd, c, EPOLLIN, EPOLL_CTL_MOD);
    c->wants_out = 0;
    return 0;
}

static void ask(struct client *c) {
    c->sent = c->have = 0;
    c->has_head = 0;
    c->upload_left = upload;
    c->begun = now();
    send_some(c);
}

/* Connects. A connection that is refused counts as a failed request; after 10 s of that the program ends. */
static void join(struct client *c) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port_to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    for (int attempt = 0;; attempt++) {
        c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (c->fd < 0) die("socket");
        if (connect(c->fd, (struct sockaddr *)&to, sizeof to) == 0) break;
        if (attempt == 1000) die("connect");
        if (!*why) snprintf(why, sizeof why, "connect: %s", strerror(errno));
        failed++;
        close(c->fd);
        usleep(10000);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->wants_out = 0;
    watch(c->fd, c, EPOLLIN, EPOLL_CTL_ADD);
}

/* Reads what has come; 1: the answer is complete, 0: not yet, -1: the connection is gone or the answer is wrong. */
static int read_answer(struct client *c, int *closing) {
    if (!c->has_head) {
        ssize_t n = recv(c->fd, c->in + c->have, sizeof c->in - 1 - c->have, 0);
        if (n <= 0) {
            if (n < 0 && errno == EAGAIN) return 0;
            if (!*why) snprintf(why, sizeof why, "closed before an answer");
            return -1;
        }
        c->have += n;
        c->in[c->have] = 0;
        char *head_end = strstr(c->in, "\r\n\r\n");
        if (!head_end) return c->have == sizeof c->in - 1 ? -1 : 0;
        size_t rest = c->have - (head_end + 4 - c->in);
        head_end[2] = 0;
        *closing = strcasestr(c->in, "\r\nconnection: close") != NULL;
        c->body_left = number_of(c->in, "\r\ncontent-length:", 0) - (long)rest;
        moved += rest;
        c->has_head = 1;
        if (strncmp(c->in, "HTTP/1.1 200", 12)) {
            if (!*why) snprintf(why, sizeof why, "%.40s", c->in);
            why[strcspn(why, "\r\n\"")] = 0;
            return -1;
        }
    }
    while (c->body_left > 0) {
        ssize_t n = recv(c->fd, block, c->body_left < BLOCK ? c->body_left : BLOCK, 0);
        if (n < 0 && errno == EAGAIN) return 0;
        if (n <= 0) {
            if (!*why) snprintf(why, sizeof why, "closed within a body");
            return -1;
        }
        c->body_left -= n;
        moved += n;
        if (n < BLOCK / 4) break;
    }
    return c->body_left <= 0;
}

static void turn(struct client *c, uint32_t events, int gap_us) {
    int closing = 0, r = 0;
    if (events & EPOLLOUT) r = send_some(c);
    if (r >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) r = read_answer(c, &closing);
    if (r > 0) note_time(now() - c->begun);
    if (r < 0 && ++failed > FAILED_MAX) {
        fprintf(stderr, "too many requests failed: %s\n", why);
        exit(1);
    }
    if (r == 0) return;
    if (gap_us) usleep(gap_us);
    if (r < 0 || closing) {
        close(c->fd);
        join(c);
    }
    ask(c); /* if the connection is gone, the next turn finds out */
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void read_request(void) {
    ssize_t n;
    while ((n = read(0, request + request_len, sizeof request - request_len)) > 0) request_len += n;
}

static int load(char **args) {
    port_to = atoi(args[0]);
    int clients = atoi(args[1]), gap_us = atoi(args[5]);
    double seconds = atof(args[2]);
    wanted = atol(args[3]);
    upload = atol(args[4]);
    read_request();
    struct client *all = calloc(clients, sizeof *all);
    for (int i = 0; i < clients; i++) join(&all[i]);
    double begun = now();
    for (int i = 0; i < clients; i++) ask(&all[i]);
    struct epoll_event events[BATCH];
    double took = 0;
    while (!ending && (took = now() - begun) < seconds && (!wanted || done < wanted)) {
        int n = epoll_wait(ep, events, BATCH, 20);
        for (int i = 0; i < n; i++) turn(events[i].data.ptr, events[i].events, gap_us);
    }
    took = now() - begun;
    /* A request that is still under way has taken at least this long. */
    double oldest = 0;
    for (int i = 0; i < clients; i++) oldest = now() - all[i].begun > oldest ? now() - all[i].begun : oldest;
    qsort(times_us, done, sizeof *times_us, compare);
    printf("{\"requests\": %ld, \"failed\": %ld, \"bytes\": %ld, \"seconds\": %.4f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"most_ms\": %.3f, \"oldest_ms\": %.3f, \"why\": \"%s\"}\n",
           done, failed, moved, took, done ? times_us[done / 2] / 1e3 : 0,
           done ? times_us[done * 99 / 100] / 1e3 : 0, done ? times_us[done - 1] / 1e3 : 0, oldest * 1e3, why);
    return 0;
}

/* Each connection has one answer before the next one is opened, so that none is refused. */
static int hold(char **args) {
    port_to = atoi(args[0]);
    int clients = atoi(args[1]);
    read_request();
    struct client *all = calloc(clients, sizeof *all);
    for (int i = 0; i < clients; i++) {
        int closing = 0, r = 0;
        join(&all[i]);
        ask(&all[i]);
        for (double until = now() + 5; r == 0 && now() < until;) {
            struct epoll_event event;
            if (epoll_wait(ep, &event, 1, 100) == 1) r = read_answer(&all[i], &closing);
        }
        if (r <= 0) {
            fprintf(stderr, "client %d has no answer: %s\n", i, why);
            return 1;
        }
    }
    printf("held\n");
    fflush(stdout);
    while (!ending) usleep(20000);
    return 0;
}

/* Peak memory of a process includes that of the one that it was forked from. This one is small, Python is not. */
static int run(char *file, char **command) {
    double begun = now();
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        execvp(command[0], command);
        die(command[0]);
    }
    int status;
    struct rusage used;
    if (wait4(child, &status, 0, &used) < 0) die("wait4");
    double took = now() - begun;
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    FILE *to = fopen(file, "w");
    if (!to) die(file);
    fprintf(to, "{\"status\": %d, \"seconds\": %.6f, \"cpu_s\": %.6f, \"peak_mib\": %.3f}\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), took, cpu, used.ru_maxrss / 1024.0);
    return fclose(to) ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "run")) return run(argv[2], argv + 3);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end);
    signal(SIGINT, end);
    ep = epoll_create1(EPOLL_CLOEXEC);
    if (argc == 3 && !strcmp(argv[1], "origin")) return origin(atoi(argv[2]));
    if (argc == 8 && !strcmp(argv[1], "load")) return load(argv + 2);
    if (argc == 4 && !strcmp(argv[1], "hold")) return hold(argv + 2);
    fprintf(stderr, "usage: growth origin PORT | load PORT CLIENTS SECONDS REQUESTS UPLOAD GAP_US | hold PORT CLIENTS\n");
    return 2;
}
