/* npy_save_test.cc: writing .npy files, whole or not at all. */
#include <sys/stat.h>

#include <string>
#include <vector>

#include "core/dtype.h"
#include "tests/npy_fixture.h"

namespace {

class NpySaveTest : public NpyTest {};

TEST_F(NpySaveTest, SavesTheBytesThatNumpyReads) {
    tile_array *a = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(2, 3), &a));
    const float x[6] = {0, 1, 2, 3, 4, 5};
    ASSERT_EQ(TILE_OK, tile_array_write(a, x, sizeof x));
    ASSERT_EQ(TILE_OK, tile_array_save_npy(a, path.c_str())) << tile_last_error();
    /* 10 bytes, 58 of text, 59 spaces and a newline: 128; the length 118 is 0x76 */
    std::string wanted("\x93NUMPY\x01\x00\x76\x00", 10);
    wanted += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    wanted += std::string(127 - wanted.size(), ' ') + '\n';
    EXPECT_EQ(wanted + raw<float>({0, 1, 2, 3, 4, 5}), get());
    EXPECT_EQ((std::vector<std::string>{"a.npy"}), files()); /* no temporary file */
    tile_array_destroy(a);
}

TEST_F(NpySaveTest, WhatIsSavedLoadsAgain) {
    const tile_shape shapes[] = {tile_shape{0, {}},           TILE_SHAPE(3),    TILE_SHAPE(0),
                                 TILE_SHAPE(2, 0, 5),         TILE_SHAPE(4, 1), TILE_SHAPE(2, 3, 2),
                                 TILE_SHAPE(1, 2, 1, 2, 1, 3)};
    for (int d = 0; d < static_cast<int>(TILE_DTYPES); d++)
        for (const tile_shape &shape : shapes) {
            const tile_dtype dtype = static_cast<tile_dtype>(d);
            tile_array *a = nullptr, *b = nullptr;
            ASSERT_EQ(TILE_OK, tile_array_create(ctx, dtype, shape, &a));
            std::vector<unsigned char> x(static_cast<size_t>(tile_array_count(a)) *
                                         tile_dtype_size(dtype));
            for (size_t i = 0; i < x.size(); i++)
                x[i] = static_cast<unsigned char>(dtype == TILE_BOOL ? i % 2 : i * 37 + 1);
            std::vector<unsigned char> y(x.size(), 0xee);
            ASSERT_EQ(TILE_OK, tile_array_write(a, x.data(), x.size()));
            ASSERT_EQ(TILE_OK, tile_array_save_npy(a, path.c_str()));
            ASSERT_EQ(TILE_OK, tile_array_load_npy(ctx, path.c_str(), &b)) << tile_last_error();
            /* NumPy has no bfloat16: its bits */
            EXPECT_EQ(dtype == TILE_BF16 ? TILE_U16 : dtype, tile_array_dtype(b));
            EXPECT_EQ(shape.rank, tile_array_shape(b).rank);
            for (int i = 0; i < shape.rank; i++)
                EXPECT_EQ(shape.extent[i], tile_array_shape(b).extent[i]);
            ASSERT_EQ(TILE_OK, tile_array_read(b, y.data(), y.size()));
            EXPECT_EQ(x, y);
            tile_array_destroy(a);
            tile_array_destroy(b);
        }
}

TEST_F(NpySaveTest, TheLongestHeaderFits) {
    /* a view of one element that says it is very long in every dimension */
    tile_array *a = nullptr, *v = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_U8, TILE_SHAPE(0, 1000000000000000000), &a));
    const int64_t none[6] = {0};
    const int64_t e = 1000000000000000000;
    EXPECT_EQ(TILE_OK, tile_array_strided(a, 0, TILE_SHAPE(0, e, 1, 1, 1, 1), none, &v));
    EXPECT_EQ(TILE_OK, tile_array_save_npy(v, path.c_str()));
    EXPECT_EQ(128u, get().size());
    tile_array_destroy(v);
    tile_array_destroy(a);
}

