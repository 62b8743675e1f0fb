/* The disk as a test wants it: preloaded into a server, it makes each fdatasync as slow as a file says, or fail, or leaves
 * no room for files: of what is written half fits the first time, then nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *said(unsigned *number) {
    static __thread char what[16];
    const char *path = getenv("TEST_DISK");
    char text[32] = "";
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) : -1;
    if (file >= 0) {
        ssize_t length = syscall(SYS_read, file, text, sizeof text - 1);
        text[length > 0 ? length : 0] = 0;
        syscall(SYS_close, file);
    }
    what[0] = 0;
    sscanf(text, "%15s %u", what, number);
    return what;
}

int fdatasync(int descriptor) {
    unsigned milliseconds = 0;
    const char *what = said(&milliseconds);
    if (strcmp(what, "slow") == 0) usleep(milliseconds * 1000);
    if (strcmp(what, "fail") == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}

static int has_room(int descriptor) {
    struct stat status;
    unsigned unused = 0;
    int kind = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    return !kind || strcmp(said(&unused), "full") != 0;
}

static ssize_t no_room(void) {
    errno = ENOSPC;
    return -1;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    static int halved;
    int room = has_room(descriptor);
    if (room) {
        halved = 0;
    } else if (halved || count < 2) {
        return no_room();
    } else {
        halved = 1;
        count /= 2;
    }
    return syscall(SYS_write, descriptor, bytes, count);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return has_room(descriptor) ? syscall(SYS_pwrite64, descriptor, bytes, count, offset) : no_room();
}
