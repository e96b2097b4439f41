/* native_test.cc: native code has the interpreter's bits; the cache of objects; compilers that are
 * missing, fail, hang or write garbage. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>

#include "tests/random_field.h"

namespace {

using namespace field_test;

/* Environment of one test: a cache folder of its own; what is set is unset at the end. */
class NativeTest : public testing::Test {
  protected:
    void SetUp() override {
        const char *scratch = getenv("TEST_TMPDIR");
        std::string name = std::string(scratch ? scratch : "/tmp") + "/native.XXXXXX";
        ASSERT_NE(nullptr, mkdtemp(&name[0]));
        folder = name;
        set("XDG_CACHE_HOME", folder);
        for (const char *other : {"TILE_CC", "TILE_CC_SECONDS", "TILE_CACHE_BYTES"})
            unsetenv(other);
        unsetenv("TILE_EXECUTOR");
    }
    void TearDown() override {
        for (const char *name : {"TILE_CC", "TILE_CC_SECONDS", "TILE_CACHE_BYTES"}) unsetenv(name);
    }
    void set(const char *name, const std::string &value) {
        setenv(name, value.c_str(), 1);
    }
    /* A compiler that is a shell script. $out: where the object is wanted. */
    void set_compiler(const std::string &body) {
        const std::string path = folder + "/compiler";
        std::ofstream(path) << "#!/bin/sh\nfor a; do [ \"$last\" = -o ] && out=$a; last=$a; done\n"
                            << body << "\n";
        chmod(path.c_str(), 0700);
        set("TILE_CC", path);
    }
    std::set<std::string> entries(const std::string &ending) {
        std::set<std::string> found;
        DIR *d = opendir((folder + "/tiletape").c_str());
        for (const dirent *e; d && (e = readdir(d));) {
            const std::string name = e->d_name;
            if (name.size() > ending.size() &&
                !name.compare(name.size() - ending.size(), ending.size(), ending))
                found.insert(name);
        }
        if (d) closedir(d);
        return found;
    }
    std::string folder;
};

/* y[i] = sin(x[i] + k) * x[i + shift], past the end: 0; shift is k without its fraction. A constant
 * is no part of the generated code, a shift is. */
struct Case {
    explicit Case(double constant, int64_t n = 1000)
        : k(constant), shift(static_cast<int64_t>(constant)), x(TILE_F32, {n}), y(TILE_F32, {n}) {
        x.fill([](int64_t i) { return 0.25 * static_cast<double>(i % 37) - 3; });
    }
    void build(Runner *r) const {
        r->build([this](tile_builder *b) {
            const tile_param px = tile_array_param(b, "x", TILE_F32, 1);
            const tile_param py = tile_array_param(b, "y", TILE_F32, 1);
            const tile_offset at = TILE_AT(tile_block_start(b, 0, 100));
            const tile here = tile_load(px, TILE_SHAPE(100), at);
            const tile next = tile_load(px, TILE_SHAPE(100), TILE_SHIFT(at, shift));
            const tile c = tile_real(b, TILE_F32, k);
            tile_store(py, tile_expr("sin(here + c) * next", here, c, next), at);
        });
    }
    void run(Runner *r) {
        r->run(bound_of({(x.count() + 99) / 100}, {&x, &y}));
    }
    /* Within rounding of what libm says. */
    bool right() {
        for (int64_t i = 0; i < x.count(); i++) {
            const double next = i + shift < x.count() ? x.get(i + shift) : 0;
            if (std::fabs(y.get(i) - std::sin(x.get(i) + k) * next) > 2e-6) return false;
        }
        return true;
    }
    double k;
    int64_t shift;
    Memory x, y;
};

tile_executor_info info_of(const Runner &r) {
    tile_executor_info info;
    EXPECT_EQ(TILE_OK, tile_context_info(r.ctx, &info)) << tile_last_error();
    return info;
}

/* Runs the case on a context of its own, and says what ran it. The result must be right. */
tile_executor_info run_alone(double k, tile_executor executor = TILE_EXECUTOR_NATIVE) {
    Runner r(1, executor);
    Case c(k);
    c.build(&r);
    c.run(&r);
    EXPECT_TRUE(c.right());
    return info_of(r);
}

/* Bits */

