/* The clock of a process tree, bent: loaded with LD_PRELOAD, steered through one shared page.
 *
 * Insight: faked time is only usable when reading a clock and waiting for a clock agree. So every
 * libc function that waits gets its time limit translated back to real time, by the same page that
 * its clock readings went through. A reading counts only if the page did not change from before the
 * real clock was read until after; so a change happens at one instant for all processes, and a change
 * of rate never moves the monotonic clock backwards.
 *
 *     faked = faked_base + (real - real_base) * rate        one pair of bases for each kind of clock
 *
 * MUTINY_CLOCK names the page. When it names a directory, the page is the first of
 * $MUTINY_WORKER.page, <name of the working directory>.page, default.page that exists in it.
 * Without a page nothing is changed. CPU-time clocks are never changed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(long) == 8 && sizeof(time_t) == 8, "64-bit systems only");

#define MAGIC 0x31304b4c4359544dull /* "MTYCLK01" */
#define PAGE_BYTES 4096
#define SECOND 1000000000ll
#define PATIENCE 200000  /* looks at a page that is being changed; its writer may have died there */
#define FOREVER_S 4000000000ll /* limits beyond this mean "never": left alone, no overflow */

struct mapping {
    double rate;
    int64_t real_mono, faked_mono, real_wall, faked_wall;
    int64_t reserved[3];
};
struct page {
    uint64_t magic;
    _Atomic uint64_t generation; /* odd: a change is being written; its second bit names the mapping */
    uint64_t reserved[6];
    struct mapping mappings[2];
};
enum kind { UNTOUCHED, MONO, WALL };

static struct page unchanged = {.mappings = {{.rate = 1}, {.rate = 1}}};
static struct page *page = &unchanged;
static atomic_int ready;

