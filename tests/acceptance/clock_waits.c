/* Waits six seconds in every way that the C library knows, and tells how long each took by its own clock. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static struct timespec in_six(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += 6;
    return t;
}
static void nothing(int number) { (void)number; }
/* Until the alarm rings: it is blocked outside of this wait, so that one that rang before is not missed. */
static void rung(void) {
    sigset_t none;
    sigemptyset(&none);
    sigsuspend(&none);
}

/* The clock is read before the moment is made: a pause between the two makes a wait longer, never shorter. */
#define TAKES_UNTIL(name, clock, action)                                                           \
    do {                                                                                           \
        double begun = now();                                                                      \
        until = in_six(clock);                                                                     \
        action;                                                                                    \
        printf("%s %.3f\n", name, now() - begun);                                                  \
        fflush(stdout);                                                                            \
    } while (0)

#define TAKES(name, action)                                                                        \
    do {                                                                                           \
        double begun = now();                                                                      \
        action;                                                                                    \
        printf("%s %.3f\n", name, now() - begun);                                                  \
        fflush(stdout);                                                                            \
    } while (0)

int main(void) {
    struct timespec six = {6, 0}, until;
    struct timeval six_tv = {6, 0};
    signal(SIGALRM, nothing);
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    TAKES("sleep", sleep(6));
    TAKES("usleep", usleep(6000000));
    TAKES("nanosleep", nanosleep(&six, NULL));
    TAKES("clock_nanosleep", clock_nanosleep(CLOCK_REALTIME, 0, &six, NULL));
    TAKES_UNTIL("clock_nanosleep-abs", CLOCK_MONOTONIC,
                clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
    TAKES_UNTIL("clock_nanosleep-wall", CLOCK_REALTIME,
                clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL));
    TAKES("thrd_sleep", thrd_sleep(&six, NULL));
    TAKES("poll", poll(NULL, 0, 6000));
    TAKES("ppoll", ppoll(NULL, 0, &six, NULL));
    TAKES("select", select(0, NULL, NULL, NULL, &six_tv));
    TAKES("pselect", pselect(0, NULL, NULL, NULL, &six, NULL));
    int queue = epoll_create1(0);
    struct epoll_event event;
    TAKES("epoll_wait", epoll_wait(queue, &event, 1, 6000));
    TAKES("epoll_pwait", epoll_pwait(queue, &event, 1, 6000, NULL));
    TAKES("epoll_pwait2", epoll_pwait2(queue, &event, 1, &six, NULL));
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    TAKES_UNTIL("sem_timedwait", CLOCK_REALTIME, sem_timedwait(&semaphore, &until));
    TAKES_UNTIL("sem_clockwait", CLOCK_MONOTONIC,
                sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until));
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wall = PTHREAD_COND_INITIALIZER, mono;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&mono, &attributes);
    pthread_mutex_lock(&mutex);
    TAKES_UNTIL("cond_timedwait", CLOCK_REALTIME, pthread_cond_timedwait(&wall, &mutex, &until));
    TAKES_UNTIL("cond_timedwait-mono", CLOCK_MONOTONIC,
                pthread_cond_timedwait(&mono, &mutex, &until));
    TAKES_UNTIL("cond_clockwait", CLOCK_MONOTONIC,
                pthread_cond_clockwait(&wall, &mutex, CLOCK_MONOTONIC, &until));
    TAKES_UNTIL("mutex_timedlock", CLOCK_REALTIME, pthread_mutex_timedlock(&mutex, &until));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    TAKES("sigtimedwait", sigtimedwait(&set, NULL, &six));
    TAKES("alarm", (alarm(6), rung()));
    struct itimerval once = {{0, 0}, {6, 0}};
    TAKES("setitimer", (setitimer(ITIMER_REAL, &once, NULL), rung()));
    struct sigevent wake = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    struct itimerspec in_a_while = {{0, 0}, {6, 0}};
    timer_create(CLOCK_REALTIME, &wake, &timer);
    TAKES("timer_settime", (timer_settime(timer, 0, &in_a_while, NULL), rung()));
    TAKES_UNTIL("timer_settime-abs", CLOCK_REALTIME,
                (in_a_while.it_value = until,
                 timer_settime(timer, TIMER_ABSTIME, &in_a_while, NULL), rung()));
    unsigned long long times;
    ssize_t got = 0;
    int file = timerfd_create(CLOCK_REALTIME, 0);
    in_a_while.it_value = six;
    TAKES("timerfd", (timerfd_settime(file, 0, &in_a_while, NULL), got += read(file, &times, 8)));
    TAKES_UNTIL("timerfd-abs", CLOCK_REALTIME,
                (in_a_while.it_value = until,
                 timerfd_settime(file, TFD_TIMER_ABSTIME, &in_a_while, NULL),
                 got += read(file, &times, 8)));
    int word = 0;
    TAKES("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 0, &six, NULL, 0));
    TAKES_UNTIL("futex-abs", CLOCK_MONOTONIC,
                syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &until, NULL, ~0u));
    return got != 16;
}
