#include "holotensor/classical/lapack.h"

#include <dlfcn.h>

namespace hologram::holotensor {
namespace {

template <typename Function>
Status find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function) return {};
  return fail(ErrorCode::not_found, "LAPACK has no {}", name);
}

Result<void*> open_library(const char* name) {
  // Global: LAPACKE then calls the LAPACK inside OpenBLAS, whose threads we set.
  if (void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  return fail(ErrorCode::not_found, "encoding by low rank needs OpenBLAS and LAPACKE: {}",
              dlerror());
}

Result<Lapack> load() {
  Lapack lapack{};
  HOLOGRAM_TRY(void* blas, open_library("libopenblas.so.0"));
  HOLOGRAM_TRY(void* lapacke, open_library("liblapacke.so.3"));
  HOLOGRAM_CHECK(find(blas, "cblas_sgemm", lapack.sgemm));
  HOLOGRAM_CHECK(find(blas, "openblas_get_num_threads", lapack.get_num_threads));
  HOLOGRAM_CHECK(find(blas, "openblas_set_num_threads", lapack.set_num_threads));
  HOLOGRAM_CHECK(find(lapacke, "LAPACKE_sgeqrf", lapack.sgeqrf));
  HOLOGRAM_CHECK(find(lapacke, "LAPACKE_sorgqr", lapack.sorgqr));
  HOLOGRAM_CHECK(find(lapacke, "LAPACKE_sgesdd", lapack.sgesdd));
  return lapack;
}

}  // namespace

Result<const Lapack*> load_lapack() {
  static const Result<Lapack> lapack = load();
  if (!lapack) return std::unexpected(lapack.error());
  return &*lapack;
}

}  // namespace hologram::holotensor