#define REAL(name)                                                                                 \
    static __typeof__(&name) real_##name;                                                          \
    if (!real_##name) real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* --- finding the page -------------------------------------------------------------------------- */

static int open_page(const char *directory, const char *name) {
    char path[4096];
    if (!name || !*name || strchr(name, '/')) return -1;
    if (snprintf(path, sizeof path, "%s/%s.page", directory, name) >= (int)sizeof path) return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int find_page(const char *place) {
    struct stat found;
    if (stat(place, &found) != 0) return -1;
    if (!S_ISDIR(found.st_mode)) return open(place, O_RDONLY | O_CLOEXEC);
    int file = open_page(place, getenv("MUTINY_WORKER"));
    char here[4096];
    if (file < 0 && getcwd(here, sizeof here)) {
        char *name = strrchr(here, '/');
        file = open_page(place, name ? name + 1 : here);
    }
    return file < 0 ? open_page(place, "default") : file;
}

__attribute__((constructor)) static void set_up(void) {
    if (atomic_exchange(&ready, 1)) return;
    int saved = errno;
    const char *place = getenv("MUTINY_CLOCK");
    int file = place && *place ? find_page(place) : -1;
    if (file >= 0) {
        struct stat found;
        /* A shorter file would kill the process at the first look at a clock. */
        if (fstat(file, &found) == 0 && found.st_size >= PAGE_BYTES) {
            struct page *mapped = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, file, 0);
            if (mapped != MAP_FAILED && mapped->magic == MAGIC) page = mapped;
        }
        close(file);
    }
    errno = saved;
}

/* --- arithmetic -------------------------------------------------------------------------------- */

static enum kind kind_of(clockid_t clock) {
    switch (clock) {
    case CLOCK_REALTIME: case CLOCK_REALTIME_COARSE: case CLOCK_TAI: case CLOCK_REALTIME_ALARM:
        return WALL;
    case CLOCK_MONOTONIC: case CLOCK_MONOTONIC_RAW: case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: case CLOCK_BOOTTIME_ALARM:
        return MONO;
    default:
        return UNTOUCHED;
    }
}

static uint64_t generation(void) {
    return atomic_load_explicit(&page->generation, memory_order_acquire);
}

static const struct mapping *newest(void) {
    if (!ready) set_up();
    return &page->mappings[generation() >> 1 & 1]; /* during a change: still the old one */
}

static double rate(void) { return newest()->rate; }

static int64_t to_ns(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec from_ns(int64_t ns) {
    if (ns < 0) ns = 0;
    return (struct timespec){ns / SECOND, ns % SECOND};
}

static int64_t faked(const struct mapping *used, int64_t real, enum kind kind) {
    int64_t base = kind == WALL ? used->real_wall : used->real_mono;
    int64_t start = kind == WALL ? used->faked_wall : used->faked_mono;
    return used->rate == 1.0 ? start + (real - base)
                             : start + (int64_t)((double)(real - base) * used->rate);
}

static int64_t real_of(int64_t wanted, enum kind kind) {
    const struct mapping *used = newest();
    int64_t base = kind == WALL ? used->real_wall : used->real_mono;
    int64_t start = kind == WALL ? used->faked_wall : used->faked_mono;
    return used->rate == 1.0 ? base + (wanted - start)
                             : base + (int64_t)((double)(wanted - start) / used->rate) + 1;
}

/* Nonsense and "never" go through unchanged: the kernel answers them as it always does. */
static int is_ordinary(const struct timespec *time) {
    return time->tv_sec >= 0 && time->tv_sec < FOREVER_S && time->tv_nsec >= 0 &&
           time->tv_nsec < SECOND;
}

static int64_t shorter(int64_t ns) {
    double factor = rate();
    if (ns <= 0 || factor == 1.0) return ns;
    double real = (double)ns / factor;
    return real > 9e18 ? INT64_MAX : (int64_t)real + 1; /* never early, and never 0 */
}

static int64_t longer(int64_t ns) { return (int64_t)((double)ns * rate()); }

/* A span, scaled into `room`; NULL stays NULL. */
static const struct timespec *span(const struct timespec *time, struct timespec *room) {
    if (!time || !is_ordinary(time)) return time;
    *room = from_ns(shorter(to_ns(time)));
    return room;
}

/* A moment, translated into `room`; NULL stays NULL. */
static const struct timespec *moment(const struct timespec *time, enum kind kind,
                                     struct timespec *room) {
    if (!time || kind == UNTOUCHED || !is_ordinary(time)) return time;
    *room = from_ns(real_of(to_ns(time), kind));
    return room;
}

static void scale_back(struct timespec *left) {
    if (left) *left = from_ns(longer(to_ns(left)));
}

static struct timeval shorter_timeval(struct timeval time) {
    if (time.tv_sec < 0 || time.tv_usec < 0 || time.tv_sec > FOREVER_S) return time;
    int64_t us = (shorter(time.tv_sec * SECOND + time.tv_usec * 1000ll) + 999) / 1000;
    return (struct timeval){us / 1000000, us % 1000000};
}

static struct timeval longer_timeval(struct timeval time) {
    int64_t us = longer(time.tv_sec * SECOND + time.tv_usec * 1000ll) / 1000;
    return (struct timeval){us / 1000000, us % 1000000};
}

/* --- reading clocks ---------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *out) {
    REAL(clock_gettime);
    if (!ready) set_up();
    enum kind kind = kind_of(clock);
    if (kind == UNTOUCHED || page == &unchanged) return real_clock_gettime(clock, out);
    for (int looks = 0;; looks++) {
        uint64_t before = generation();
        if (before & 1 && looks < PATIENCE) {
            sched_yield();
            continue;
        }
        int result = real_clock_gettime(clock, out);
        if (result != 0) return result;
        int64_t seen = faked(&page->mappings[before >> 1 & 1], to_ns(out), kind);
        atomic_thread_fence(memory_order_acquire);
        if (generation() == before || looks > PATIENCE) {
            *out = from_ns(seen);
            return 0;
        }
    }
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    if (zone) memset(zone, 0, sizeof(struct timezone));
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *out, int base) {
    if (base != TIME_UTC) return 0;
    return clock_gettime(CLOCK_REALTIME, out) == 0 ? base : 0;
}

/* --- sleeping ---------------------------------------------------------------------------------- */

int nanosleep(const struct timespec *wanted, struct timespec *left) {
    REAL(nanosleep);
    struct timespec room;
    int result = real_nanosleep(span(wanted, &room), left);
    if (result != 0 && errno == EINTR) scale_back(left);
    return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                    struct timespec *left) {
    REAL(clock_nanosleep);
    struct timespec room;
    if (kind_of(clock) == UNTOUCHED) return real_clock_nanosleep(clock, flags, wanted, left);
    if (flags & TIMER_ABSTIME)
        return real_clock_nanosleep(clock, flags, moment(wanted, kind_of(clock), &room), left);
    int result = real_clock_nanosleep(clock, flags, span(wanted, &room), left);
    if (result == EINTR) scale_back(left);
    return result;
}

unsigned sleep(unsigned seconds) {
    struct timespec wanted = {seconds, 0}, left = {0, 0};
    int saved = errno;
    if (nanosleep(&wanted, &left) == 0) {
        errno = saved;
        return 0;
    }
    return (unsigned)(left.tv_sec + (left.tv_nsec >= SECOND / 2));
}

int usleep(useconds_t us) {
    struct timespec wanted = {us / 1000000, (us % 1000000) * 1000};
    return nanosleep(&wanted, NULL);
}

int thrd_sleep(const struct timespec *wanted, struct timespec *left) {
    int result = clock_nanosleep(CLOCK_REALTIME, 0, wanted, left);
    return result == 0 ? 0 : result == EINTR ? -1 : -2;
}

/* --- waiting for descriptors ------------------------------------------------------------------- */

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
    REAL(ppoll);
    struct timespec room;
    return real_ppoll(files, count, span(limit, &room), mask);
}

int poll(struct pollfd *files, nfds_t count, int ms) {
    struct timespec limit = from_ns(ms * 1000000ll);
    return ppoll(files, count, ms < 0 ? NULL : &limit, NULL);
}

/* What programs built with _FORTIFY_SOURCE call instead. */
int __poll_chk(struct pollfd *files, nfds_t count, int ms, size_t room) {
    if (room / sizeof *files < count) abort();
    return poll(files, count, ms);
}

int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *limit,
                const sigset_t *mask, size_t room) {
    if (room / sizeof *files < count) abort();
    return ppoll(files, count, limit, mask);
}

