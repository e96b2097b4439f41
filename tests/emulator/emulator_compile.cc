/* emulator_compile.cc: CUDA sources by the host's C++ compiler, and the device made of that. */
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "tests/emulator/emulator.h"
#include "tests/emulator/emulator_calls.h"

#include "core/status.h"

namespace emulator {

void note_compiled(bool found, double seconds);

namespace {

/* Contraction is an explicit fma op. */
const char kFlags[] = "-std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing -fno-math-errno "
                      "-fno-exceptions -fno-rtti -w -fPIC";

const char kHeader[] =
#include "tests/emulator/emulator_text.inc"
    ;

struct Entry {
    void (*run)(const void *);
    void (*set)(emulator_calls *);
    size_t bytes; /* of the argument */
};

std::string compiler() {
    const char *name = std::getenv("CXX");
    return name && *name ? name : "g++";
}

/* A folder of the test's own, or one that is kept: TILE_EMULATOR_CACHE. */
std::string folder() {
    static const std::string made = [] {
        const char *kept = std::getenv("TILE_EMULATOR_CACHE"), *own = std::getenv("TEST_TMPDIR");
        std::string at = kept ? kept : own ? std::string(own) + "/emulator" : "";
        if (at.empty()) {
            char name[] = "/tmp/tiletape-emulator-XXXXXX";
            at = mkdtemp(name);
        }
        mkdir(at.c_str(), 0700);
        return at;
    }();
    return made;
}

/* Compiles to a file of another name first, so that a file is there as a whole or not at all. */
std::string build(const std::string &options, const std::string &from, const std::string &to) {
    const std::string part = to + "." + std::to_string(getpid()) + ".part", log = part + ".log";
    const std::string command =
        compiler() + " " + kFlags + " " + options + " -o " + part + " " + from + " 2>" + log;
    const bool done = std::system(command.c_str()) == 0 && !rename(part.c_str(), to.c_str());
    std::ostringstream said;
    if (!done) said << std::ifstream(log).rdbuf();
    unlink(log.c_str());
    return done ? "" : command + ": " + said.str().substr(0, 2000);
}

bool is_there(const std::string &path) {
    struct stat is;
    return stat(path.c_str(), &is) == 0;
}

/* The header and all lane functions, compiled once for the rest. */
std::string prelude(std::string *wrong) {
    static std::string header, problem;
    if (header.empty()) {
        tile_text text = {};
        tile_cuda_prelude(UINT64_MAX, &text);
        const std::string all = std::string(kHeader) + tile_text_get(&text);
        tile_text_clear(&text);
        char name[40];
        std::snprintf(name, sizeof name, "/prelude_%zx.h", std::hash<std::string>()(all));
        header = folder() + name;
        const std::string part = header + "." + std::to_string(getpid());
        std::ofstream(part) << all;
        if (rename(part.c_str(), header.c_str())) problem = header + " cannot be written";
        if (!is_there(header + ".gch")) problem = build("-x c++-header", header, header + ".gch");
    }
    *wrong = problem;
    return header;
}

std::string load(const std::string &object, void **kernel) {
    void *library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    Entry *entry = new Entry;
    entry->run = reinterpret_cast<void (*)(const void *)>(dlsym(library, "emulator_run"));
    entry->set = reinterpret_cast<void (*)(emulator_calls *)>(dlsym(library, "emulator_set"));
    const auto *bytes =
        static_cast<const unsigned long long *>(dlsym(library, "emulator_argument_bytes"));
    if (!entry->run || !entry->set || !bytes) return object + " has no kernel";
    entry->bytes = *bytes;
    *kernel = entry;
    return "";
}

} // namespace

std::string compile(const std::string &name, const std::string &type, const std::string &text,
                    void **kernel) {
    static std::map<std::string, void *> made;
    static std::mutex one;
    const std::lock_guard<std::mutex> lock(one);
    const auto begin = std::chrono::steady_clock::now();
    if (made.count(name)) {
        *kernel = made[name];
        return "";
    }
    std::string wrong;
    const std::string header = prelude(&wrong);
    if (!wrong.empty()) return wrong;
    const std::string tag = header.substr(header.rfind('_') + 1);
    const std::string object = folder() + "/" + name + "_" + tag + ".so";
    const bool found = is_there(object);
    if (!found) {
        const std::string source = object + "." + std::to_string(getpid()) + ".cc";
        std::ofstream(source) << text << "extern \"C\" void emulator_run(const void *l) {\n    "
                              << name << "(*(const " << type << " *)l);\n}\n"
                              << "extern \"C\" void emulator_set(emulator_calls *calls) {\n"
                              << "    emulator_here = calls;\n}\n"
                              << "extern \"C\" const unsigned long long "
                              << "emulator_argument_bytes = sizeof(" << type << ");\n";
        wrong = build("-include " + header + " -shared", source, object);
        if (wrong.empty()) unlink(source.c_str());
    }
    if (wrong.empty()) wrong = load(object, &made[name]);
    if (wrong.empty())
        *kernel = made[name];
    else
        made.erase(name);
    note_compiled(found,
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return wrong;
}

namespace {

tile_status device_load(tile_device *, const tile_cuda_kernel *source, void **kernel) {
    const std::string name = source->name, id = name.substr(sizeof "tile_kernel_" - 1);
    const std::string wrong =
        compile(name, "tile_" + id + "::argument", tile_text_get(&source->text), kernel);
    return wrong.empty() ? TILE_OK : tile_fail(TILE_E_DEVICE, "emulator: %s", wrong.c_str());
}

void device_unload(tile_device *, void *) {}

/* Scratch in place of shared memory that is too large; what is too large is seen elsewhere. */
tile_status device_launch(tile_device *, void *kernel, const tile_device_launch *launch) {
    tile_cuda_error unread = {};
    launch->argument->error = launch->error ? launch->error : &unread;
    const std::string wrong = run(kernel, launch->argument, launch->blocks, launch->arena_bytes);
    return wrong.empty() ? TILE_OK : tile_fail(TILE_E_DEVICE, "emulator: %s", wrong.c_str());
}

tile_device make_device() {
    tile_device made = {};
    made.load = device_load;
    made.unload = device_unload;
    made.launch = device_launch;
    return made;
}
tile_device the_device = make_device();

/* Before any test makes a context. */
const bool chosen = [] {
    const char *device = std::getenv("TILE_TEST_DEVICE");
    use(from_environment());
    if (device && std::string(device) == "emulator") tile_device_use(&the_device);
    return true;
}();

} // namespace

tile_device *device() {
    return &the_device;
}

size_t argument_bytes(const void *kernel) {
    return static_cast<const Entry *>(kernel)->bytes;
}

} // namespace emulator
