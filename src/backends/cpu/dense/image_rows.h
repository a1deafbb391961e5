// The rows of an image, shared among threads as products of its pixels share them, so that what one
// step wrote lies in the near cache of the thread that reads it in the next.
#pragma once

#include <algorithm>
#include <cstddef>

#include "support/thread_pool.h"

namespace hologram::backends::dense {

// Calls body(plane, row, count) for runs of rows that cover `planes` planes of `height` rows once.
// Of a large image each thread takes a band of all planes; of a small one, whose products are
// shared by columns, whole planes.
template <typename Body>
void for_image_rows(ThreadPool& pool, size_t planes, size_t height, size_t width, unsigned threads,
                    const Body& body) {
  constexpr size_t kLargeImage = 768;  // pixels
  if (height * width >= kLargeImage) {
    const auto band = [&](size_t begin, size_t end) {
      for (size_t plane = 0; plane < planes; ++plane) body(plane, begin, end - begin);
    };
    return pool.parallel_for(height, 1, band, Schedule::dynamic, threads);
  }
  const auto run = [&](size_t begin, size_t end) {
    for (size_t job = begin, count = 0; job < end; job += count) {
      const size_t row = job % height;
      count = std::min(end - job, height - row);
      body(job / height, row, count);
    }
  };
  pool.parallel_for(planes * height, 1, run, Schedule::dynamic, threads);
}

}  // namespace hologram::backends::dense