int select(int count, fd_set *restrict reading, fd_set *restrict writing,
           fd_set *restrict exceptional, struct timeval *restrict limit) {
    REAL(select);
    if (!limit) return real_select(count, reading, writing, exceptional, NULL);
    struct timeval scaled = shorter_timeval(*limit);
    int result = real_select(count, reading, writing, exceptional, &scaled);
    *limit = longer_timeval(scaled); /* Linux tells what is left */
    return result;
}

int pselect(int count, fd_set *restrict reading, fd_set *restrict writing,
            fd_set *restrict exceptional, const struct timespec *restrict limit,
            const sigset_t *restrict mask) {
    REAL(pselect);
    struct timespec room;
    return real_pselect(count, reading, writing, exceptional, span(limit, &room), mask);
}

static long real_call(long number, long a, long b, long c, long d, long e, long f) {
    static long (*call)(long, ...);
    if (!call) call = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return call(number, a, b, c, d, e, f);
}

static int wait_for_events(int file, struct epoll_event *events, int room_for,
                           const struct timespec *limit, const sigset_t *mask) {
    static atomic_int too_old;
    static int (*fine)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
    struct timespec room;
    limit = span(limit, &room);
    if (!too_old) { /* nanoseconds matter: at x60 a millisecond is a long time */
        if (!fine) fine = (__typeof__(fine))dlsym(RTLD_NEXT, "epoll_pwait2");
        int result = fine ? fine(file, events, room_for, limit, mask)
                          : (int)real_call(441, file, (long)events, room_for, (long)limit,
                                           (long)mask, 8);
        if (result >= 0 || errno != ENOSYS) return result;
        too_old = 1;
    }
    REAL(epoll_pwait);
    int64_t ms = limit ? (to_ns(limit) + 999999) / 1000000 : -1;
    return real_epoll_pwait(file, events, room_for, ms > INT32_MAX ? INT32_MAX : (int)ms, mask);
}

