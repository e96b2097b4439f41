/* collect_device.h: a device that runs nothing and keeps the text of every kernel it is given. */
#ifndef TILE_TESTS_COLLECT_DEVICE_H
#define TILE_TESTS_COLLECT_DEVICE_H

#include <map>
#include <string>

#include "core/device.h"

struct CollectDevice {
    tile_device device; /* first: what the library holds */
    std::map<std::string, std::string> text;
    uint64_t families = 0;

    CollectDevice() : device() {
        device.load = load;
        device.unload = unload;
        device.launch = launch;
    }

    /* Kernels [first, first + count) in the order of their names, as one source. */
    std::string source(size_t first, size_t count) const {
        tile_text prelude = {};
        tile_cuda_prelude(families, &prelude);
        std::string all = tile_text_get(&prelude);
        tile_text_clear(&prelude);
        size_t k = 0;
        for (const auto &[name, kernel] : text) {
            if (k >= first && k < first + count) all += kernel;
            k++;
        }
        return all;
    }

  private:
    static tile_status load(tile_device *device, const tile_cuda_kernel *source, void **kernel) {
        CollectDevice *self = reinterpret_cast<CollectDevice *>(device);
        self->text[source->name] = tile_text_get(&source->text);
        self->families |= source->families;
        *kernel = device;
        return TILE_OK;
    }
    static void unload(tile_device *, void *) {}
    static tile_status launch(tile_device *, void *, const tile_device_launch *) {
        return TILE_OK;
    }
};

#endif
