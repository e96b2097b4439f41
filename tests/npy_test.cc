/* npy_test.cc: .npy files: good ones of every kind and bad ones of every kind. */
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/npy_header.h"
#include "tests/npy_fixture.h"

namespace {

TEST_F(NpyTest, LoadsEveryDtypeInBothByteOrders) {
    check_dtype<float>(TILE_F32, "f4", {1.5f, -2.25f, 1e30f});
    check_dtype<double>(TILE_F64, "f8", {1.5, -2.25, 1e300});
    check_dtype<int32_t>(TILE_I32, "i4", {1, -2, 0x01020304});
    check_dtype<int64_t>(TILE_I64, "i8", {1, -2, 0x0102030405060708});
    check_dtype<uint8_t>(TILE_U8, "u1", {1, 2, 255});
    check_dtype<uint32_t>(TILE_U32, "u4", {1, 2, 0xfffefdfc});
    check_dtype<uint64_t>(TILE_U64, "u8", {1, 2, 0xfffefdfcfbfaf9f8});
    check_dtype<int8_t>(TILE_I8, "i1", {1, -2, -128});
    check_dtype<int16_t>(TILE_I16, "i2", {1, -2, 0x0102});
    check_dtype<uint16_t>(TILE_U16, "u2", {1, 2, 0xfffe});
    check_dtype<uint16_t>(TILE_F16, "f2", {0x3c00, 0xc000, 0x0001}); /* 1, -2, 2^-24 */
    check_dtype<uint8_t>(TILE_BOOL, "b1", {1, 0, 1});
    for (const char *descr : {"|u1", "|b1", "?"}) {
        tile_array *a = load(npy(dict(descr, "False", "(2,)"), std::string("\1\0", 2)));
        EXPECT_EQ((std::vector<uint8_t>{1, 0}), values<uint8_t>(a));
        tile_array_destroy(a);
    }
    tile_array *a = load(npy(dict("=f4", "False", "(1,)"), raw<float>({2})));
    EXPECT_EQ((Floats{2}), values<float>(a));
    tile_array_destroy(a);
}

TEST_F(NpyTest, ReadsBytesOfAKnownBigEndianNumber) {
    /* 1.0f is 3f 80 00 00 */
    tile_array *a = load(npy(dict(">f4", "False", "(1,)"), std::string("\x3f\x80\x00\x00", 4)));
    EXPECT_EQ((Floats{1}), values<float>(a));
    tile_array_destroy(a);
}

TEST_F(NpyTest, LoadsTheThreeVersions) {
    for (int version : {1, 2, 3}) {
        tile_array *a = load(npy(dict("<f4", "False", "(2, 1)"), raw<float>({3, 4}), version));
        ASSERT_EQ(2, tile_array_shape(a).rank);
        EXPECT_EQ(2, tile_array_shape(a).extent[0]);
        EXPECT_EQ(1, tile_array_shape(a).extent[1]);
        EXPECT_EQ((Floats{3, 4}), values<float>(a));
        tile_array_destroy(a);
    }
}

TEST_F(NpyTest, FortranOrderHasTheFirstDimensionFastest) {
    /* column by column: x[0][0] x[1][0] x[0][1] x[1][1] x[0][2] x[1][2] */
    tile_array *a = load(npy(dict("<f4", "True", "(2, 3)"), raw<float>({0, 10, 1, 11, 2, 12})));
    EXPECT_EQ((Floats{0, 1, 2, 10, 11, 12}), values<float>(a));
    tile_array_destroy(a);
    /* rank 3, big endian: x[i][j][k] = 100 i + 10 j + k, i fastest */
    std::vector<int32_t> file, wanted;
    for (int k = 0; k < 4; k++)
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 2; i++) file.push_back(100 * i + 10 * j + k);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) wanted.push_back(100 * i + 10 * j + k);
    a = load(npy(dict(">i4", "True", "(2, 3, 4)"), raw(file, true)));
    EXPECT_EQ(wanted, values<int32_t>(a));
    tile_array_destroy(a);
    a = load(npy(dict("<f4", "True", "(3, 0)"), ""));
    EXPECT_EQ(0, tile_array_count(a));
    tile_array_destroy(a);
}