int epoll_pwait2(int file, struct epoll_event *events, int room_for, const struct timespec *limit,
                 const sigset_t *mask) {
    return wait_for_events(file, events, room_for, limit, mask);
}

int epoll_pwait(int file, struct epoll_event *events, int room_for, int ms, const sigset_t *mask) {
    struct timespec limit = from_ns(ms * 1000000ll);
    return wait_for_events(file, events, room_for, ms < 0 ? NULL : &limit, mask);
}

int epoll_wait(int file, struct epoll_event *events, int room_for, int ms) {
    return epoll_pwait(file, events, room_for, ms, NULL);
}

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                 const struct timespec *restrict limit) {
    REAL(sigtimedwait);
    struct timespec room;
    return real_sigtimedwait(set, info, span(limit, &room));
}

/* --- waiting for other threads ----------------------------------------------------------------- */

int sem_timedwait(sem_t *restrict it, const struct timespec *restrict until) {
    REAL(sem_timedwait);
    struct timespec room;
    return real_sem_timedwait(it, moment(until, WALL, &room));
}

int sem_clockwait(sem_t *restrict it, clockid_t clock, const struct timespec *restrict until) {
    REAL(sem_clockwait);
    struct timespec room;
    return real_sem_clockwait(it, clock, moment(until, kind_of(clock), &room));
}

int pthread_cond_timedwait(pthread_cond_t *restrict it, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    REAL(pthread_cond_timedwait);
    struct timespec room;
    /* glibc keeps the clock of a condition variable here. */
    enum kind kind = it->__data.__wrefs & 2 ? MONO : WALL;
    return real_pthread_cond_timedwait(it, mutex, moment(until, kind, &room));
}

int cnd_timedwait(cnd_t *restrict it, mtx_t *restrict mutex, const struct timespec *restrict until) {
    REAL(cnd_timedwait);
    struct timespec room;
    return real_cnd_timedwait(it, mutex, moment(until, WALL, &room));
}

int pthread_cond_clockwait(pthread_cond_t *restrict it, pthread_mutex_t *restrict mutex,
                           clockid_t clock, const struct timespec *restrict until) {
    REAL(pthread_cond_clockwait);
    struct timespec room;
    return real_pthread_cond_clockwait(it, mutex, clock, moment(until, kind_of(clock), &room));
}

#define TIMED(name, type)                                                                          \
    int name(type it, const struct timespec *restrict until) {                                     \
        REAL(name);                                                                                \
        struct timespec room;                                                                      \
        return real_##name(it, moment(until, WALL, &room));                                        \
    }
#define CLOCKED(name, type)                                                                        \
    int name(type it, clockid_t clock, const struct timespec *restrict until) {                    \
        REAL(name);                                                                                \
        struct timespec room;                                                                      \
        return real_##name(it, clock, moment(until, kind_of(clock), &room));                       \
    }
TIMED(mtx_timedlock, mtx_t *restrict)
TIMED(pthread_mutex_timedlock, pthread_mutex_t *restrict)
TIMED(pthread_rwlock_timedrdlock, pthread_rwlock_t *restrict)
TIMED(pthread_rwlock_timedwrlock, pthread_rwlock_t *restrict)
CLOCKED(pthread_mutex_clocklock, pthread_mutex_t *restrict)
CLOCKED(pthread_rwlock_clockrdlock, pthread_rwlock_t *restrict)
CLOCKED(pthread_rwlock_clockwrlock, pthread_rwlock_t *restrict)

