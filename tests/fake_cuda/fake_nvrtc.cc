/* fake_nvrtc.cc: NVRTC, by the emulator's compiler. What it makes is the source itself, which the
 * fake driver compiles again from the emulator's cache. */
#include <cstring>
#include <regex>

#include "tests/emulator/emulator.h"
#include "tests/fake_cuda/fake_state.h"

using namespace fake;

namespace {

constexpr int COMPILATION = 6;

struct Program {
    std::string name, source, log, code;
};

Program *program_of(void *handle) {
    return static_cast<Program *>(handle);
}

/* The host compiler's first error in the words of NVRTC. */
std::string translate(const std::string &said) {
    std::smatch found;
    if (!std::regex_search(said, found, std::regex("kernel:([0-9]+):[0-9]+: error: ([^\\n]*)")))
        return said;
    return "kernel(" + found[1].str() + "): error: " + found[2].str() + "\n";
}

} // namespace

FAKE_API int nvrtcVersion(int *major, int *minor) {
    FAKE_ENTER(false);
    *major = 13;
    *minor = 0;
    return SUCCESS;
}

FAKE_API int nvrtcGetNumSupportedArchs(int *count) {
    FAKE_ENTER(false);
    *count = 3;
    return SUCCESS;
}

FAKE_API int nvrtcGetSupportedArchs(int *known) {
    FAKE_ENTER(false);
    known[0] = 75;
    known[1] = 86;
    known[2] = 90;
    return SUCCESS;
}

FAKE_API int nvrtcCreateProgram(void **program, const char *source, const char *name, int,
                                const char *const *, const char *const *) {
    FAKE_ENTER(false);
    *program = new Program{name, source, "", ""};
    state().held++;
    return SUCCESS;
}

FAKE_API int nvrtcDestroyProgram(void **program) {
    FAKE_ENTER(false);
    delete program_of(*program);
    *program = nullptr;
    state().held--;
    return SUCCESS;
}

/* The kernel's own text: the emulator has all lane functions compiled. */
FAKE_API int nvrtcCompileProgram(void *program, int, const char *const *) {
    FAKE_ENTER(false);
    Program *p = program_of(program);
    const size_t own = p->source.find("\n#line 1 \"kernel\"\n");
    if (own == std::string::npos) return COMPILATION;
    const std::string text = p->source.substr(own), id = p->name.substr(sizeof "tile_kernel_" - 1);
    void *kernel;
    const std::string wrong =
        emulator::compile(p->name, "tile_" + id + "::argument", text, &kernel);
    p->log = translate(wrong);
    p->code = "FAKE\n" + p->name + "\n" + text;
    return wrong.empty() ? int{SUCCESS} : COMPILATION;
}

FAKE_API int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
    FAKE_ENTER(false);
    *bytes = program_of(program)->log.size() + 1;
    return SUCCESS;
}

FAKE_API int nvrtcGetProgramLog(void *program, char *log) {
    FAKE_ENTER(false);
    std::strcpy(log, program_of(program)->log.c_str());
    return SUCCESS;
}

FAKE_API int nvrtcGetCUBINSize(void *program, size_t *bytes) {
    FAKE_ENTER(false);
    *bytes = program_of(program)->code.size() + 1;
    return SUCCESS;
}

FAKE_API int nvrtcGetCUBIN(void *program, char *code) {
    FAKE_ENTER(false);
    std::strcpy(code, program_of(program)->code.c_str());
    return SUCCESS;
}

FAKE_API int nvrtcGetPTXSize(void *program, size_t *bytes) {
    FAKE_ENTER(false);
    *bytes = program_of(program)->code.size() + 1;
    return SUCCESS;
}

FAKE_API int nvrtcGetPTX(void *program, char *code) {
    FAKE_ENTER(false);
    std::strcpy(code, program_of(program)->code.c_str());
    return SUCCESS;
}

FAKE_API const char *nvrtcGetErrorString(int result) {
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "an error of the fake";
}