TEST_F(NpyTest, HeadersMayBeWrittenInOtherWays) {
    const std::string data = raw<float>({1, 2});
    for (const char *text : {
             "{\"shape\": (2,), \"descr\": \"<f4\", \"fortran_order\": False}",
             "  {'fortran_order':False,'shape':(2,),'descr':'<f4',}  ",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }",
             "{ 'descr' : '<f4' ,\n'fortran_order' : False , 'shape' : ( 2 , ) , }",
         }) {
        tile_array *a = load(npy(text, data));
        ASSERT_NE(nullptr, a) << text;
        EXPECT_EQ((Floats{1, 2}), values<float>(a));
        tile_array_destroy(a);
    }
    tile_array *a = load(npy(dict("<f4", "False", "(1,2)"), data)); /* no comma at the end */
    EXPECT_EQ(2, tile_array_shape(a).rank);
    tile_array_destroy(a);
    a = load(npy(dict("<f4", "False", "()"), raw<float>({7})));
    EXPECT_EQ(0, tile_array_shape(a).rank);
    EXPECT_EQ((Floats{7}), values<float>(a));
    tile_array_destroy(a);
    a = load(npy(dict("<f4", "False", "(1, 1, 1, 2, 1, 1)"), data));
    EXPECT_EQ(6, tile_array_shape(a).rank);
    tile_array_destroy(a);
    a = load(npy(dict("<f4", "False", "(1099511627776, 0)"), ""));
    EXPECT_EQ(0, tile_array_count(a));
    tile_array_destroy(a);
}

TEST_F(NpyTest, AFileTruncatedAnywhereIsAnError) {
    for (int version : {1, 2}) {
        const std::string good =
            npy(dict("<f4", "False", "(2, 3)"), raw<float>({0, 1, 2, 3, 4, 5}), version);
        for (size_t length = 0; length < good.size(); length++) fails(good.substr(0, length));
        EXPECT_EQ("has 23 bytes of data, its shape wants 24",
                  fails(good.substr(0, good.size() - 1)));
        EXPECT_EQ("has 25 bytes of data, its shape wants 24", fails(good + "x"));
        EXPECT_EQ("is truncated in its header length", fails(good.substr(0, 9)));
        EXPECT_EQ("does not begin like a .npy file", fails(""));
    }
}

TEST_F(NpyTest, AFlippedByteIsAnErrorOrAnotherGoodFile) {
    const std::string good = npy(dict("<f4", "False", "(2, 3)"), raw<float>({0, 1, 2, 3, 4, 5}));
    int loaded = 0;
    put(good);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    auto write_at = [&file](size_t at, char value) {
        file.seekp(static_cast<std::streamoff>(at));
        file.put(value);
        file.flush();
    };
    for (size_t i = 0; i < good.size() - 24; i++)
        for (int value = 0; value < 256; value++) {
            tile_array *a = nullptr;
            write_at(i, static_cast<char>(value));
            const tile_status status = tile_array_load_npy(ctx, path.c_str(), &a);
            write_at(i, good[i]);
            ASSERT_TRUE(status == TILE_OK || status == TILE_E_FILE) << i << " " << value;
            if (status == TILE_OK) {
                ASSERT_EQ(6, tile_array_count(a)); /* 24 bytes of data */
                loaded++;
            } else {
                ASSERT_EQ(nullptr, a);
                ASSERT_LT(20u, strlen(tile_last_error()));
            }
            tile_array_destroy(a);
        }
    EXPECT_GT(loaded, 0);
}

