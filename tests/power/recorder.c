/* Records what a process does to the files of one folder, in order, so that a test can
 * rebuild the disk as a loss of power would have left it. Preloaded; Linux only.
 *
 * A record is a head of five 64-bit numbers (kind, a, b, c, length) and `length` bytes:
 *
 *   1 open      a = descriptor, b = whether the file is new, c = whether it was emptied; path
 *   2 close     a = descriptor
 *   3 write     a = descriptor, b = offset; bytes
 *   4 truncate  a = descriptor, b = length
 *   5 sync      a = descriptor, b = how many records there were when it began
 *   6 unlink    path
 *   7 rename    both paths, with a zero between
 *   8 link      the same
 *
 * What changes files does so under the lock, so that the order of the records is the
 * order of the changes. A sync does not: others write meanwhile.
 *
 * Memory maps are not seen. SQLite maps only its index of the log, which it makes anew
 * after a crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN = 1, CLOSE, WRITE, TRUNCATE, SYNC, UNLINK, RENAME, LINK };
enum { MOST = 65536 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned char watched[MOST];
static const char *folder;
static size_t folder_length;
static int out = -1;
static uint64_t count;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_linkat)(int, const char *, int, const char *, int);

static void begin(void) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_openat = dlsym(RTLD_NEXT, "openat64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_linkat = dlsym(RTLD_NEXT, "linkat");
    const char *log = getenv("GREENROOM_RECORD_LOG");
    folder = getenv("GREENROOM_RECORD_FOLDER");
    if (log && folder) {
        folder_length = strlen(folder);
        out = real_open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
}

static void ready(void) { pthread_once(&once, begin); }

static int inside(const char *path) {
    return out >= 0 && path && strncmp(path, folder, folder_length) == 0;
}

static int is_watched(int fd) { return fd >= 0 && fd < MOST && watched[fd]; }

static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t done = real_write(out, at, length);
        if (done <= 0) {
            abort();
        }
        at += done;
        length -= (size_t)done;
    }
}

static void record(uint64_t kind, uint64_t a, uint64_t b, uint64_t c, const void *bytes,
                   size_t length) {
    uint64_t head[5] = {kind, a, b, c, length};
    put(head, sizeof head);
    put(bytes, length);
    count++;
}

static int open_any(int at, const char *path, int flags, mode_t mode) {
    if (!inside(path)) {
        return real_openat(at, path, flags, mode);
    }
    pthread_mutex_lock(&lock);
    struct stat found;
    int is_new = stat(path, &found) != 0;
    int fd = real_openat(at, path, flags, mode);
    if (fd >= 0 && fd < MOST) {
        watched[fd] = 1;
        record(OPEN, (uint64_t)fd, (uint64_t)is_new, (flags & O_TRUNC) != 0, path, strlen(path));
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;
}

#define OPENS(name)                                                                               \
    int name(const char *path, int flags, ...) {                                                  \
        ready();                                                                                  \
        va_list rest;                                                                             \
        va_start(rest, flags);                                                                    \
        mode_t mode = mode_of(flags, rest);                                                       \
        va_end(rest);                                                                             \
        return open_any(AT_FDCWD, path, flags, mode);                                             \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                            \
    int name(int at, const char *path, int flags, ...) {                                          \
        ready();                                                                                  \
        va_list rest;                                                                             \
        va_start(rest, flags);                                                                    \
        mode_t mode = mode_of(flags, rest);                                                       \
        va_end(rest);                                                                             \
        return open_any(at, path, flags, mode);                                                   \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

int close(int fd) {
    ready();
    if (!is_watched(fd)) {
        return real_close(fd);
    }
    pthread_mutex_lock(&lock);
    watched[fd] = 0;
    record(CLOSE, (uint64_t)fd, 0, 0, "", 0);
    int result = real_close(fd);
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    ready();
    if (!is_watched(fd)) {
        return real_write(fd, bytes, length);
    }
    pthread_mutex_lock(&lock);
    int whence = fcntl(fd, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR;
    off_t offset = lseek(fd, 0, whence);
    ssize_t done = real_write(fd, bytes, length);
    if (done > 0) {
        record(WRITE, (uint64_t)fd, (uint64_t)offset, 0, bytes, (size_t)done);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

static ssize_t pwrite_any(int fd, const void *bytes, size_t length, off_t offset) {
    ready();
    if (!is_watched(fd)) {
        return real_pwrite(fd, bytes, length, offset);
    }
    pthread_mutex_lock(&lock);
    ssize_t done = real_pwrite(fd, bytes, length, offset);
    if (done > 0) {
        record(WRITE, (uint64_t)fd, (uint64_t)offset, 0, bytes, (size_t)done);
    }
    pthread_mutex_unlock(&lock);
    return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite_any(fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return pwrite_any(fd, bytes, length, offset);
}

static int truncate_any(int fd, off_t length) {
    ready();
    if (!is_watched(fd)) {
        return real_ftruncate(fd, length);
    }
    pthread_mutex_lock(&lock);
    int result = real_ftruncate(fd, length);
    if (result == 0) {
        record(TRUNCATE, (uint64_t)fd, (uint64_t)length, 0, "", 0);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate(int fd, off_t length) { return truncate_any(fd, length); }
int ftruncate64(int fd, off64_t length) { return truncate_any(fd, length); }

static int sync_any(int fd, int (*real)(int)) {
    if (!is_watched(fd)) {
        return real(fd);
    }
    pthread_mutex_lock(&lock);
    uint64_t before = count;
    pthread_mutex_unlock(&lock);
    int result = real(fd);
    if (result == 0) {
        pthread_mutex_lock(&lock);
        record(SYNC, (uint64_t)fd, before, 0, "", 0);
        pthread_mutex_unlock(&lock);
    }
    return result;
}
int fsync(int fd) {
    ready();
    return sync_any(fd, real_fsync);
}
int fdatasync(int fd) {
    ready();
    return sync_any(fd, real_fdatasync);
}

int unlink(const char *path) {
    ready();
    if (!inside(path)) {
        return real_unlink(path);
    }
    pthread_mutex_lock(&lock);
    int result = real_unlink(path);
    if (result == 0) {
        record(UNLINK, 0, 0, 0, path, strlen(path));
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void record_both(uint64_t kind, const char *from, const char *to) {
    char both[8192];
    int length = snprintf(both, sizeof both, "%s%c%s", from, 0, to);
    record(kind, 0, 0, 0, both, (size_t)length);
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    ready();
    if (!inside(from)) {
        return real_linkat(from_at, from, to_at, to, flags);
    }
    pthread_mutex_lock(&lock);
    int result = real_linkat(from_at, from, to_at, to, flags);
    if (result == 0) {
        record_both(LINK, from, to);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    ready();
    if (!inside(from)) {
        return real_rename(from, to);
    }
    pthread_mutex_lock(&lock);
    int result = real_rename(from, to);
    if (result == 0) {
        record_both(RENAME, from, to);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
