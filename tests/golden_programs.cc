/* golden_programs.cc: whole simulations: loss, output and gradients. */
#include <algorithm>

#include "tests/golden_program.h"

namespace golden {

void run_program_case(const Case &c) {
    const std::map<std::string, void (*)(Simulation *)> programs = {
        {"rosenbrock", simulate_rosenbrock},
        {"burgers", simulate_burgers},
        {"wave", simulate_wave},
        {"nbody", simulate_nbody},
        {"gmm", simulate_gmm},
        {"logistic", simulate_logistic},
        {"mass_spring", simulate_mass_spring},
        {"lbm", simulate_lbm},
    };
    const auto simulate = programs.find(c.text("program"));
    if (simulate == programs.end()) throw Failed("no program " + c.text("program"));

    Simulation s(c);
    for (const std::string &name : c.words("inputs"))
        s.array[name] = s.bench.load(c.file(name + ".npy"));
    for (const std::string &name : c.words("gradients"))
        must(tile_array_request_grad(s.input(name)));
    simulate->second(&s);

    const auto want = [&](const std::string &name) {
        return Bench::read(s.bench.load(c.file(name + ".npy")));
    };
    const double rtol = c.real("rtol");
    compare_relative("loss", Bench::read(s.loss), want("loss"), rtol);
    compare_relative("out", Bench::read(s.out), want("out"), rtol);
    must(tape_backward(s.bench.record, s.loss));
    for (const std::string &name : c.words("gradients"))
        compare_relative("grad_" + name, Bench::gradient(s.input(name)), want("grad_" + name),
                         rtol);
}

} // namespace golden
