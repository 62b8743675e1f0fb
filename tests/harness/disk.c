/* Faults of the disk, to be preloaded into a server. The file TEST_DISK has the mode: "slow MILLISECONDS" delays each fdatasync,
 * "fail" makes fdatasync fail, "full" makes writes to files fail for lack of space, after a first write of half the bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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

int fdatasync(int descriptor) {
    unsigned milliseconds = 0;
    const char *mode = read_mode(&milliseconds);
    if (strcmp(mode, "slow") == 0) usleep(milliseconds * 1000);
    if (strcmp(mode, "fail") == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}

static int has_room(int descriptor) {
    struct stat status;
    unsigned unused = 0;
    int is_file = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    return !is_file || strcmp(read_mode(&unused), "full") != 0;
}

static ssize_t no_room(void) {
    errno = ENOSPC;
    return -1;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    static int shortened;
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
    return has_room(descriptor) ? syscall(SYS_pwrite64, descriptor, bytes, count, offset) : no_room();
}
