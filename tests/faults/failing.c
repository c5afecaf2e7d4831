/* Makes one write or sync below a folder fail. For LD_PRELOAD.

   TAMIS_FAIL_BELOW   the folder
   TAMIS_FAIL_AT      which operation fails, from 1 on; 0: none
   TAMIS_FAIL_ERROR   the number of the error
   TAMIS_FAIL_COUNT   a file to which a byte is added for each operation */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long done;

static int fails(int file)
{
    const char *folder = getenv("TAMIS_FAIL_BELOW"), *at = getenv("TAMIS_FAIL_AT");
    const char *error = getenv("TAMIS_FAIL_ERROR"), *count = getenv("TAMIS_FAIL_COUNT");
    char link[64], path[4096];
    if (!folder || !at) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strncmp(path, folder, strlen(folder))) return 0;
    long number = __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
    if (count) {
        int out = syscall(SYS_openat, AT_FDCWD, count, O_WRONLY | O_CREAT | O_APPEND, 0600);
        syscall(SYS_write, out, ".", 1);
        syscall(SYS_close, out);
    }
    if (number != atol(at)) return 0;
    errno = error ? atoi(error) : EIO;
    return 1;
}

ssize_t write(int f, const void *d, size_t n) { return fails(f) ? -1 : REAL(write)(f, d, n); }
ssize_t pwrite(int f, const void *d, size_t n, off_t o) { return fails(f) ? -1 : REAL(pwrite)(f, d, n, o); }
ssize_t pwrite64(int f, const void *d, size_t n, off64_t o) { return fails(f) ? -1 : REAL(pwrite64)(f, d, n, o); }
ssize_t writev(int f, const struct iovec *v, int n) { return fails(f) ? -1 : REAL(writev)(f, v, n); }
int fsync(int f) { return fails(f) ? -1 : REAL(fsync)(f); }
int fdatasync(int f) { return fails(f) ? -1 : REAL(fdatasync)(f); }
int ftruncate(int f, off_t n) { return fails(f) ? -1 : REAL(ftruncate)(f, n); }
int ftruncate64(int f, off64_t n) { return fails(f) ? -1 : REAL(ftruncate64)(f, n); }