std::vector<Bytes> run_field(RandomField *f, int threads, bool by_blocks, tile_executor executor,
                             bool *native) {
    Runner r(threads, executor);
    r.build([f](tile_builder *b) { FieldBuilder(*f, b).build(); });
    std::vector<Memory *> arrays;
    std::vector<Bytes> before, after;
    for (auto &m : f->inputs) arrays.push_back(m.get());
    for (auto &m : f->outputs) arrays.push_back(m.get());
    for (Memory *m : arrays) before.push_back(m->bytes);
    tile_bound bound = bound_of(f->grid, arrays);
    bound.scalar[8].real = 0.75;
    bound.scalar[9].integer = 2;
    if (r.kernel) r.run(bound, by_blocks);
    *native = info_of(r).native_launches == 1;
    for (size_t k = 0; k < arrays.size(); k++) {
        EXPECT_TRUE(arrays[k]->guarded());
        after.push_back(arrays[k]->bytes);
        arrays[k]->bytes = before[k];
    }
    return after;
}

/* NaN equals NaN, whatever its bits. */
bool same(const RandomField &f, const Bytes &x, const Bytes &y) {
    if (x == y) return true;
    const size_t size = tile_dtype_size(f.dtype);
    for (size_t i = 0; i + size <= x.size(); i += size) {
        if (!memcmp(&x[i], &y[i], size)) continue;
        const double a = tile_dtype_get(f.dtype, &x[i]), b = tile_dtype_get(f.dtype, &y[i]);
        if (!std::isnan(a) || !std::isnan(b)) return false;
    }
    return true;
}

TEST_F(NativeTest, HasTheBitsOfTheInterpreterOnRandomFields) {
    const char *text = getenv("TILE_SEED");
    const unsigned first = text ? static_cast<unsigned>(atoi(text)) : 1;
    const unsigned last = text ? first : 60;
    int all = 0, rows = 0, groups = 0;
    for (unsigned seed = first; seed <= last; seed++) {
        RandomField f(seed, seed % 2);
        bool native;
        const std::vector<Bytes> want = run_field(&f, 1, true, TILE_EXECUTOR_INTERPRETER, &native);
        ASSERT_FALSE(native);
        for (int threads : {1, 2, 3}) {
            const std::vector<Bytes> got =
                run_field(&f, threads, false, TILE_EXECUTOR_NATIVE, &native);
            for (size_t k = 0; k < want.size(); k++)
                ASSERT_TRUE(same(f, want[k], got[k]))
                    << "TILE_SEED=" << seed << " threads " << threads << " array " << k;
        }
        all++;
        rows += native;
        const std::vector<Bytes> got = run_field(&f, 2, true, TILE_EXECUTOR_NATIVE, &native);
        for (size_t k = 0; k < want.size(); k++)
            ASSERT_TRUE(same(f, want[k], got[k])) << "TILE_SEED=" << seed << " groups, array " << k;
        groups += native;
    }
    if (!text) {
        EXPECT_GT(rows, all * 9 / 10);
        EXPECT_GT(groups, all / 2);
    }
}

/* The interpreter begins, native code goes on: nothing is seen of it. */
TEST_F(NativeTest, TakesOverInMidRun) {
    const int64_t n = 200000;
    Case one(0.5, n), other(0.5, n);
    Runner automatic(2), interpreter(1, TILE_EXECUTOR_INTERPRETER);
    one.build(&automatic);
    other.build(&interpreter);
    int64_t launches = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (info_of(automatic).native_launches < 3) {
        one.run(&automatic);
        std::swap(one.x, one.y);
        launches++;
        ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60))
            << info_of(automatic).why;
    }
    const tile_executor_info info = info_of(automatic);
    EXPECT_GE(info.interpreted_launches, 3);
    EXPECT_EQ(launches, info.interpreted_launches + info.native_launches);
    for (int64_t k = 0; k < launches; k++) {
        other.run(&interpreter);
        std::swap(other.x, other.y);
    }
    EXPECT_TRUE(one.x.bytes == other.x.bytes);
}

TEST_F(NativeTest, LeavesRareKernelsToTheInterpreter) {
    const tile_executor_info info = run_alone(1, TILE_EXECUTOR_AUTO);
    EXPECT_EQ(0, info.native_launches);
    EXPECT_EQ(1, info.interpreted_launches);
    EXPECT_EQ(0, info.compiled + info.waiting + info.failed);
    EXPECT_STREQ("", info.why);
    EXPECT_TRUE(entries(".so").empty());
}