TEST_F(NpyTest, RandomBytesInTheHeaderNeverCrash) {
    const std::string alphabet = "{}()',:\"0123456789LTrueFalse<>=|fiub?\\ \n\x01\xff";
    uint32_t random = 12345;
    int good = 0;
    for (int round = 0; round < 20000; round++) {
        std::string text = dict("<f4", "False", "(2, 3)");
        for (int edit = 0; edit < 1 + round % 4; edit++) {
            random = random * 1664525 + 1013904223;
            const size_t at = (random >> 8) % text.size();
            const char c = alphabet[(random >> 3) % alphabet.size()];
            if (random >> 31)
                text.insert(at, 1, c);
            else
                text[at] = c;
        }
        /* exactly as long as the text, so that the address sanitizer sees reads beyond it */
        std::unique_ptr<char[]> exact(new char[text.size()]);
        memcpy(exact.get(), text.data(), text.size());
        tile_npy_header header;
        const tile_status status = tile_npy_read_text("a.npy", exact.get(), text.size(), &header);
        ASSERT_TRUE(status == TILE_OK || status == TILE_E_FILE) << text;
        good += status == TILE_OK;
    }
    EXPECT_GT(good, 100);
    EXPECT_LT(good, 19900);
}

TEST_F(NpyTest, MalformedHeadersSayWhatIsWrong) {
    const std::string data = raw<float>({1, 2, 3, 4});
    const std::string not_a_dictionary = "has a header whose text is not a dictionary";
    const std::string not_a_tuple = "has a header whose shape is not a tuple of integers from 0";
    auto text = [&](const std::string &t) { return fails(npy(t, data)); };
    auto shape = [&](const std::string &s) { return text(dict("<f4", "False", s)); };
    auto descr = [&](const std::string &d) { return text(dict(d, "False", "(4,)")); };
    EXPECT_EQ(not_a_dictionary, text(""));
    EXPECT_EQ(not_a_dictionary, text("['descr']"));
    EXPECT_EQ(not_a_dictionary, text("{'descr'"));
    EXPECT_EQ(not_a_dictionary, text("{'descr': '<f4' 'shape': (4,)}"));
    EXPECT_EQ(not_a_dictionary, text("{'descr': '<f4',"));
    EXPECT_EQ(not_a_dictionary, text("{,}"));
    EXPECT_EQ("has a header whose dictionary lacks descr, fortran_order or shape", text("{}"));
    EXPECT_EQ("has a header whose dictionary lacks descr, fortran_order or shape",
              text("{'descr': '<f4', 'shape': (4,)}"));
    EXPECT_EQ("has a header whose dictionary has a key twice",
              text("{'descr': '<f4', 'descr': '<f4'}"));
    EXPECT_EQ("has a header whose dictionary has a key beyond descr, fortran_order, shape",
              text("{'descr': '<f4', 'comment': 'x'}"));
    EXPECT_EQ("has a header whose text goes on after the dictionary",
              text(dict("<f4", "False", "(4,)") + " x"));
    EXPECT_EQ("has a header whose fortran_order is neither True nor False",
              text(dict("<f4", "0", "(4,)")));
    for (const char *bad : {"4", "(4)", "(-4,)", "(,)", "(4,,)", "(4 4)", "[4]", "(4.0,)", "(4,",
                            "(0x4,)", "('4',)", "(4", "(", "(True,)"})
        EXPECT_EQ(not_a_tuple, shape(bad)) << bad;
    EXPECT_EQ("has a header whose shape has more than 6 dimensions",
              shape("(1, 1, 1, 1, 1, 1, 4)"));
    EXPECT_EQ("has a header whose shape has an extent beyond 2^63",
              shape("(9223372036854775808,)"));
    EXPECT_EQ("has a header whose shape has an extent beyond 2^63",
              shape("(99999999999999999999999999999999,)"));
    EXPECT_EQ("has a header whose shape is beyond 2^62 bytes", shape("(4294967296, 4294967296)"));
    EXPECT_EQ("has a header whose shape is beyond 2^62 bytes",
              shape("(4294967296, 4294967296, 0)"));
    EXPECT_EQ("has a header whose shape is beyond 2^62 bytes", shape("(4611686018427387904,)"));
    EXPECT_EQ("has 16 bytes of data, its shape wants 4611686018427387904",
              shape("(1152921504606846976,)"));
    EXPECT_EQ("has 16 bytes of data, its shape wants 0", shape("(0,)"));
    for (const char *bad :
         {"<V2", "<f1", "f2", "|f2",  "|i2", "<c8", "|O",      "<U4",     "|S4", "f4",
          "|f4", "",    "<",  "<f44", "<f",  "<?",  "<M8[ns]", "float32", "!f4", "<f4 "})
        EXPECT_EQ("is of type \"" + std::string(bad) + "\", which has no dtype", descr(bad));
    EXPECT_EQ("has a header whose descr is not a plain type",
              text("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4,)}"));
    EXPECT_EQ("is of type \"aaaaaaaaaaaaaaaaaaaaaaa\", which has no dtype",
              descr(std::string(5000, 'a')));
    EXPECT_EQ("has a header whose descr is not a plain type", descr("<f4\\n"));
    EXPECT_EQ("is of type \"?\?\", which has no dtype", descr("\x01\xff"));
}

