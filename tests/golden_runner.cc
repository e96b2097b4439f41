/* golden_runner.cc: reads cases.txt, sends each case to the runner of its format, counts. */
#include "tests/golden_runner.h"

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/dtype.h"

namespace golden {

void must(tile_status status) {
    if (status) throw Failed(std::string(tile_status_text(status)) + ": " + tile_last_error());
}

tile_shape shape_of(const Ints &extents) {
    tile_shape shape = {};
    if (extents.size() > TILE_RANK_MAX) throw Failed("rank " + std::to_string(extents.size()));
    shape.rank = static_cast<int>(extents.size());
    for (size_t d = 0; d < extents.size(); d++) shape.extent[d] = extents[d];
    return shape;
}

std::string shape_text(const Ints &extents) {
    std::string text = "[";
    for (size_t d = 0; d < extents.size(); d++)
        text += (d ? ", " : "") + std::to_string(extents[d]);
    return text + "]";
}

Case::Case(const std::string &format, const std::string &folder, const std::string &line)
    : format_(format), folder_(folder) {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos) throw Failed("cases.txt: no = in " + word);
        field_[word.substr(0, equals)] = word.substr(equals + 1);
    }
    name_ = text("case");
}

const std::string &Case::text(const std::string &key) const {
    const auto at = field_.find(key);
    if (at == field_.end()) throw Failed("cases.txt: no " + key + "= for " + name_);
    return at->second;
}

double Case::real(const std::string &key) const {
    return std::stod(text(key));
}

int64_t Case::integer(const std::string &key) const {
    return std::stoll(text(key));
}

std::vector<std::string> Case::words(const std::string &key) const {
    std::vector<std::string> all;
    if (text(key) == "-") return all;
    std::istringstream list(text(key));
    for (std::string word; std::getline(list, word, ',');) all.push_back(word);
    return all;
}

Ints Case::integers(const std::string &key) const {
    Ints all;
    for (const std::string &word : words(key)) all.push_back(std::stoll(word));
    return all;
}

bool Case::has_file(const std::string &name) const {
    return std::ifstream(file(name + ".npy")).good();
}

std::vector<Case> read_cases(const std::string &folder) {
    std::ifstream in(folder + "/cases.txt");
    std::string line, hash, word, format, version;
    if (!std::getline(in, line)) throw Failed(folder + "/cases.txt: cannot be read");
    std::istringstream first(line);
    first >> hash >> word >> format >> version;
    if (hash != "#" || word != "format" || version != "1")
        throw Failed(folder + "/cases.txt: the first line is not `# format KIND 1`: " + line);
    std::vector<Case> all;
    while (std::getline(in, line)) {
        if (line.empty() || line[0] == '#') continue;
        all.emplace_back(format, folder, line);
    }
    return all;
}

void run_case(const Case &c) {
    const std::map<std::string, void (*)(const Case &)> runners = {{"ops", run_ops_case},
                                                                   {"indexed", run_indexed_case},
                                                                   {"programs", run_program_case},
                                                                   {"partition",
                                                                    run_partition_case}};
    const auto run = runners.find(c.format());
    if (run == runners.end()) throw Failed("no runner for the format " + c.format());
    run->second(c);
}

int run_folder(const std::string &folder, FILE *out) {
    int passed = 0, failed = 0, skipped = 0;
    std::vector<Case> cases;
    try {
        cases = read_cases(folder);
    } catch (const std::exception &e) {
        std::fprintf(out, "failed %s\n", e.what());
        failed++;
    }
    for (const Case &c : cases) {
        try {
            run_case(c);
            passed++;
        } catch (const Skipped &e) {
            std::fprintf(out, "skipped %s: %s\n", c.name().c_str(), e.what());
            skipped++;
        } catch (const std::exception &e) {
            std::fprintf(out, "failed %s: %s\n", c.name().c_str(), e.what());
            failed++;
        }
    }
    std::fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed || passed + skipped == 0;
}

Bench::Bench(bool check) {
    tile_context_options options = {};
    options.check = check;
    must(tile_context_create(&options, &ctx));
    must(tape_create(ctx, nullptr, &record));
}

Bench::~Bench() {
    tape_destroy(record);
    for (tile_kernel *k : kernel_) tile_kernel_destroy(k);
    for (tile_array *a : array_) tile_array_destroy(a);
    tile_context_destroy(ctx);
}

tile_array *Bench::load(const std::string &path) {
    tile_array *array;
    must(tile_array_load_npy(ctx, path.c_str(), &array));
    array_.push_back(array);
    return array;
}

tile_array *Bench::load_as(tile_dtype dtype, const std::string &path) {
    tile_array *bits = load(path);
    if (dtype != TILE_BF16 || tile_array_dtype(bits) != TILE_U16) return bits;
    const Values values = read(bits);
    tile_array *array = zeros(dtype, values.shape);
    must(tile_array_write(array, values.bytes.data(), values.bytes.size()));
    return array;
}

tile_array *Bench::zeros(tile_dtype dtype, const Ints &shape) {
    tile_array *array;
    must(tile_array_create(ctx, dtype, shape_of(shape), &array));
    array_.push_back(array);
    return array;
}

tile_array *Bench::strided(tile_array *base, int64_t offset, const Ints &shape,
                           const Ints &strides) {
    tile_array *view;
    must(tile_array_strided(base, offset, shape_of(shape), strides.data(), &view));
    array_.push_back(view);
    return view;
}

tile_status Bench::try_kernel(const std::string &name,
                              const std::function<void(tile_builder *)> &build,
                              tile_kernel **kernel) {
    tile_builder *b = tile_kernel_begin(ctx, name.c_str());
    build(b);
    const tile_status status = tile_kernel_end(b, kernel);
    if (!status) kernel_.push_back(*kernel);
    return status;
}

tile_array *Bench::field(tile_array *array, const char *name) {
    tile_array *view;
    must(tile_array_field(array, name, &view));
    array_.push_back(view);
    return view;
}

tile_kernel *Bench::kernel(const std::string &name,
                           const std::function<void(tile_builder *)> &build) {
    tile_kernel *kernel;
    must(try_kernel(name, build, &kernel));
    return kernel;
}

Values Bench::read(tile_array *array) {
    Values v;
    v.dtype = tile_array_dtype(array);
    const tile_shape shape = tile_array_shape(array);
    v.shape.assign(shape.extent, shape.extent + shape.rank);
    const size_t n = static_cast<size_t>(tile_array_count(array)), size = tile_dtype_size(v.dtype);
    v.bytes.resize(n * size);
    must(tile_array_read(array, v.bytes.data(), v.bytes.size()));
    for (size_t i = 0; i < n; i++) v.real.push_back(tile_dtype_get(v.dtype, &v.bytes[i * size]));
    return v;
}

Values Bench::gradient(tile_array *array) {
    tile_array *grad = tile_array_grad(array);
    if (!grad) throw Failed("an array has no gradient");
    return read(grad);
}

} // namespace golden
