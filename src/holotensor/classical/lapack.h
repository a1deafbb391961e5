// lapack: the routines of OpenBLAS and LAPACKE that encoding by low rank uses. They are loaded when
// first asked for: OpenBLAS starts threads that spin while it is loaded, which would take a core
// from every process that only reads tensors.
#pragma once

#include <cblas.h>
#include <lapacke.h>

#include "support/result.h"

namespace hologram::holotensor {

struct Lapack {
  decltype(&cblas_sgemm) sgemm;
  decltype(&LAPACKE_sgeqrf) sgeqrf;
  decltype(&LAPACKE_sorgqr) sorgqr;
  decltype(&LAPACKE_sgesdd) sgesdd;
  decltype(&openblas_get_num_threads) get_num_threads;
  decltype(&openblas_set_num_threads) set_num_threads;
};

// Stays loaded. Later calls give the same answer; safe from any thread.
Result<const Lapack*> load_lapack();

}  // namespace hologram::holotensor