TEST_F(NpyTest, WrongPreamblesSayWhatIsWrong) {
    std::string good = npy(dict("<f4", "False", "(1,)"), raw<float>({1}));
    for (int version : {0, 4, 255}) {
        std::string bytes = good;
        bytes[6] = static_cast<char>(version);
        EXPECT_EQ("is of version " + std::to_string(version) + ".0, wanted 1.0, 2.0 or 3.0",
                  fails(bytes));
    }
    std::string minor = good;
    minor[7] = 1;
    EXPECT_EQ("is of version 1.1, wanted 1.0, 2.0 or 3.0", fails(minor));
    EXPECT_EQ("does not begin like a .npy file", fails("PK\x03\x04 this is an .npz file"));
    /* a header length of 4 GiB in a small file, and a long one that is really there */
    EXPECT_EQ("is truncated in its header of 4294967295 bytes",
              fails(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12) + std::string(99, ' ')));
    EXPECT_EQ("has a header of 1048640 bytes, at most 1048576 are read",
              fails(std::string("\x93NUMPY\x02\x00\x40\x00\x10\x00", 12) +
                    std::string((1 << 20) + 64, ' ')));
}

TEST_F(NpyTest, ABoolThatIsNeitherZeroNorOneIsAnError) {
    EXPECT_EQ("holds a bool that is 2, wanted 0 or 1",
              fails(npy(dict("|b1", "False", "(3,)"), std::string("\0\1\2", 3))));
    EXPECT_EQ("holds a bool that is 255, wanted 0 or 1",
              fails(npy(dict("|b1", "True", "(3, 1)"), std::string("\0\1\xff", 3))));
}

TEST_F(NpyTest, PathsThatAreNoFilesAreErrors) {
    tile_array *a = nullptr;
    EXPECT_EQ(TILE_E_FILE, tile_array_load_npy(ctx, path.c_str(), &a));
    EXPECT_EQ("tile_array_load_npy: " + path + " cannot be opened: No such file or directory",
              tile_last_error());
    EXPECT_EQ(TILE_E_FILE, tile_array_load_npy(ctx, folder.c_str(), &a));
    EXPECT_EQ("tile_array_load_npy: " + folder + " is not a regular file", tile_last_error());
    ASSERT_EQ(0, mkfifo(path.c_str(), 0600));
    EXPECT_EQ(TILE_E_FILE, tile_array_load_npy(ctx, path.c_str(), &a)); /* does not wait */
    EXPECT_EQ(TILE_E_FILE, tile_array_load_npy(ctx, "", &a));
    EXPECT_EQ(TILE_E_FILE, tile_array_load_npy(ctx, std::string(9000, 'p').c_str(), &a));
    EXPECT_LT(strlen(tile_last_error()), 300u);
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_load_npy(nullptr, path.c_str(), &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_load_npy(ctx, nullptr, &a));
    EXPECT_EQ(TILE_E_ARGUMENT, tile_array_load_npy(ctx, path.c_str(), nullptr));
    EXPECT_EQ(nullptr, a);
}

} // namespace
