/* Records what a process does to the files below a folder, so that a power cut can be simulated.

   Loaded with LD_PRELOAD, into Python and the JVM alike. TAMIS_RECORDED is the folder, TAMIS_RECORD
   the file of records. A record is a line of JSON-free text:

       operation TAB path TAB other path TAB offset TAB length NEWLINE, then `length` bytes.

   Records of several processes are in the order in which the operations ended. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static size_t length;
static char record[PATH_MAX];

__attribute__((constructor)) static void begin(void)
{
    const char *place = getenv("TAMIS_RECORDED"), *file = getenv("TAMIS_RECORD");
    if (place && file && realpath(place, folder)) {
        length = strlen(folder);
        snprintf(record, sizeof record, "%s", file);
    }
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int below(const char *path)
{
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

/* The path of a name, as the operation sees it, without following a link at its end. */
static int resolve(int at, const char *name, char *out)
{
    char joined[2 * PATH_MAX], parent[PATH_MAX];
    if (!length || !name)
        return 0;
    if (name[0] == '/')
        snprintf(joined, sizeof joined, "%s", name);
    else {
        char here[PATH_MAX];
        if (at == AT_FDCWD) {
            if (!getcwd(here, sizeof here))
                return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t size = readlink(link, here, sizeof here - 1);
            if (size < 0)
                return 0;
            here[size] = 0;
        }
        snprintf(joined, sizeof joined, "%s/%s", here, name);
    }
    size_t size = strlen(joined);
    while (size > 1 && joined[size - 1] == '/')
        joined[--size] = 0;
    char *slash = strrchr(joined, '/');
    if (!slash)
        return 0;
    *slash = 0;
    if (!realpath(joined[0] ? joined : "/", parent))
        return 0;
    snprintf(out, PATH_MAX, "%s/%s", parent[1] ? parent : "", slash + 1);
    return below(out);
}

static int path_of(int file, char *out)
{
    char link[64];
    if (!length)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, out, PATH_MAX - 1);
    if (size < 0)
        return 0;
    out[size] = 0;
    return below(out);
}

static void note(const char *operation, const char *path, const char *other, long long offset,
                 const void *data, size_t size)
{
    int kept = errno;
    int out = REAL(open)(record, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (out >= 0) {
        char line[3 * PATH_MAX];
        int written = snprintf(line, sizeof line, "%s\t%s\t%s\t%lld\t%zu\n", operation, path,
                               other ? other : "", offset, size);
        struct iovec parts[2] = {{line, (size_t)written}, {(void *)data, size}};
        flock(out, LOCK_EX);
        ssize_t done = REAL(writev)(out, parts, size ? 2 : 1);
        if (done != written + (ssize_t)size)
            abort();
        REAL(close)(out);
    }
    errno = kept;
}

static void opened(int file, const char *path, int flags, int existed)
{
    if (file < 0)
        return;
    if (!existed)
        note("create", path, 0, 0, 0, 0);
    else if (flags & O_TRUNC)
        note("truncate", path, 0, 0, 0, 0);
}

static int do_open(int at, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    struct stat stat_;
    int mine = (flags & (O_CREAT | O_TRUNC)) && resolve(at, name, path);
    int existed = mine && !lstat(path, &stat_);
    int file = REAL(openat)(at, name, flags, mode);
    if (mine)
        opened(file, path, flags, existed);
    return file;
}

#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode = va_arg(more, mode_t);                                                               \
        va_end(more);                                                                              \
    }

