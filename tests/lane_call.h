/* lane_call.h: lane functions called by hand, on memory with guard bytes around it. */
#ifndef TILE_TESTS_LANE_CALL_H
#define TILE_TESTS_LANE_CALL_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/core_api.h"
#include "core/dtype.h"
extern "C" {
#include "core/op.h"
}

template <typename T> struct DtypeOf;
#define TILE_TEST_DTYPE(type, id) \
    template <> struct DtypeOf<type> { static const tile_dtype value = id; };
TILE_TEST_DTYPE(float, TILE_F32)
TILE_TEST_DTYPE(double, TILE_F64)
TILE_TEST_DTYPE(int32_t, TILE_I32)
TILE_TEST_DTYPE(int64_t, TILE_I64)
TILE_TEST_DTYPE(int8_t, TILE_I8)
TILE_TEST_DTYPE(int16_t, TILE_I16)
TILE_TEST_DTYPE(uint8_t, TILE_U8)
TILE_TEST_DTYPE(uint16_t, TILE_U16)
TILE_TEST_DTYPE(uint32_t, TILE_U32)
TILE_TEST_DTYPE(uint64_t, TILE_U64)
#undef TILE_TEST_DTYPE

typedef std::vector<int64_t> Ints;

inline int64_t count_of(const Ints &shape) {
    int64_t n = 1;
    for (int64_t extent : shape) n *= extent;
    return n;
}

inline Ints strides_of(const Ints &shape) {
    Ints stride(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * shape[d];
    return stride;
}

/* Coordinates of the row-major number e. */
inline Ints coordinates(const Ints &shape, int64_t e) {
    Ints at(shape.size());
    for (size_t d = shape.size(); d-- > 0; e /= shape[d]) at[d] = e % shape[d];
    return at;
}

inline tile_dims dims_of(const Ints &shape) {
    tile_dims dims = {};
    dims.rank = static_cast<int32_t>(shape.size());
    for (size_t d = 0; d < shape.size(); d++) dims.extent[d] = static_cast<int32_t>(shape[d]);
    return dims;
}

inline tile_shape shape_of(const Ints &extents) {
    tile_shape shape = {};
    shape.rank = static_cast<int>(extents.size());
    for (size_t d = 0; d < extents.size(); d++) shape.extent[d] = extents[d];
    return shape;
}

/* Elements between 64 guard bytes; guards are looked at when it goes. */
template <typename T> class Guarded {
  public:
    explicit Guarded(std::vector<T> values) : count_(values.size()), bytes_(128 + bytes(), 0xA5) {
        if (count_) std::memcpy(bytes_.data() + 64, values.data(), bytes());
    }
    Guarded(int64_t n, T value) : Guarded(std::vector<T>(static_cast<size_t>(n), value)) {}
    ~Guarded() {
        for (size_t k = 0; k < 64; k++) {
            EXPECT_EQ(0xA5, bytes_[k]) << "byte before the first element";
            EXPECT_EQ(0xA5, bytes_[64 + bytes() + k]) << "byte past the last element";
        }
    }
    T *data() {
        return reinterpret_cast<T *>(bytes_.data() + 64);
    }
    std::vector<T> values() const {
        std::vector<T> v(count_);
        if (count_) std::memcpy(v.data(), bytes_.data() + 64, bytes());
        return v;
    }

  private:
    size_t bytes() const {
        return count_ * sizeof(T);
    }
    size_t count_;
    std::vector<unsigned char> bytes_;
};

/* Bit for bit, so that NaN equals itself and zeros have signs. */
template <typename T>
void expect_bits(const std::vector<T> &want, const std::vector<T> &got, const std::string &what) {
    ASSERT_EQ(want.size(), got.size()) << what;
    for (size_t k = 0; k < want.size(); k++)
        ASSERT_EQ(0, std::memcmp(&want[k], &got[k], sizeof(T)))
            << what << " element " << k << ": want " << +want[k] << ", got " << +got[k];
}

inline tile_run run_of(const char *op, tile_dtype dtype) {
    const tile_op *found = tile_op_find(op);
    EXPECT_NE(nullptr, found) << op;
    EXPECT_NE(nullptr, found->run[dtype]) << op << " has no kernel for " << tile_dtype_name(dtype);
    return found->run[dtype];
}

/* Inputs and results of one op without memory; results begin as 0xFF bytes. */
template <typename T, typename R = T> struct TileCall {
    tile_call call = {};
    std::vector<Guarded<T> *> in;
    ~TileCall() {
        for (Guarded<T> *g : in) delete g;
    }
    void add(const Ints &shape, const std::vector<T> &values) {
        call.in_dims[in.size()] = dims_of(shape);
        in.push_back(new Guarded<T>(values));
        call.in[in.size() - 1] = in.back()->data();
    }
    std::vector<R> run(const char *op, const Ints &shape) {
        Guarded<R> out(count_of(shape), R());
        std::memset(static_cast<void *>(out.data()), 0xFF,
                    static_cast<size_t>(count_of(shape)) * sizeof(R));
        call.out_dims[0] = dims_of(shape);
        call.out[0] = out.data();
        std::vector<std::vector<T>> before;
        for (Guarded<T> *g : in) before.push_back(g->values());
        run_of(op, DtypeOf<T>::value)(&call);
        for (size_t k = 0; k < in.size(); k++) expect_bits(before[k], in[k]->values(), "input");
        return out.values();
    }
};

#endif
