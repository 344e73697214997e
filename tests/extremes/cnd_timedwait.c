/* cnd_timedwait until a time of the fake clock, even if that jumps meanwhile. libfaketime lacks it, and librdkafka waits
 * with it: under a clock that is an hour ahead, each of its waits would take an hour. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define SLICE (SECOND / 20)

typedef int (*wait_function)(cnd_t *, mtx_t *, const struct timespec *);

static long long nanoseconds(struct timespec at) { return at.tv_sec * SECOND + at.tv_nsec; }

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    wait_function wait = (wait_function)dlsym(RTLD_NEXT, "cnd_timedwait");
    for (;;) {
        struct timespec fake, true_time;
        clock_gettime(CLOCK_REALTIME, &fake);
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &true_time);
        long long left = nanoseconds(*until) - nanoseconds(fake);
        long long end = nanoseconds(true_time) + (left < SLICE ? left : SLICE);
        struct timespec slice = {end / SECOND, end % SECOND};
        int result = wait(condition, mutex, &slice);
        if (result != thrd_timedout || left <= SLICE)
            return result;
    }
}