TEST_F(NpySaveTest, SavesAStridedViewInCOrder) {
    tile_array *a = nullptr, *t = nullptr, *b = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(2, 3), &a));
    const float x[6] = {0, 1, 2, 3, 4, 5};
    ASSERT_EQ(TILE_OK, tile_array_write(a, x, sizeof x));
    const int64_t strides[2] = {1, 3};
    ASSERT_EQ(TILE_OK, tile_array_strided(a, 0, TILE_SHAPE(3, 2), strides, &t));
    ASSERT_EQ(TILE_OK, tile_array_save_npy(t, path.c_str()));
    ASSERT_EQ(TILE_OK, tile_array_load_npy(ctx, path.c_str(), &b));
    EXPECT_EQ((Floats{0, 3, 1, 4, 2, 5}), values<float>(b));
    for (tile_array *y : {a, t, b}) tile_array_destroy(y);
}

TEST_F(NpySaveTest, AFailedSaveLeavesTheOldFileAndNoOther) {
    change_to_host(&ctx);
    put("old");
    tile_array *a = nullptr, *column = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(4, 4), &a));
    const int64_t start[2] = {0, 0};
    ASSERT_EQ(TILE_OK, tile_array_slice(a, start, TILE_SHAPE(4, 1), nullptr, &column));
    EXPECT_EQ(TILE_E_FILE, tile_array_save_npy(a, folder.c_str()));
    EXPECT_EQ("tile_array_save_npy: " + folder + " exists and is not a regular file",
              tile_last_error());
    EXPECT_EQ(TILE_E_FILE, tile_array_save_npy(a, (folder + "/none/a.npy").c_str()));
    EXPECT_EQ(TILE_E_FILE, tile_array_save_npy(a, (path + "/").c_str()));
    EXPECT_EQ(TILE_E_FILE, tile_array_save_npy(a, ""));
    EXPECT_EQ(TILE_E_FILE, tile_array_save_npy(a, (folder + "/" + std::string(300, 'n')).c_str()));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_save_npy(nullptr, path.c_str()));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_save_npy(a, nullptr));
    tile_context_pend(ctx, TILE_E_EXECUTION, "an earlier launch");
    EXPECT_EQ(TILE_E_EXECUTION, tile_array_save_npy(a, path.c_str()));
    int n = 1;
    for (;; n++) {
        tile_fail_allocation(n);
        const tile_status status = tile_array_save_npy(column, path.c_str());
        tile_fail_allocation(0);
        if (!status) break;
        EXPECT_EQ(TILE_E_MEMORY, status);
        EXPECT_EQ("old", get());
        EXPECT_EQ((std::vector<std::string>{"a.npy"}), files());
    }
    EXPECT_EQ(3, n); /* the copy in C order, the temporary name, then success */
    EXPECT_EQ(128u + 16u, get().size());
    EXPECT_EQ((std::vector<std::string>{"a.npy"}), files());
    tile_array_destroy(column);
    tile_array_destroy(a);
}

TEST_F(NpySaveTest, EveryFailedAllocationOfALoadIsAnErrorWithoutALeak) {
    change_to_host(&ctx);
    put(npy(dict("<f4", "True", "(2, 2)"), raw<float>({1, 2, 3, 4})));
    int n = 1;
    for (;; n++) {
        tile_array *a = nullptr;
        tile_fail_allocation(n);
        const tile_status status = tile_array_load_npy(ctx, path.c_str(), &a);
        tile_fail_allocation(0);
        if (!status) {
            EXPECT_EQ((Floats{1, 3, 2, 4}), values<float>(a));
            tile_array_destroy(a);
            break;
        }
        EXPECT_EQ(TILE_E_MEMORY, status);
        EXPECT_EQ(nullptr, a);
        EXPECT_EQ(0u, tile_context_bytes(ctx));
    }
    EXPECT_EQ(6, n); /* the header, storage, buffer, handle, columns, then success */
}

TEST_F(NpySaveTest, SavedFilesHaveOrdinaryPermissions) {
    tile_array *a = nullptr;
    ASSERT_EQ(TILE_OK, tile_array_create(ctx, TILE_F32, TILE_SHAPE(1), &a));
    const mode_t before = umask(022);
    EXPECT_EQ(TILE_OK, tile_array_save_npy(a, path.c_str()));
    umask(before);
    struct stat info;
    ASSERT_EQ(0, stat(path.c_str(), &info));
    EXPECT_EQ(0644u, info.st_mode & 0777u);
    tile_array_destroy(a);
}

} // namespace