int open(const char *name, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return do_open(AT_FDCWD, name, flags, mode); }
int openat(int at, const char *name, int flags, ...) { MODE(flags)
    char path[PATH_MAX];
    struct stat stat_;
    int mine = (flags & (O_CREAT | O_TRUNC)) && resolve(at, name, path);
    int existed = mine && !lstat(path, &stat_);
    static int (*real)(int, const char *, int, ...);
    if (!real)
        real = dlsym(RTLD_NEXT, "openat");
    int file = real(at, name, flags, mode);
    if (mine)
        opened(file, path, flags, existed);
    return file;
}
int openat64(int at, const char *name, int flags, ...) { MODE(flags) return do_open(at, name, flags, mode); }
int creat(const char *name, mode_t mode) { return do_open(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char *name, mode_t mode) { return creat(name, mode); }

static long long position(int file, const char *path)
{
    struct stat stat_;
    if (fcntl(file, F_GETFL) & O_APPEND)
        return stat(path, &stat_) ? 0 : stat_.st_size;
    return lseek(file, 0, SEEK_CUR);
}

ssize_t write(int file, const void *data, size_t size)
{
    char path[PATH_MAX];
    int mine = path_of(file, path);
    long long offset = mine ? position(file, path) : 0;
    ssize_t done = REAL(write)(file, data, size);
    if (mine && done > 0)
        note("write", path, 0, offset, data, (size_t)done);
    return done;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
    char path[PATH_MAX];
    ssize_t done = REAL(pwrite)(file, data, size, offset);
    if (done > 0 && path_of(file, path))
        note("write", path, 0, offset, data, (size_t)done);
    return done;
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset)
{
    return pwrite(file, data, size, offset);
}

ssize_t writev(int file, const struct iovec *parts, int many)
{
    char path[PATH_MAX];
    if (!path_of(file, path))
        return REAL(writev)(file, parts, many);
    ssize_t total = 0;
    for (int i = 0; i < many; i++) {
        ssize_t done = write(file, parts[i].iov_base, parts[i].iov_len);
        if (done < 0)
            return total ? total : done;
        total += done;
        if ((size_t)done < parts[i].iov_len)
            break;
    }
    return total;
}

static int synced(int file, int done)
{
    char path[PATH_MAX];
    if (!done && path_of(file, path))
        note("sync", path, 0, 0, 0, 0);
    return done;
}
int fsync(int file) { return synced(file, REAL(fsync)(file)); }
int fdatasync(int file) { return synced(file, REAL(fdatasync)(file)); }

int ftruncate(int file, off_t size)
{
    char path[PATH_MAX];
    int done = REAL(ftruncate)(file, size);
    if (!done && path_of(file, path))
        note("truncate", path, 0, size, 0, 0);
    return done;
}
int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int truncate(const char *name, off_t size)
{
    char path[PATH_MAX];
    int done = REAL(truncate)(name, size);
    if (!done && resolve(AT_FDCWD, name, path))
        note("truncate", path, 0, size, 0, 0);
    return done;
}
int truncate64(const char *name, off64_t size) { return truncate(name, size); }

static int moved(const char *operation, int from, const char *old, int to, const char *new,
                 int (*act)(int, const char *, int, const char *))
{
    char one[PATH_MAX], two[PATH_MAX];
    int mine = resolve(from, old, one), also = resolve(to, new, two);
    int done = act(from, old, to, new);
    if (!done && (mine || also))
        note(operation, one, two, 0, 0, 0);
    return done;
}
static int act_rename(int f, const char *a, int t, const char *b) { return REAL(renameat)(f, a, t, b); }
static int act_link(int f, const char *a, int t, const char *b) { return REAL(linkat)(f, a, t, b, 0); }
static int act_exchange(int f, const char *a, int t, const char *b)
{
    static int (*real)(int, const char *, int, const char *, unsigned);
    if (!real)
        real = dlsym(RTLD_NEXT, "renameat2");
    return real(f, a, t, b, 2);
}
int rename(const char *a, const char *b) { return moved("rename", AT_FDCWD, a, AT_FDCWD, b, act_rename); }
int renameat(int f, const char *a, int t, const char *b) { return moved("rename", f, a, t, b, act_rename); }
int renameat2(int f, const char *a, int t, const char *b, unsigned flags)
{
    return flags == 2 ? moved("exchange", f, a, t, b, act_exchange)
                      : moved("rename", f, a, t, b, act_rename);
}
int link(const char *a, const char *b) { return moved("link", AT_FDCWD, a, AT_FDCWD, b, act_link); }
int linkat(int f, const char *a, int t, const char *b, int flags)
{
    (void)flags;
    return moved("link", f, a, t, b, act_link);
}

static int removed(int at, const char *name, int flags)
{
    char path[PATH_MAX];
    int mine = resolve(at, name, path);
    int done = REAL(unlinkat)(at, name, flags);
    if (!done && mine)
        note("remove", path, 0, 0, 0, 0);
    return done;
}
int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }
int remove(const char *name) { int done = removed(AT_FDCWD, name, 0); return done && errno == EISDIR ? rmdir(name) : done; }
int unlinkat(int at, const char *name, int flags)
{
    char path[PATH_MAX];
    static int (*real)(int, const char *, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "unlinkat");
    int mine = resolve(at, name, path);
    int done = real(at, name, flags);
    if (!done && mine)
        note("remove", path, 0, 0, 0, 0);
    return done;
}

int mkdir(const char *name, mode_t mode)
{
    char path[PATH_MAX];
    int done = REAL(mkdir)(name, mode);
    if (!done && resolve(AT_FDCWD, name, path))
        note("mkdir", path, 0, 0, 0, 0);
    return done;
}
int mkdirat(int at, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    int done = REAL(mkdirat)(at, name, mode);
    if (!done && resolve(at, name, path))
        note("mkdir", path, 0, 0, 0, 0);
    return done;
}
