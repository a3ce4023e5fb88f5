// OpenBLAS on processors that are newer than it.
#pragma once

namespace cosformer::cli {

// An OpenBLAS that does not know the processor falls back to kernels of 2004, a sixth of the speed of those that the
// processor can run. Where that has happened this names better ones in OPENBLAS_CORETYPE and starts the program anew,
// the same process with the same arguments; OpenBLAS reads the variable only while it is loaded. Does nothing when the
// variable is set already, and with any other BLAS.
void restart_with_fitting_blas(char** argv);

}  // namespace cosformer::cli