/* Choosing */

TEST_F(NativeTest, RefusesWhatIsNoExecutor) {
    tile_context *ctx = nullptr;
    tile_context_options options = {};
    options.executor = static_cast<tile_executor>(7);
    EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(&options, &ctx));
    EXPECT_STREQ("tile_context_create: executor is 7, wanted a tile_executor", tile_last_error());
    set("TILE_EXECUTOR", "fast");
    EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(nullptr, &ctx));
    EXPECT_STREQ(
        "tile_context_create: TILE_EXECUTOR is \"fast\", wanted auto, interpreter or native",
        tile_last_error());
    unsetenv("TILE_EXECUTOR");
    tile_executor_info info;
    EXPECT_EQ(TILE_E_ARGUMENT, tile_context_info(nullptr, &info));
    Runner r(1);
    EXPECT_EQ(TILE_E_ARGUMENT, tile_context_info(r.ctx, nullptr));
}

TEST_F(NativeTest, TheEnvironmentChoosesWhereTheProgramDoesNot) {
    set("TILE_EXECUTOR", "native");
    EXPECT_EQ(1, run_alone(2, TILE_EXECUTOR_AUTO).native_launches);
    EXPECT_EQ(0, run_alone(2, TILE_EXECUTOR_INTERPRETER).native_launches);
    set("TILE_EXECUTOR", "interpreter");
    const tile_executor_info info = run_alone(2, TILE_EXECUTOR_AUTO);
    EXPECT_EQ(TILE_EXECUTOR_INTERPRETER, info.executor);
    EXPECT_EQ(0, info.native_launches);
    unsetenv("TILE_EXECUTOR");
}

/* The cache */

TEST_F(NativeTest, RefusesNumbersOfTheEnvironmentThatAreNone) {
    tile_context *ctx = nullptr;
    for (const char *bad : {"0", "-1", "ten", "1e9", "5 s"}) {
        set("TILE_CC_SECONDS", bad);
        EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(nullptr, &ctx)) << bad;
    }
    EXPECT_STREQ("tile_context_create: TILE_CC_SECONDS is \"5 s\", wanted more than 0, to 86400",
                 tile_last_error());
    set("TILE_CC_SECONDS", "0.5");
    for (const char *bad : {"-1", "256M", "1e9", "99999999999999999999"}) {
        set("TILE_CACHE_BYTES", bad);
        EXPECT_EQ(TILE_E_ARGUMENT, tile_context_create(nullptr, &ctx)) << bad;
    }
    EXPECT_EQ(nullptr, ctx);
    set("TILE_CACHE_BYTES", "0");
    ASSERT_EQ(TILE_OK, tile_context_create(nullptr, &ctx)) << tile_last_error();
    tile_context_destroy(ctx);
}

TEST_F(NativeTest, BuildsOnceAndReuses) {
    tile_executor_info info = run_alone(3);
    EXPECT_EQ(1, info.native_launches);
    EXPECT_EQ(1, info.compiled);
    EXPECT_EQ(0, info.reused);
    info = run_alone(3);
    EXPECT_EQ(1, info.native_launches);
    EXPECT_EQ(0, info.compiled);
    EXPECT_EQ(1, info.reused);
    EXPECT_EQ(1u, entries(".so").size());
    EXPECT_EQ(1u, entries(".c").size());
    EXPECT_EQ(1, run_alone(3.5).reused); /* the same code */
    EXPECT_EQ(1, run_alone(4).compiled);
    EXPECT_EQ(2u, entries(".so").size());
}