int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until) {
    REAL(pthread_timedjoin_np);
    struct timespec room;
    return real_pthread_timedjoin_np(thread, result, moment(until, WALL, &room));
}

ssize_t mq_timedreceive(mqd_t queue, char *restrict text, size_t size, unsigned *restrict priority,
                        const struct timespec *restrict until) {
    REAL(mq_timedreceive);
    struct timespec room;
    return real_mq_timedreceive(queue, text, size, priority, moment(until, WALL, &room));
}

int mq_timedsend(mqd_t queue, const char *text, size_t size, unsigned priority,
                 const struct timespec *until) {
    REAL(mq_timedsend);
    struct timespec room;
    return real_mq_timedsend(queue, text, size, priority, moment(until, WALL, &room));
}

/* --- timers ------------------------------------------------------------------------------------ */

static int is_zero(const struct timespec *time) { return time->tv_sec == 0 && time->tv_nsec == 0; }

static struct itimerspec scaled_timer(const struct itimerspec *wanted, int absolute,
                                      enum kind kind) {
    struct itimerspec scaled = *wanted;
    struct timespec room;
    scaled.it_interval = *span(&wanted->it_interval, &room);
    if (absolute && !is_zero(&wanted->it_value)) {
        scaled.it_value = *moment(&wanted->it_value, kind, &room);
        if (is_zero(&scaled.it_value)) scaled.it_value.tv_nsec = 1; /* 0 would disarm it */
    } else if (!absolute) {
        scaled.it_value = *span(&wanted->it_value, &room);
    }
    return scaled;
}

static void scale_timer_back(struct itimerspec *found) {
    if (!found) return;
    scale_back(&found->it_interval);
    scale_back(&found->it_value);
}

static enum kind kind_of_timerfd(int file) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file);
    int info = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = info < 0 ? -1 : read(info, text, sizeof text - 1);
    if (info >= 0) close(info);
    text[size < 0 ? 0 : size] = 0;
    const char *found = strstr(text, "clockid:");
    return found ? kind_of((clockid_t)strtol(found + 8, NULL, 10)) : MONO;
}

int timerfd_settime(int file, int flags, const struct itimerspec *wanted,
                    struct itimerspec *before) {
    REAL(timerfd_settime);
    if (!wanted) return real_timerfd_settime(file, flags, wanted, before);
    int absolute = flags & TFD_TIMER_ABSTIME;
    struct itimerspec scaled =
        scaled_timer(wanted, absolute, absolute ? kind_of_timerfd(file) : MONO);
    int result = real_timerfd_settime(file, flags, &scaled, before);
    if (result == 0) scale_timer_back(before);
    return result;
}

int timerfd_gettime(int file, struct itimerspec *out) {
    REAL(timerfd_gettime);
    int result = real_timerfd_gettime(file, out);
    if (result == 0) scale_timer_back(out);
    return result;
}

/* POSIX timers do not tell their clock, so it is remembered; 0 is a free place. */
#define TIMERS 256
static struct { _Atomic uintptr_t id_plus_1; clockid_t clock; } timers[TIMERS];

static clockid_t clock_of_timer(timer_t timer) {
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].id_plus_1 == (uintptr_t)timer + 1) return timers[i].clock;
    return CLOCK_MONOTONIC;
}

int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict out) {
    REAL(timer_create);
    int result = real_timer_create(clock, event, out);
    for (int i = 0; result == 0 && i < TIMERS; i++) {
        uintptr_t empty = 0;
        if (atomic_compare_exchange_strong(&timers[i].id_plus_1, &empty, (uintptr_t)*out + 1)) {
            timers[i].clock = clock;
            break;
        }
    }
    return result;
}

