/* The disk as a test wants it: preloaded into a server, it makes each fdatasync as slow as a file says, or fail. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int descriptor) {
    const char *path = getenv("TEST_DISK");
    FILE *file = path ? fopen(path, "r") : NULL;
    char what[16] = "";
    unsigned milliseconds = 0;
    if (file) {
        if (fscanf(file, "%15s %u", what, &milliseconds) < 1) what[0] = 0;
        fclose(file);
    }
    if (strcmp(what, "slow") == 0) usleep(milliseconds * 1000);
    if (strcmp(what, "fail") == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, descriptor);
}
