/* Faults of the disk, to be preloaded into a server. The file TEST_DISK has the mode: "slow MILLISECONDS" delays each fdatasync,
 * "fail" makes fdatasync fail, "full" makes writes to files fail for lack of space, after a first write of half the bytes.
 * Of the calls that change files, "kill N" kills the process at the Nth, "break N" makes the Nth fail, "fill N" the Nth and all after
 * it; "count" does nothing. At the end of the process, the number of these calls is in the file TEST_DISK with ".calls". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *read_mode(unsigned *number) {
    static __thread char mode[16];
    const char *path = getenv("TEST_DISK");
    char text[32] = "";
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) : -1;
    if (file >= 0) {
        ssize_t length = syscall(SYS_read, file, text, sizeof text - 1);
        text[length > 0 ? length : 0] = 0;
        syscall(SYS_close, file);
    }
    mode[0] = 0;
    sscanf(text, "%15s %u", mode, number);
    return mode;
}

static atomic_uint calls;

/* Counts a call that changes files; returns whether it fails, with this error. */
static int breaks(int error) {
    unsigned at = 0, now = atomic_fetch_add(&calls, 1) + 1;
    const char *mode = read_mode(&at);
    if (strcmp(mode, "kill") == 0 && now == at) kill(getpid(), SIGKILL);
    if ((strcmp(mode, "break") != 0 || now != at) && (strcmp(mode, "fill") != 0 || now < at)) return 0;
    errno = error;
    return 1;
}

__attribute__((destructor)) static void say_calls(void) {
    char path[PATH_MAX];
    const char *mode = getenv("TEST_DISK");
    if (!mode || (size_t)snprintf(path, sizeof path, "%s.calls", mode) >= sizeof path) return;
    FILE *file = fopen(path, "w");
    if (!file) return;
    fprintf(file, "%u", atomic_load(&calls));
    fclose(file);
}

int fsync(int descriptor) { return breaks(EIO) ? -1 : (int)syscall(SYS_fsync, descriptor); }

int ftruncate64(int descriptor, off_t length) { return breaks(ENOSPC) ? -1 : (int)syscall(SYS_ftruncate, descriptor, length); }

int rename(const char *from, const char *to) {
    return breaks(ENOSPC) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) { return breaks(EIO) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }

int unlinkat(int directory, const char *path, int flags) { return breaks(EIO) ? -1 : (int)syscall(SYS_unlinkat, directory, path, flags); }

int mkdir(const char *path, mode_t mode) { return breaks(ENOSPC) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode); }

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
        if (breaks(ENOSPC)) return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fdatasync(int descriptor) {
    unsigned milliseconds = 0;
    if (breaks(EIO)) return -1;
    const char *mode = read_mode(&milliseconds);
    if (strcmp(mode, "slow") == 0) usleep(milliseconds * 1000);
    if (strcmp(mode, "fail") == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}

static int is_file(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

static int has_room(int descriptor) {
    unsigned unused = 0;
    return !is_file(descriptor) || strcmp(read_mode(&unused), "full") != 0;
}

static ssize_t no_room(void) {
    errno = ENOSPC;
    return -1;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    static int shortened;
    if (is_file(descriptor) && breaks(ENOSPC)) return -1;
    int fits = has_room(descriptor);
    if (fits) {
        shortened = 0;
    } else if (shortened || count < 2) {
        return no_room();
    } else {
        shortened = 1;
        count /= 2;
    }
    return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    if (is_file(descriptor) && breaks(ENOSPC)) return -1;
    return has_room(descriptor) ? syscall(SYS_pwrite64, descriptor, bytes, count, offset) : no_room();
}