int timer_delete(timer_t timer) {
    REAL(timer_delete);
    for (int i = 0; i < TIMERS; i++)
        if (timers[i].id_plus_1 == (uintptr_t)timer + 1) timers[i].id_plus_1 = 0;
    return real_timer_delete(timer);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict wanted,
                  struct itimerspec *restrict before) {
    REAL(timer_settime);
    enum kind kind = kind_of(clock_of_timer(timer));
    if (!wanted || kind == UNTOUCHED) return real_timer_settime(timer, flags, wanted, before);
    struct itimerspec scaled = scaled_timer(wanted, flags & TIMER_ABSTIME, kind);
    int result = real_timer_settime(timer, flags, &scaled, before);
    if (result == 0) scale_timer_back(before);
    return result;
}

int timer_gettime(timer_t timer, struct itimerspec *out) {
    REAL(timer_gettime);
    int result = real_timer_gettime(timer, out);
    if (result == 0 && kind_of(clock_of_timer(timer)) != UNTOUCHED) scale_timer_back(out);
    return result;
}

int setitimer(__itimer_which_t which, const struct itimerval *restrict wanted,
              struct itimerval *restrict before) {
    REAL(setitimer);
    if (which != ITIMER_REAL || !wanted) return real_setitimer(which, wanted, before);
    struct itimerval scaled = {shorter_timeval(wanted->it_interval),
                               shorter_timeval(wanted->it_value)};
    int result = real_setitimer(which, &scaled, before);
    if (result == 0 && before)
        *before = (struct itimerval){longer_timeval(before->it_interval),
                                     longer_timeval(before->it_value)};
    return result;
}

int getitimer(__itimer_which_t which, struct itimerval *out) {
    REAL(getitimer);
    int result = real_getitimer(which, out);
    if (result == 0 && which == ITIMER_REAL)
        *out = (struct itimerval){longer_timeval(out->it_interval),
                                  longer_timeval(out->it_value)};
    return result;
}

unsigned alarm(unsigned seconds) {
    struct itimerval wanted = {{0, 0}, {seconds, 0}}, before = {{0, 0}, {0, 0}};
    if (setitimer(ITIMER_REAL, &wanted, &before) != 0) return 0;
    return (unsigned)(before.it_value.tv_sec + (before.it_value.tv_usec > 0));
}

/* --- calls past the functions above ------------------------------------------------------------ */

static long timed_futex(long *a) {
    struct timespec room;
    const struct timespec *limit = (const struct timespec *)a[3];
    int command = (int)a[1] & FUTEX_CMD_MASK;
    enum kind kind = a[1] & FUTEX_CLOCK_REALTIME ? WALL : MONO;
    if (command == FUTEX_WAIT) a[3] = (long)span(limit, &room);
    else if (command == FUTEX_LOCK_PI) a[3] = (long)moment(limit, WALL, &room);
    else if (command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI || command == 13)
        a[3] = (long)moment(limit, kind, &room);
    return real_call(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long syscall(long number, ...) {
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    switch (number) {
    case SYS_futex:
        return timed_futex(a);
    case SYS_clock_gettime:
        return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
    case SYS_gettimeofday:
        return gettimeofday((struct timeval *)a[0], (void *)a[1]);
    case SYS_nanosleep:
        return nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
    case SYS_clock_nanosleep: {
        int result = clock_nanosleep((clockid_t)a[0], (int)a[1], (const struct timespec *)a[2],
                                     (struct timespec *)a[3]);
        if (result == 0) return 0;
        errno = result;
        return -1;
    }
    case 441: /* epoll_pwait2 */
        return wait_for_events((int)a[0], (struct epoll_event *)a[1], (int)a[2],
                               (const struct timespec *)a[3], (const sigset_t *)a[4]);
    default:
        return real_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}
