/* npy_fixture.h: .npy files made byte by byte in a folder of their own. */
#ifndef TILE_TESTS_NPY_FIXTURE_H
#define TILE_TESTS_NPY_FIXTURE_H

#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/core_api.h"
#include "tests/host_context.h"

/* A file's bytes: magic, version, length, text padded with spaces to 64 and a newline. */
inline std::string npy(const std::string &text, const std::string &data, int version = 1) {
    const size_t start = version == 1 ? 10 : 12;
    std::string padded = text;
    while ((start + padded.size() + 1) % 64 != 0) padded += ' ';
    padded += '\n';
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (size_t i = 0; i < start - 8; i++)
        bytes += static_cast<char>(padded.size() >> (8 * i) & 255);
    return bytes + padded + data;
}

inline std::string dict(const std::string &descr, const std::string &order,
                        const std::string &shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

template <typename T> std::string raw(std::vector<T> values, bool reversed = false) {
    std::string bytes;
    for (const T &value : values) {
        char one[sizeof(T)];
        memcpy(one, &value, sizeof(T));
        std::string text(one, sizeof(T));
        bytes += reversed ? std::string(text.rbegin(), text.rend()) : text;
    }
    return bytes;
}

class NpyTest : public testing::Test {
  protected:
    void SetUp() override {
        folder = "/tmp/npy_test_XXXXXX"; /* short: messages hold the end of a long path only */
        ASSERT_NE(nullptr, mkdtemp(&folder[0]));
        path = folder + "/a.npy";
        tile_context_options options = {1, 0};
        ASSERT_EQ(TILE_OK, tile_context_create(&options, &ctx));
    }
    void TearDown() override {
        EXPECT_EQ(0u, tile_context_bytes(ctx));
        tile_context_destroy(ctx);
        for (const std::string &name : files()) unlink((folder + "/" + name).c_str());
        EXPECT_EQ(0, rmdir(folder.c_str()));
    }
    std::vector<std::string> files() {
        std::vector<std::string> names;
        DIR *dir = opendir(folder.c_str());
        while (dirent *entry = readdir(dir))
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                names.push_back(entry->d_name);
        closedir(dir);
        return names;
    }
    /* A new file each time: some file systems flush when one is truncated. */
    void put(const std::string &bytes) {
        unlink(path.c_str());
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
    std::string get() {
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    tile_array *load(const std::string &bytes) {
        put(bytes);
        tile_array *a = nullptr;
        EXPECT_EQ(TILE_OK, tile_array_load_npy(ctx, path.c_str(), &a)) << tile_last_error();
        return a;
    }
    /* The message of the failed load. */
    std::string fails(const std::string &bytes) {
        put(bytes);
        tile_array *a = nullptr;
        EXPECT_EQ(TILE_E_FILE, tile_array_load_npy(ctx, path.c_str(), &a));
        EXPECT_EQ(nullptr, a);
        EXPECT_EQ(0u, tile_context_bytes(ctx));
        tile_array_destroy(a);
        const std::string message = tile_last_error(), head = "tile_array_load_npy: " + path + " ";
        EXPECT_EQ(head, message.substr(0, head.size()));
        EXPECT_EQ(std::string::npos, message.find('\n'));
        return message.substr(std::min(head.size(), message.size()));
    }
    template <typename T> std::vector<T> values(tile_array *a) {
        std::vector<T> x(static_cast<size_t>(tile_array_count(a)));
        EXPECT_EQ(TILE_OK, tile_array_read(a, x.data(), x.size() * sizeof(T)));
        return x;
    }
    /* Loads values in both byte orders. */
    template <typename T>
    void check_dtype(tile_dtype dtype, const std::string &code, std::vector<T> wanted) {
        for (const char *order : {"<", ">"}) {
            const std::string shape = "(" + std::to_string(wanted.size()) + ",)";
            tile_array *a =
                load(npy(dict(order + code, "False", shape), raw(wanted, *order == '>')));
            ASSERT_NE(nullptr, a);
            EXPECT_EQ(dtype, tile_array_dtype(a));
            EXPECT_EQ(wanted, values<T>(a)) << order << code;
            tile_array_destroy(a);
        }
    }

    std::string folder, path;
    tile_context *ctx = nullptr;
};

using Floats = std::vector<float>;

#endif
