/* Loaded before libc: while the file named by BROKEN_DISK exists, nothing reaches the disk any more.
 *
 * Syncs fail with EIO, and so do writes that are to be durable when they end, whether they are made
 * by a thread (pwrite) or by the kernel on its own (io_getevents tells of them).
 *
 * While the file named by KILLING_DISK exists, it has a number n: the process is killed (SIGKILL) as
 * soon as the n-th of these has succeeded, before its caller knows of it.
 *
 * While the file named by SLOW_DISK exists, none of these ends. With that variable the kernel writes
 * nothing on its own, so that a thread waits, as for a slow disk. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct event {
    unsigned long long data, block;
    long long result, second;
};

/* Waits until the disk is not slow any more. */
static void wait_for_disk(void) {
    const char *name = getenv("SLOW_DISK");
    while (name != NULL && access(name, F_OK) == 0) {
        usleep(10000);
    }
}

static int broken(void) {
    const char *name = getenv("BROKEN_DISK");
    return name != NULL && access(name, F_OK) == 0;
}

static int failed(void) {
    errno = EIO;
    return -1;
}

/* What was written is durable. */
static void succeeded(void) {
    const char *name = getenv("KILLING_DISK");
    FILE *counter = name == NULL ? NULL : fopen(name, "r+");
    int left = 0;
    if (counter == NULL) {
        return;
    }
    if (fscanf(counter, "%d", &left) == 1 && left <= 1) {
        kill(getpid(), SIGKILL);
    }
    rewind(counter);
    fprintf(counter, "%d\n", left - 1);
    fclose(counter);
}

static int noted(int answer) {
    if (answer == 0) {
        succeeded();
    }
    return answer;
}

int fdatasync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk();
    return broken() ? failed() : noted(next(file));
}

int fsync(int file) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_for_disk();
    return broken() ? failed() : noted(next(file));
}

static ssize_t write_at(const char *name, int file, const void *data, size_t size, off_t offset) {
    ssize_t (*next)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name);
    int durable = fcntl(file, F_GETFL) & O_DSYNC;
    if (durable) {
        wait_for_disk();
    }
    if (durable && broken()) {
        return failed();
    }
    ssize_t answer = next(file, data, size, offset);
    if (durable && answer > 0) {
        succeeded();
    }
    return answer;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) {
    return write_at("pwrite", file, data, size, offset);
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t offset) {
    return write_at("pwrite64", file, data, size, offset);
}

long syscall(long number, ...) {
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long given[6];
    va_list rest;
    va_start(rest, number);
    for (int at = 0; at < 6; at++) {
        given[at] = va_arg(rest, long);
    }
    va_end(rest);
    if (number == SYS_io_setup && getenv("SLOW_DISK") != NULL) {
        errno = ENOSYS;
        return -1;
    }
    long answer = next(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    if (number == SYS_io_getevents && answer > 0) {
        if (broken()) {
            ((struct event *)given[3])->result = -EIO;
        } else {
            succeeded();
        }
    }
    return answer;
}
