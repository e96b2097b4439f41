/* native_compile.c: runs the system's C compiler. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/environment.h"
#include "core/native.h"

extern char **environ;

/* Contraction is an explicit fma op, and nothing else may change bits either. */
#define FLAGS                                                                     \
    "-std=gnu11", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", \
        "-fno-trapping-math", "-fno-strict-aliasing", "-w", "-fPIC", "-shared",

const char *const tile_native_flags[] = {FLAGS NULL};

static bool is_program(const char *path) {
    struct stat is;
    return stat(path, &is) == 0 && S_ISREG(is.st_mode) && access(path, X_OK) == 0;
}

bool tile_native_compiler(char path[TILE_NATIVE_PATH], char why[TILE_NATIVE_WHY]) {
    const char *name = getenv("TILE_CC");
    if (!name || !*name) name = "cc";
    bool found = false;
    if (strchr(name, '/')) {
        const int length = snprintf(path, TILE_NATIVE_PATH, "%s", name);
        found = length < TILE_NATIVE_PATH && is_program(path);
    } else {
        const char *folder = getenv("PATH");
        while (folder && *folder && !found) {
            const size_t length = strcspn(folder, ":");
            const int written = snprintf(path, TILE_NATIVE_PATH, "%.*s/%s",
                                         (int)(length < 900 ? length : 900), folder, name);
            found = length && written < TILE_NATIVE_PATH && is_program(path);
            folder += length + (folder[length] == ':');
        }
    }
    if (!found)
        (void)snprintf(why, TILE_NATIVE_WHY, "no C compiler: %.100s (TILE_CC, else cc) not found",
                       name);
    return found;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int spawn(const char *compiler, const char *text, const char *object, const char *log,
                 pid_t *child) {
    const char *const arguments[] = {compiler, FLAGS "-o", object, text, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files)) return ENOMEM;
    if (posix_spawnattr_init(&how)) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    int failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed =
            posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&files, 1, 2);
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
    if (!failed) failed = posix_spawn_file_actions_addclosefrom_np(&files, 3);
#endif
#endif
    /* A group of its own: what the compiler starts ends with it. */
    if (!failed)
        failed = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    if (!failed) failed = posix_spawnattr_setsigmask(&how, &none);
    if (!failed)
        failed = posix_spawn(child, compiler, &files, &how, (char *const *)(uintptr_t)arguments,
                             environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* Waits for the child; true: it ended by itself and, as far as can be known, well. */
static bool wait_for(pid_t child, const bool *stop, char why[TILE_NATIVE_WHY]) {
    const double begin = now(), limit = tile_environment_cc_seconds();
    for (;;) {
        int status = 0;
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended < 0 && errno == ECHILD) return true; /* the program takes no notice of children */
        if (ended == child) {
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
            (void)snprintf(why, TILE_NATIVE_WHY, "the C compiler failed with status %d",
                           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
            return false;
        }
        const bool late = now() - begin > limit, stopped = __atomic_load_n(stop, __ATOMIC_RELAXED);
        if (late || stopped) {
            (void)kill(-child, SIGKILL);
            (void)kill(child, SIGKILL);
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
            (void)snprintf(why, TILE_NATIVE_WHY, "the C compiler did not end within %g seconds",
                           limit);
            return false;
        }
        const struct timespec pause = {0, 2000000};
        nanosleep(&pause, NULL);
    }
}

/* The first line that the compiler said, after why. */
static void add_log(const char *log, char why[TILE_NATIVE_WHY]) {
    char said[160];
    const int file = open(log, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t n = read(file, said, sizeof said - 1);
    close(file);
    if (n <= 0) return;
    said[n] = '\0';
    said[strcspn(said, "\n")] = '\0';
    for (char *c = said; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    const size_t length = strlen(why);
    (void)snprintf(why + length, TILE_NATIVE_WHY - length, ": %s", said);
}

static bool is_object(const char *path) {
    char head[4] = {0};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t n = read(file, head, sizeof head);
    close(file);
    return n == (ssize_t)sizeof head && !memcmp(head, "\177ELF", sizeof head);
}

bool tile_native_compile(const char *compiler, const char *text, const char *object,
                         const bool *stop, char why[TILE_NATIVE_WHY]) {
    char log[TILE_NATIVE_PATH];
    pid_t child;
    (void)snprintf(log, sizeof log, "%.1000s.log", object);
    const int failed = spawn(compiler, text, object, log, &child);
    bool done = false;
    if (failed) {
        (void)snprintf(why, TILE_NATIVE_WHY, "the C compiler %.120s could not be started: %.80s",
                       compiler, strerror(failed));
    } else {
        done = wait_for(child, stop, why);
        if (!done) add_log(log, why);
        if (done && !is_object(object)) {
            (void)snprintf(why, TILE_NATIVE_WHY, "the C compiler %.120s made no object", compiler);
            done = false;
        }
    }
    (void)unlink(log);
    return done;
}