std::string read_file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void write_file(const std::string &path, const std::string &bytes) {
    unlink(path.c_str());
    std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(NativeTest, RebuildsDamagedEntries) {
    run_alone(5);
    ASSERT_EQ(1u, entries(".so").size());
    const std::string path = folder + "/tiletape/" + *entries(".so").begin();
    const std::string whole = read_file(path);
    std::string bit = whole;
    bit[whole.size() / 2] = static_cast<char>(bit[whole.size() / 2] ^ 4);
    const std::string damaged[] = {"",
                                   "garbage",
                                   bit,
                                   whole.substr(0, whole.size() / 2),
                                   whole.substr(0, whole.size() - 1),
                                   whole + "x",
                                   std::string(whole.size(), '\0')};
    for (const std::string &bytes : damaged) {
        write_file(path, bytes);
        const tile_executor_info info = run_alone(5);
        EXPECT_EQ(1, info.native_launches);
        EXPECT_EQ(1, info.compiled) << "of " << bytes.size() << " bytes";
        EXPECT_EQ(0, info.reused);
        EXPECT_EQ(whole.size(), read_file(path).size());
    }
    EXPECT_EQ(1, run_alone(5).reused);
}

/* An entry that is whole but is another kernel's. */
TEST_F(NativeTest, DoesNotTakeAnotherKernelsObject) {
    run_alone(6);
    const std::string first = *entries(".so").begin();
    run_alone(7);
    for (const std::string &other : entries(".so"))
        if (other != first)
            write_file(folder + "/tiletape/" + first, read_file(folder + "/tiletape/" + other));
    const tile_executor_info info = run_alone(6);
    EXPECT_EQ(1, info.native_launches);
    EXPECT_EQ(1, info.compiled);
}

int64_t bytes_in(const std::string &folder, const std::set<std::string> &names) {
    int64_t bytes = 0;
    for (const std::string &name : names) {
        struct stat is;
        if (!stat((folder + "/tiletape/" + name).c_str(), &is)) bytes += is.st_size;
    }
    return bytes;
}

TEST_F(NativeTest, DropsTheOldestEntriesAboveTheCap) {
    run_alone(8);
    const int64_t one = bytes_in(folder, entries(".so")) + bytes_in(folder, entries(".c"));
    set("TILE_CACHE_BYTES", std::to_string(2 * one + one / 2));
    for (int k = 0; k < 4; k++) run_alone(9 + k);
    EXPECT_LE(bytes_in(folder, entries(".so")) + bytes_in(folder, entries(".c")),
              2 * one + one / 2);
    EXPECT_EQ(1, run_alone(12).reused);
    /* Smaller than one entry: it is built and used all the same. */
    set("TILE_CACHE_BYTES", "1");
    EXPECT_EQ(1, run_alone(13).native_launches);
    EXPECT_EQ(1u, entries(".so").size());
}

/* Runs in a process of its own; its exit status. */
template <typename F> pid_t start(const F &body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    return child;
}
int ended(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(NativeTest, ManyProcessesAtOnce) {
    std::vector<pid_t> children;
    for (int k = 0; k < 4; k++)
        children.push_back(start([] {
            int64_t native = 0;
            for (int i = 0; i < 3; i++) native += run_alone(20 + i).native_launches;
            return testing::Test::HasFailure() ? 1 : native == 3 ? 0 : 2;
        }));
    for (pid_t child : children) EXPECT_EQ(0, ended(child));
    EXPECT_EQ(3u, entries(".so").size());
    EXPECT_EQ(3u, entries(".c").size());
    EXPECT_EQ(6u, entries("").size() - 2); /* . and .. */
    EXPECT_EQ(1, run_alone(21).reused);
}

/* No native code: the interpreter goes on */

void expect_interpreted(double k, const std::string &why) {
    const tile_executor_info info = run_alone(k);
    EXPECT_EQ(0, info.native_launches);
    EXPECT_EQ(1, info.interpreted_launches);
    EXPECT_EQ(1, info.failed);
    EXPECT_EQ(0, info.compiled + info.reused + info.waiting);
    EXPECT_NE(std::string::npos, std::string(info.why).find(why)) << info.why;
}

TEST_F(NativeTest, GoesOnWithoutACompiler) {
    set("TILE_CC", "/nowhere/cc");
    expect_interpreted(30, "no C compiler: /nowhere/cc (TILE_CC, else cc) not found");
    set("TILE_CC", "no-such-compiler");
    expect_interpreted(30, "no C compiler: no-such-compiler");
    set("TILE_CC", folder); /* a folder is no program */
    expect_interpreted(30, "no C compiler");
    EXPECT_TRUE(entries("").empty());
}

TEST_F(NativeTest, GoesOnWithoutACacheFolder) {
    write_file(folder + "/file", "");
    set("XDG_CACHE_HOME", folder + "/file");
    expect_interpreted(31, "/file/tiletape cannot be written to");
    set("XDG_CACHE_HOME", "/proc/none");
    expect_interpreted(31, "no cache: the folder /proc/none cannot be written to");
    mkdir((folder + "/open").c_str(), 0700);
    mkdir((folder + "/open/tiletape").c_str(), 0700);
    chmod((folder + "/open/tiletape").c_str(), 0777); /* another user could put code there */
    set("XDG_CACHE_HOME", folder + "/open");
    expect_interpreted(31, "/open/tiletape can be written to by others");
}

TEST_F(NativeTest, GoesOnWhenTheDiskIsFull) {
    const pid_t child = start([] {
        signal(SIGXFSZ, SIG_IGN);
        const rlimit none = {1000, 1000}; /* no file may be longer */
        setrlimit(RLIMIT_FSIZE, &none);
        expect_interpreted(32, "cannot be written");
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(0, ended(child));
    EXPECT_TRUE(entries(".so").empty());
}

TEST_F(NativeTest, GoesOnWhenTheCompilerFails) {
    set_compiler("echo no luck today >&2; exit 3");
    expect_interpreted(33, "the C compiler failed with status 3: no luck today");
    set_compiler("kill -9 $$");
    expect_interpreted(33, "status 137");
    set_compiler("exit 0");
    expect_interpreted(33, "made no object");
    EXPECT_EQ(0u, entries(".so").size() + entries(".c").size());
}

TEST_F(NativeTest, GoesOnWhenTheCompilerWritesGarbage) {
    set_compiler("echo garbage >$out");
    expect_interpreted(34, "made no object");
    set_compiler("printf '\\177ELF\\002\\001\\001' >$out; head -c 5000 /dev/zero >>$out");
    expect_interpreted(34, "cannot be loaded");
    set_compiler("cat /bin/sh >$out");
    expect_interpreted(34, "cannot be loaded");
    EXPECT_TRUE(entries(".so").empty());
}

TEST_F(NativeTest, GoesOnWhenTheCompilerHangs) {
    set_compiler("echo $$ >" + folder + "/pid; sleep 1000 & wait");
    set("TILE_CC_SECONDS", "0.3");
    const auto begin = std::chrono::steady_clock::now();
    expect_interpreted(35, "the C compiler did not end within 0.3 seconds");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    pid_t pid = 0;
    std::ifstream(folder + "/pid") >> pid;
    ASSERT_GT(pid, 0);
    EXPECT_EQ(-1, kill(pid, 0)); /* it is gone */
}

/* After three failures in a row no more is asked for. */
TEST_F(NativeTest, GivesUpOnABrokenCompiler) {
    set_compiler("echo x >>" + folder + "/calls; exit 1");
    Runner r(1, TILE_EXECUTOR_NATIVE);
    for (int k = 0; k < 6; k++) {
        Case c(40 + k);
        tile_kernel_destroy(r.kernel);
        r.kernel = nullptr;
        c.build(&r);
        c.run(&r);
        EXPECT_TRUE(c.right());
    }
    EXPECT_EQ("x\nx\nx\n", read_file(folder + "/calls"));
    EXPECT_EQ(6, info_of(r).interpreted_launches);
}

/* A context that goes while the compiler runs takes the compiler along. */
TEST_F(NativeTest, ContextsDoNotWaitForTheCompiler) {
    set_compiler("echo $$ >" + folder + "/pid; exec sleep 1000");
    std::chrono::steady_clock::time_point begin;
    {
        Runner r(2);
        Case c(50, 400000);
        c.build(&r);
        const auto start = std::chrono::steady_clock::now();
        while (!std::ifstream(folder + "/pid").good() || read_file(folder + "/pid").empty()) {
            c.run(&r);
            ASSERT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
        }
        EXPECT_EQ(1, info_of(r).waiting);
        EXPECT_EQ(0, info_of(r).native_launches);
        EXPECT_TRUE(c.right());
        begin = std::chrono::steady_clock::now();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    pid_t pid = 0;
    std::ifstream(folder + "/pid") >> pid;
    ASSERT_GT(pid, 0);
    EXPECT_EQ(-1, kill(pid, 0));
}

} // namespace
